"""Pairs of chunks for the codec: random bits, weights with small steps, special values."""

from typing import Any

import numpy as np

KINDS = {
    "F64": (8, 52, 11),
    "F32": (4, 23, 8),
    "F16": (2, 10, 5),
    "BF16": (2, 7, 8),
    "F8_E4M3": (1, 3, 4),
    "F8_E5M2": (1, 2, 5),
    "I64": (8, 0, 0),
    "I32": (4, 0, 0),
    "I16": (2, 0, 0),
    "U8": (1, 0, 0),
}
SIZES = (1, 2, 3, 7, 63, 64, 65, 100, 1000, 4095, 4096, 5000)
WAYS = (
    "same",
    "bits",
    "shuffled",
    "few steps",
    "few bits",
    "short steps",
    "long steps",
    "specials",
)


def words(random: Any, dtype: str, n: int, *, weights: bool) -> Any:
    """Make n words: any bits, or weights where the dtype is a float."""
    width, _, exponent = KINDS[dtype]
    kind = np.dtype(f"<u{width}")
    if not (weights and exponent):
        return np.frombuffer(random.bytes(n * width), kind).copy()
    numbers = random.normal(size=n) * 0.02
    if dtype in ("F64", "F32", "F16"):
        return numbers.astype(f"<f{width}").view(kind).copy()
    bits = numbers.astype("<f4").view("<u4")
    return (bits >> 16 if dtype == "BF16" else bits >> 24).astype(kind)


def specials(dtype: str) -> list[int]:
    """Name the words where formats have their corners: zeros, infinities, NaN, the largest."""
    width, mantissa, exponent = KINDS[dtype]
    sign = 1 << (8 * width - 1)
    infinite = ((1 << exponent) - 1) << mantissa
    some = [0, 1, sign - 1, infinite, infinite | 1, infinite | 1 << max(mantissa - 1, 0)]
    return [value % (2 * sign) for value in (*some, *(value | sign for value in some))]


def pair(seed: int) -> tuple[str, bytes, bytes]:
    """Make two chunks of one dtype."""
    random = np.random.default_rng(seed)
    dtype = list(KINDS)[seed % len(KINDS)]
    n, way = int(random.choice(SIZES)), str(random.choice(WAYS))
    left = words(random, dtype, n, weights=bool(random.integers(4)))
    right = moved(random, dtype, left, way)
    return dtype, left.tobytes(), right.tobytes()


def moved(random: Any, dtype: str, left: Any, way: str) -> Any:
    n, kind = len(left), left.dtype
    right = left.copy()
    some = random.random(n) < random.choice([0.002, 0.02, 0.1])
    if way == "bits":
        return words(random, dtype, n, weights=False)
    if way == "shuffled":
        return random.permutation(left)
    if way == "few steps":
        right[some] += random.choice(np.array([1, -1]), size=int(some.sum())).astype(kind)
    if way == "few bits":
        right[some] = words(random, dtype, int(some.sum()), weights=False)
    if way == "short steps":
        right += random.integers(-20, 20, size=n).astype(kind)
    if way == "long steps":
        reach = 2 ** min(40, 8 * kind.itemsize - 2)
        right += random.integers(-reach, reach, size=n).astype(kind)
    if way == "specials":
        right[some] = random.choice(np.array(specials(dtype), np.uint64), int(some.sum())).astype(
            kind
        )
    return right
