"""Pairs of models that something explains: a cast, a scale, an adapter, an order, a step."""

from collections.abc import Callable
from typing import Any

import numpy as np
from models.small import Model

from difflens.measure.codec import scale
from difflens.repair.chunks import kind_of


def encoded(values: Any, dtype: str = "BF16") -> tuple[str, tuple[int, ...], bytes]:
    """Round F32 values to a dtype."""
    out = bytearray(values.size * kind_of(dtype)[0])
    scale(values.astype("<f4").tobytes(), out, (kind_of("F32"), kind_of(dtype)), (1.0, 1), False)
    return dtype, values.shape, bytes(out)


def _cast(random: Any, values: Any) -> tuple[Any, Any]:
    first, last = random.choice(["F32", "BF16", "F16", "F8_E4M3", "F8_E5M2"], 2)
    return encoded(values, str(first)), encoded(values, str(last))


def _scaled(random: Any, values: Any) -> tuple[Any, Any]:
    factor = np.float32(random.choice([0.5, 0.999, 1 - 1e-6, -1, 3.7]))
    dtype = str(random.choice(["F32", "F16"]))
    return encoded(values, dtype), encoded(
        values * factor * (factor if random.random() < 0.5 else 1), dtype
    )


def _adapted(random: Any, values: Any) -> tuple[Any, Any]:
    rank = int(random.integers(1, 5))
    up = random.normal(size=(len(values), rank)) * 0.01
    product = up @ random.normal(size=(rank, values.shape[1])) / 8
    dtype = str(random.choice(["F32", "BF16", "F16"]))
    return encoded(values, dtype), encoded(values + product, dtype)


def _ordered(random: Any, values: Any) -> tuple[Any, Any]:
    order = random.permutation(len(values))[: int(random.integers(1, len(values) + 1))]
    return encoded(values), encoded(
        np.concatenate([values[order], values[: random.integers(9)] * 3])
    )


def _stepped(random: Any, values: Any) -> tuple[Any, Any]:
    dtype = str(random.choice(["F32", "BF16", "F16", "F8_E5M2"]))
    reach = 10.0 ** -random.integers(2, 6)
    return encoded(values, dtype), encoded(values + random.normal(size=values.shape) * reach, dtype)


def _integers(random: Any, values: Any) -> tuple[Any, Any]:
    dtype = str(random.choice(["I64", "U8", "I32", "U16", "BOOL"]))
    width = kind_of(dtype)[0]
    data = bytearray(random.bytes(values.size * width))
    before = dtype, values.shape, bytes(data)
    for place in random.integers(len(data), size=5):
        data[place] ^= 1
    return before, (dtype, values.shape, bytes(data))


RELATIONS: tuple[Callable[[Any, Any], tuple[Any, Any]], ...] = (
    _cast,
    _scaled,
    _adapted,
    _ordered,
    _stepped,
    _integers,
)


def related(seed: int) -> tuple[Model, Model]:
    """Make two models of three tensors; each relation comes first for some seed."""
    random = np.random.default_rng(seed)
    base, target = {}, {}
    for number in range(3):
        shape = tuple(int(each) for each in random.integers(17, 60, 2))
        values = random.normal(size=shape) * 0.02
        relation = seed if number == 0 else int(random.integers(len(RELATIONS)))
        name = f"layers.{number}.w"
        base[name], target[name] = RELATIONS[relation % len(RELATIONS)](random, values)
    return base, target
