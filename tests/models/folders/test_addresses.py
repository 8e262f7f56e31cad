"""Models at addresses: the same as on this machine, with few requests, and nothing outside."""

import json

import numpy as np
import pytest
from buckets import bucket, sample_path  # noqa: F401  fixtures
from models.small import arrays, write

from difflens import open_model
from difflens.core.errors import CorruptFile, UnreadableFile
from difflens.diffs.story import diff
from difflens.models.folders.listing import model_files, neighbour

BASE = "s3://bucket/models/base"


def test_a_model_at_an_address_is_the_one_on_disk(bucket, tmp_path, sample_path):  # noqa: F811
    far = bucket.put(tmp_path, BASE)

    here = open_model(sample_path)
    there = open_model(f"{far}/{sample_path.relative_to(tmp_path).as_posix()}")

    assert there.format == here.format
    assert contents(there) == contents(here)
    assert [text.replace(BASE, str(tmp_path)) for text in there.warnings] == here.warnings
    assert dict(there.metadata) == dict(here.metadata)


def contents(model):
    found = {}
    for name, info in model.tensors.items():
        buffer = bytearray(info.size_bytes)
        model.read_into(name, 0, info.size_bytes, memoryview(buffer))
        found[name] = (info, bytes(buffer))
    return found


def sharded(folder, count, **more):
    """Write a model of one tensor a shard, with its index."""
    names = [f"model-{at + 1:05}-of-{count:05}.safetensors" for at in range(count)]
    for at, name in enumerate(names):
        write(folder / name, arrays(**{f"w{at}": np.full(4, at)}))
    weight_map = {f"w{at}": name for at, name in enumerate(names)}
    index = {"metadata": {}, "weight_map": weight_map | more}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_a_sharded_folder_takes_a_listing_an_index_and_a_request_for_each_shard(bucket, tmp_path):  # noqa: F811
    far = bucket.put(sharded(tmp_path / "base", 163), BASE)

    model = open_model(far)

    assert len(model.tensors) == 163
    assert len(bucket.asked) <= 163 + 3
    assert len(bucket.asked) == len(set(bucket.asked))


def test_a_diff_of_headers_alone_takes_340_requests_at_163_shards(bucket, tmp_path):  # noqa: F811
    folder = sharded(tmp_path / "base", 163)
    sides = [bucket.put(folder, f"s3://bucket/{side}") for side in ("left", "right")]

    found = diff(*sides, shape_only=True)

    assert len(found.pairs) == 163
    assert len(list(found.stream())) == 163
    assert len(bucket.asked) <= 340


def test_shards_come_in_order_and_the_first_one_that_is_broken_is_named(bucket, tmp_path):  # noqa: F811
    far = bucket.put(sharded(tmp_path / "base", 40), BASE)
    for at in (7, 3, 31):
        bucket.files[f"{BASE}/model-{at:05}-of-00040.safetensors"] = b"\xff" * 100

    for _ in range(5):
        bucket.opened.clear()
        with pytest.raises(CorruptFile, match="model-00003-of-00040"):
            open_model(far)
        while not all(file.is_closed for file in bucket.opened):
            pass  # those that were on their way are closed when they arrive


@pytest.mark.parametrize(
    "name",
    [
        "../other.bin",
        "/etc/passwd",
        "a/../../other.bin",
        "s3://bucket/other.bin",
        "https://host/other.bin",
        "%2e%2e/other.bin",
        "..%2fother.bin",
        "other.bin?versionId=1",
        "other.bin#part",
        "..\\other.bin",
        "C:/other.bin",
        "other.bin\0",
        "other\n.bin",
        "",
        ".",
        "..",
    ],
)
def test_a_name_inside_a_file_leads_nowhere_but_below_its_folder(bucket, name, tmp_path):  # noqa: F811
    bucket.put(sharded(tmp_path / "base", 1), BASE)
    for each in (f"{BASE}/{name}", "s3://bucket/models/other.bin", "s3://bucket/other.bin"):
        bucket.files[each] = b"secret"
    asked = len(bucket.asked)
    file = open_model(f"{BASE}/model-00001-of-00001.safetensors").file
    asked = len(bucket.asked)

    with pytest.raises(CorruptFile):
        neighbour(file, name)

    index = json.dumps({"weight_map": {"w0": name}}).encode()
    bucket.files[f"{BASE}/model.safetensors.index.json"] = index
    with pytest.raises(CorruptFile):
        open_model(f"{BASE}/model.safetensors.index.json")
    new = bucket.asked[asked:]
    assert all(each.startswith((f"{BASE}/model.safetensors", f"{BASE}/")) for each in new)
    assert not any("other" in each for each in new)


def test_a_plain_name_inside_a_file_is_opened_below_its_folder(bucket, tmp_path):  # noqa: F811
    far = bucket.put(write(tmp_path / "m.safetensors", arrays(w=[1])), f"{BASE}/m.safetensors")
    bucket.files[f"{BASE}/parts/weights.bin"] = b"1234"

    for name in ("parts/weights.bin", "./parts//weights.bin"):
        file = neighbour(open_model(far).file, name)
        assert str(file.path) == f"{BASE}/parts/weights.bin"
        assert file.read(0, 4) == b"1234"


def test_models_below_an_address_are_listed_as_on_disk(bucket, tmp_path):  # noqa: F811
    write(tmp_path / "a" / "one.safetensors", arrays(w=[1]))
    write(tmp_path / "a" / "deep" / "two.safetensors", arrays(w=[1]))
    sharded(tmp_path / "b", 2)
    write(tmp_path / ".hidden" / "three.safetensors", arrays(w=[1]))

    assert model_files(bucket.put(tmp_path, BASE)) == model_files(tmp_path)
    assert model_files(BASE) == ["a/deep/two.safetensors", "a/one.safetensors", "b"]


def test_what_is_not_there_is_one_clear_error(bucket):  # noqa: ARG001, F811
    with pytest.raises(UnreadableFile, match="no such file"):
        open_model(f"{BASE}/model.safetensors")
