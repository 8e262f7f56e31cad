import json
from pathlib import Path

import pytest
from models.formats.test_safetensors import sample, whole

from difflens.core.errors import ChangedWhileReading, CorruptFile, UnknownFormat, UnknownName
from difflens.core.limits import DEFAULTS
from difflens.models.folders.shards import read_index
from difflens.models.formats import open_model

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
        "metadata 'made' is 'y' in y.safetensors, 'x' before it: the first is used"
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
        CorruptFile, match=r"'model-00002-of-00003\.safetensors' is missing, 2 of 3"
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


def test_shards_are_named_once_and_in_order(tmp_path):
    index(tmp_path, {"a": "z", "b": "y", "c": "z"}, "i.index.json", total_size=3)

    found = read_index(tmp_path / "i.index.json", DEFAULTS)

    assert (found.shards, found.total_size) == (["y", "z"], 3)


def test_a_shard_in_a_folder_below_is_inside(tmp_path):
    split(tmp_path / "sub", one=A)
    index(tmp_path, {"a": "sub/one.safetensors"})
    model = open_model(tmp_path)

    assert list(model.tensors) == ["a"]
    model.close()


@pytest.mark.parametrize("name", ["./x", "x//y", "x/", "/x", "x/../y", "..", "\\x"])
def test_a_name_that_is_not_plain_is_refused(name, tmp_path):
    index(tmp_path, {"a": name})

    with pytest.raises(CorruptFile, match="is not the name of a file in this folder"):
        open_model(tmp_path)


def test_the_message_says_what_stands_where_a_shard_should(tmp_path):
    index(tmp_path, {"a\n": 5})

    with pytest.raises(CorruptFile) as caught:
        open_model(tmp_path)
    assert caught.value.reason == "tensor 'a\\x0a' is in 5, expected the name of a shard"
