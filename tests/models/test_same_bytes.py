"""Tensors of files with one content: equal without being read."""

import shutil

from buckets import bucket, sample_path  # noqa: F401  fixtures
from models.small import arrays, write

from difflens import open_model
from difflens.core.encodings import encoding_of, has_same_bytes
from difflens.diffs.story import diff
from difflens.models.opening import MemorySource

BASE = "s3://bucket/models"


def are_known(left, right):
    return [
        has_same_bytes(encoding_of(left, name), encoding_of(right, name)) for name in left.tensors
    ]


def test_a_model_opened_twice_is_known_to_be_the_same_in_every_format(sample_path):  # noqa: F811
    left, right = open_model(sample_path), open_model(sample_path)

    assert all(are_known(left, right))


def test_a_copy_on_disk_has_to_be_read(sample_path, tmp_path_factory):  # noqa: F811
    copy = tmp_path_factory.mktemp("copy") / sample_path.parent.name
    shutil.copytree(sample_path.parent, copy)

    left, right = open_model(sample_path), open_model(copy / sample_path.name)

    assert not any(are_known(left, right))


def test_files_of_one_hash_are_known_to_be_the_same_in_every_format(
    bucket,  # noqa: F811
    tmp_path,
    sample_path,  # noqa: F811
):
    sides = [bucket.put(tmp_path, f"{BASE}/{side}") for side in ("left", "right")]
    bucket.hashes = {name: name.rpartition("/")[2] for name in bucket.files}
    name = sample_path.relative_to(tmp_path).as_posix()

    assert all(are_known(*(open_model(f"{side}/{name}") for side in sides)))

    bucket.hashes = {name: name for name in bucket.files}

    assert not any(are_known(*(open_model(f"{side}/{name}") for side in sides)))


def test_a_diff_of_equal_files_asks_for_no_byte_of_data(bucket, tmp_path):  # noqa: F811
    model = arrays(w=[1.0] * 100_000, v=[2.0] * 100_000)
    write(tmp_path / "m.safetensors", model)
    sides = [
        bucket.put(tmp_path / "m.safetensors", f"{BASE}/{side}/m.safetensors")
        for side in ("left", "right")
    ]
    bucket.hashes = dict.fromkeys(bucket.files, "equal")
    found = diff(*sides)
    bucket.asked.clear()

    assert [delta.kind for delta in found.deltas] == ["identical", "identical"]
    assert bucket.asked == []


def test_one_place_in_files_of_one_hash_is_not_another(bucket, tmp_path):  # noqa: F811
    model = write(tmp_path / "m.safetensors", arrays(w=[1.0], v=[2.0]))
    address = bucket.put(model, f"{BASE}/m.safetensors")
    bucket.hashes = {address: "equal"}
    left, right = open_model(address), open_model(address)

    assert not has_same_bytes(left.encoding("w"), right.encoding("v"))


def test_arrays_in_memory_are_compared_by_their_bytes():
    import numpy as np

    ones = {"w": np.ones(4)}

    assert not any(are_known(MemorySource(ones), MemorySource(ones)))
