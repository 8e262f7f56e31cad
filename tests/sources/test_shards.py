import json
from pathlib import Path

import pytest
from sources.test_safetensors import sample, whole

from difflens.errors import ChangedWhileReading, CorruptFile, UnknownFormat, UnknownName
from difflens.sources import open_model

A, B = {"a": ("U8", (2,), b"aa")}, {"b": ("U8", (3,), b"bbb")}
INDEX = "model.safetensors.index.json"


def split(folder, **shards):
    folder.mkdir(exist_ok=True)
    for name, tensors in shards.items():
        sample(folder / f"{name}.safetensors", tensors)
    return folder


def index(folder, weight_map, name=INDEX, **metadata):
    text = json.dumps({"metadata": metadata, "weight_map": weight_map})
    (folder / name).write_text(text)
    return folder


@pytest.fixture
def folder(tmp_path):
    folder = split(tmp_path / "m", one=A, two=B)
    return index(folder, {"a": "one.safetensors", "b": "two.safetensors"}, total_size=5)


def test_sharding_changes_nothing(folder, tmp_path):
    single = open_model(sample(tmp_path / "whole.safetensors", A | B))
    model = open_model(folder)

    assert dict(single.tensors) == dict(model.tensors)
    assert [whole(single, name) for name in "ab"] == [whole(model, name) for name in "ab"]
    assert (model.format, model.warnings) == ("safetensors", [])
    model.confirm()
    for each in (single, model):
        each.close()


def test_the_index_itself_can_be_named(folder):
    model = open_model(folder / INDEX)

    assert {"a", "b"} == set(model.tensors)
    model.close()


def test_a_total_size_written_as_a_fraction_is_no_fault(folder):
    index(folder, {"a": "one.safetensors", "b": "two.safetensors"}, total_size=5.0)
    model = open_model(folder)

    assert model.warnings == []
    model.close()


def test_a_tensor_that_is_not_there_is_unknown(folder):
    model = open_model(folder)

    with pytest.raises(UnknownName):
        model.read_into("c", 0, 1, memoryview(bytearray(1)))
    model.close()


def test_a_shard_that_changes_is_noticed(folder):
    model = open_model(folder)
    with (folder / "two.safetensors").open("ab") as shard:
        shard.write(b"x")

    with pytest.raises(ChangedWhileReading, match=r"two\.safetensors"):
        model.confirm()
    model.close()


def test_metadata_that_differs_between_shards_keeps_the_first_and_warns(tmp_path):
    from safetensors.numpy import save

    for name in ("x", "y"):
        metadata = {"format": "pt", "made": name}
        (tmp_path / f"{name}.safetensors").write_bytes(save({}, metadata=metadata))
    model = open_model(tmp_path)

    assert model.metadata == {"format": "pt", "made": "x"}
    assert (model.warnings) == [
        "metadata 'made' is 'y' in y.safetensors, 'x' before it: the first was kept"
    ]
    model.close()


def test_an_index_wins_over_a_single_file_which_is_named_as_not_read(folder):
    split(folder, model=A)
    model = open_model(folder)

    assert [f"'{INDEX}' was read; not read beside it: 'model.safetensors'"] == model.warnings
    model.close()


def test_the_single_model_wins_over_other_files_which_are_named_as_not_read(tmp_path):
    model = open_model(split(tmp_path, model=A, extra=B))

    assert list(model.tensors) == ["a"]
    assert (model.warnings) == [
        "'model.safetensors' was read; not read beside it: 'extra.safetensors'"
    ]
    model.close()


def test_an_adapter_alone_is_a_model(tmp_path):
    model = open_model(split(tmp_path, adapter_model=A))

    assert (list(model.tensors), model.warnings) == (["a"], [])
    model.close()


def test_the_favourite_of_two_indexes_is_read(folder):
    index(folder, {"a": "one.safetensors"}, "model.fp16.safetensors.index.json")
    model = open_model(folder)

    assert {"a", "b"} == set(model.tensors)
    model.close()


def test_two_indexes_and_no_favourite_is_an_error_that_names_them(folder):
    (folder / INDEX).rename(folder / "x.safetensors.index.json")
    index(folder, {"a": "one.safetensors"}, "y.safetensors.index.json")

    with pytest.raises(
        UnknownFormat, match=r"'x\.safetensors\.index\.json', 'y\.safetensors\.index"
    ):
        open_model(folder)


def test_an_index_of_another_format_does_not_hide_the_weights(tmp_path):
    split(tmp_path, model=A)
    index(tmp_path, {"a": "pytorch_model.bin"}, "pytorch_model.bin.index.json")
    model = open_model(tmp_path)

    assert list(model.tensors) == ["a"]
    model.close()


def test_a_set_without_all_its_parts_is_refused(tmp_path):
    split(tmp_path, **{"model-00001-of-00003": A, "model-00003-of-00003": B})

    with pytest.raises(
        CorruptFile, match=r"'model-00002-of-00003\.safetensors' is not there, 2 of 3"
    ):
        open_model(tmp_path)


def test_opening_fails_without_keeping_the_shards_open(folder):
    before = len(list(Path("/proc/self/fd").iterdir()))
    (folder / "two.safetensors").write_bytes(b"damaged for sure")

    with pytest.raises(UnknownFormat, match=r"two\.safetensors") as caught:
        open_model(folder)
    # The traceback still holds the shards: only closing them gives their descriptors back.
    assert caught.tb
    assert before == len(list(Path("/proc/self/fd").iterdir()))
