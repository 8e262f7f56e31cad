"""Parts of quantised weights that a stranger made up: decoded or left alone, never a crash."""

import json
import os
import random
from typing import Any

import numpy as np
import pytest
from sources.test_quantised import opened

from difflens.errors import DifflensError

COUNT = int(os.environ.get("DIFFLENS_FUZZ", "1000"))
STEMS = {
    "gptq": ["a.qweight", "a.qzeros", "a.scales", "a.g_idx", "a.weight"],
    "packed": ["a.weight_packed", "a.weight_shape", "a.weight_scale", "a.weight_zero_point",
               "a.weight_g_idx", "a.weight_global_scale"],
    "nf4": ["a.weight", "a.weight.absmax", "a.weight.quant_map", "a.weight.nested_absmax",
            "a.weight.nested_quant_map", "a.weight.quant_state.bitsandbytes__nf4"],
    "int8": ["a.weight", "a.SCB", "a.weight_format", "a.weight_scale", "a.weight_scale_inv",
             "a.weight_zero_point", "a.weight_scale_2", "a.scale_weight"],
    "mxfp4": ["a_blocks", "a_scales"],
}  # fmt: skip
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


@pytest.mark.parametrize("scheme", STEMS)
def test_made_up_parts_give_clean_errors_only(scheme):
    chance = random.Random(scheme)
    decoded = 0
    for _ in range(COUNT):
        names = [name for name in STEMS[scheme] if chance.random() < 0.9]
        arrays = {name: odd_array(chance) for name in names}
        arrays |= {name: odd_state(chance) for name in names if "quant_state" in name}
        if scheme != "nf4":  # arrays of one shape are likelier to agree
            like = chance.choice(list(arrays.values())) if arrays else np.zeros(1)
            arrays |= {name: like for name in names if chance.random() < 0.2}
        try:
            source = opened(arrays, **odd_settings(chance))
            for info in source.tensors.values():
                buffer = bytearray(info.size_bytes)
                source.read_into(info.name, 0, len(buffer), memoryview(buffer))
                decoded += info.stored is not None
        except DifflensError:
            pass
    assert decoded or scheme in ("nf4", "packed", "gptq")
