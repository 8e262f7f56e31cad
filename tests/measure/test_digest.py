"""Fingerprints of tensors."""

import hashlib

import numpy as np
import pytest

from difflens.diffs.inspection import hash_tensors
from difflens.measure import Threads
from difflens.models.opening import MemorySource

ARRAYS = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "empty": np.zeros((0, 2), "float32"),
    "bytes": np.arange(7, dtype="uint8"),
    "scalar": np.float16(1),
}


def fingerprints(arrays, threads=1):
    source, engine = MemorySource(arrays), Threads(threads)
    try:
        return dict(zip(arrays, hash_tensors(source.tensors.values(), source, engine), strict=True))
    finally:
        engine.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_digest_is_the_sha256_of_the_encoded_bytes(threads):
    expected = {
        name: hashlib.sha256(np.asarray(array).tobytes()).hexdigest()
        for name, array in ARRAYS.items()
    }

    assert fingerprints(ARRAYS, threads) == expected


def test_the_size_of_a_step_does_not_matter(cut):
    whole = fingerprints(ARRAYS)
    cut(2, 4)

    assert fingerprints(ARRAYS) == whole


def test_the_order_in_memory_does_not_matter():
    matrix = ARRAYS["matrix"]

    assert fingerprints({"m": np.asfortranarray(matrix)}) == fingerprints({"m": matrix})


def test_bits_matter_where_values_are_equal():
    assert fingerprints({"w": np.array([0.0])}) != fingerprints({"w": np.array([-0.0])})
