"""Words of tensors in the NumPy codec: their order, the class of their exponent, tokens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bits import Array, Words, lengths_of

CLASSES = 16
Kind = tuple[int, int, int]
Buffer = bytes | bytearray | memoryview


class View(NamedTuple):
    """How contexts are made: classes of exponents below the top, merged 2^shift to one."""

    kind: Kind
    top: int
    shift: int


def words_of(data: Buffer, kind: Kind, most: int) -> Words:
    """Look at a chunk as unsigned words."""
    view = memoryview(data).cast("B")
    width, mantissa, exponent = kind
    fits = width in (1, 2, 4, 8) and 0 <= exponent <= 11
    fits = fits and mantissa >= 0 and (not exponent or mantissa + exponent + 1 == 8 * width)
    if not fits or len(view) % width or len(view) // width > most:
        what = f"words of {width} bytes, {exponent} + {mantissa} bits"
        raise ValueError(f"{len(view)} bytes are no chunk of {what}")
    return np.frombuffer(view, f"<u{width}")


def orders(words: Words, kind: Kind) -> Array:
    """Return the places of values in the order of all values of their type."""
    wide = words.astype(np.uint64)
    if not kind[2]:
        return wide
    sign, mask = np.uint64(1 << (8 * kind[0] - 1)), np.uint64((1 << 8 * kind[0]) - 1)
    return np.where(wide & sign > 0, ~wide & mask, wide | sign)


def words_from(order: Array, kind: Kind) -> Words:
    """Return the words at places of the order; the places wrap."""
    mask = np.uint64((1 << 8 * kind[0]) - 1)
    order = order & mask
    if kind[2]:
        sign = np.uint64(1 << (8 * kind[0] - 1))
        order = np.where(order & sign > 0, order & ~sign, ~order & mask)
    return order.astype(f"<u{kind[0]}")


def exponents_of(words: Words, kind: Kind) -> NDArray[np.int64]:
    """Return the bits of the exponents."""
    bits = words.astype(np.uint64) >> np.uint64(kind[1]) & np.uint64((1 << kind[2]) - 1)
    return bits.astype(np.int64)


def top_of(words: Words, kind: Kind) -> int:
    """Return an exponent that 99.9 % of a sample do not exceed."""
    if not kind[2]:
        return 0
    sample = exponents_of(words[:: len(words) // 4096 + 1], kind)
    above = np.cumsum(np.bincount(sample, minlength=1 << kind[2])[::-1])
    first = int(np.argmax(above > len(sample) // 1000))
    return max((1 << kind[2]) - 1 - first, 0)


def classes_of(words: Words, view: View) -> NDArray[np.int64]:
    """Return the context of each element."""
    if not view.kind[2]:
        return np.zeros(len(words), np.int64)
    below = view.top - exponents_of(words, view.kind)
    return np.clip(below, 0, CLASSES - 1) >> view.shift


def folded(left: Words, right: Words, kind: Kind) -> Array:
    """Return the steps between values, 0 -1 1 -2 2 ... as 0 1 2 3 4 ..."""
    spare = 64 - 8 * kind[0]
    shifted = (orders(right, kind) - orders(left, kind)) << np.uint64(spare)
    steps = shifted.view(np.int64) >> np.int64(spare)
    value = (steps.view(np.uint64) << np.uint64(1)) ^ (steps >> np.int64(63)).view(np.uint64)
    return value & np.uint64((1 << 8 * kind[0]) - 1)


def unfolded(values: Array) -> Array:
    """Return the steps, negative ones wrapped."""
    return values >> np.uint64(1) ^ (np.uint64(0) - (values & np.uint64(1)))


def tokens_of(values: Array) -> NDArray[np.int64]:
    """Return the tokens: values below 16 themselves, of others the length and two bits."""
    lengths = np.maximum(lengths_of(values), 5)
    two = (values >> (lengths - 3).astype(np.uint64) & np.uint64(3)).astype(np.int64)
    return np.where(values < 16, values.astype(np.int64), 16 + (lengths - 5) * 4 + two)


def rest_bits(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many low bits follow each token."""
    return np.where(tokens < 16, 0, (tokens - 16) // 4 + 2)


def values_of(tokens: NDArray[np.int64], rests: Array) -> Array:
    """Return the values of tokens and the low bits beside them."""
    high = (4 + (tokens - 16) % 4).astype(np.uint64) << rest_bits(tokens).astype(np.uint64)
    return np.where(tokens < 16, tokens.astype(np.uint64), high | rests)
