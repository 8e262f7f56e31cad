"""Parts of quantised weights that a stranger made up: decoded or left alone, never a crash."""

import json
import os
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from models.quantised.test_weights import gptq, nf4, opened

from difflens.core.errors import DifflensError

COUNT = int(os.environ.get("DIFFLENS_FUZZ", "1000"))


def sound(scheme: str) -> dict[str, Any]:
    """Return the parts of a small weight that decodes."""
    made = np.random.default_rng(0)
    octets = made.integers(0, 256, (2, 4, 3, 16)).astype(np.uint8)
    return {
        "gptq": lambda: gptq(made, 4, 32, 32, 4)[0],
        "awq": lambda: {
            "a.qweight": made.integers(-99, 99, (16, 4)).astype(np.int32),
            "a.qzeros": made.integers(-99, 99, (2, 4)).astype(np.int32),
            "a.scales": np.ones((2, 32), np.float16),
        },
        "packed": lambda: {
            "a.weight_packed": made.integers(-99, 99, (32, 4)).astype(np.int32),
            "a.weight_shape": np.array([32, 32]),
            "a.weight_scale": np.ones((32, 4), np.float32),
            "a.weight_zero_point": made.integers(-99, 99, (4, 4)).astype(np.int32),
            "a.weight_g_idx": np.arange(32, dtype=np.int32) // 8,
        },
        "nf4": lambda: nf4(made, (8, 16), 64, nested=True)[0],
        "int8": lambda: {
            "a.weight": made.integers(-99, 99, (8, 16)).astype(np.int8),
            "a.SCB": np.ones(8, np.float32),
            "a.weight_format": np.zeros((), np.uint8),
        },
        "scaled": lambda: {
            "a.weight": made.integers(-99, 99, (8, 16)).astype(np.int8),
            "a.weight_scale": np.ones((4, 2), np.float32),
            "a.weight_zero_point": np.ones((4, 2), np.int8),
        },
        "mxfp4": lambda: {"a_blocks": octets, "a_scales": octets[..., 0]},
        "nvfp4": lambda: {
            "a.weight": octets[0, 0],
            "a.weight_scale": np.ones((3, 2), ml_dtypes.float8_e4m3fn),
            "a.weight_scale_2": np.ones((), np.float32),
        },
    }[scheme]()


SCHEMES = ["gptq", "awq", "packed", "nf4", "int8", "scaled", "mxfp4", "nvfp4"]
KINDS = ["int32", "int64", "int8", "uint8", "float16", "float32", "bool"]
SIDES = [0, 1, 2, 3, 4, 8, 12, 16, 32, 64]


def odd_array(chance: random.Random) -> Any:
    shape = [chance.choice(SIDES) for _ in range(chance.choice([0, 1, 1, 2, 2, 2, 2, 3, 4]))]
    if np.prod(shape) > 10_000:
        shape = shape[:2]
    seeded = np.random.default_rng(chance.randrange(1 << 30))
    raw = seeded.integers(-(2**31), 2**31, shape)
    with np.errstate(all="ignore"):
        return np.asarray(raw % chance.choice([2, 3, 64, 1 << 31])).astype(chance.choice(KINDS))


def odd_state(chance: random.Random) -> Any:
    state = {
        key: chance.choice([None, 0, 2, 64, 1 << 40, -1, "a", [4, 4], [0], [[1]], 0.5, True])
        for key in ("shape", "blocksize", "nested_blocksize", "nested_offset")
        if chance.random() < 0.8
    }
    return np.frombuffer(json.dumps(state).encode(), np.uint8)


def odd_settings(chance: random.Random) -> dict[str, Any]:
    keys = ("checkpoint_format", "version", "config_groups", "weight_block_size", "bits")
    odd = [None, 3, "gptq_v2", [2, 2], [0, -1], {"a": {"weights": {"num_bits": 3}}}, {"a": 1}]
    return {key: chance.choice(odd) for key in keys if chance.random() < 0.5}


def bent(chance: random.Random, array: Any) -> Any:
    """Change one part: its shape, its type, its numbers, or all of it."""
    how = chance.randrange(5)
    if how == 0:
        return odd_array(chance)
    if how == 1 and array.size:
        return array.reshape(-1)[: chance.randrange(array.size) + 1]
    if how == 2 and array.ndim > 1:
        return array.swapaxes(0, 1).copy()
    if how == 3:
        return array[None]
    flipped = np.random.default_rng(chance.randrange(1 << 30)).integers(0, 256, array.nbytes)
    return flipped.astype(np.uint8).view(array.dtype).reshape(array.shape)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_made_up_parts_give_clean_errors_only(scheme):
    chance = random.Random(scheme)
    decoded = 0
    for number in range(COUNT // 4):
        arrays = sound(scheme)
        for name in chance.sample(list(arrays), min(number, len(arrays), chance.choice([1, 1, 2]))):
            state = "quant_state" in name and chance.random() < 0.8
            arrays[name] = odd_state(chance) if state else bent(chance, arrays[name])
            if chance.random() < 0.1:
                del arrays[name]
        try:
            source = opened(arrays, **(odd_settings(chance) if number else {}))
            for info in source.tensors.values():
                buffer = bytearray(info.size_bytes)
                source.read_into(info.name, 0, len(buffer), memoryview(buffer))
                decoded += info.stored is not None
        except DifflensError:
            pass
    assert decoded > COUNT // 100
