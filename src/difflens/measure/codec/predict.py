"""What a recipe predicts, in NumPy: the same bits as the compiled loops give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .bits import Words
from .words import Buffer, Kind, orders, words_from, words_of

_MOST = 1 << 22
_INFINITE = np.uint64(0x7FF << 52)
Numbers = NDArray[np.float64]


def scale(
    base: Buffer, out: Buffer, kinds: tuple[Kind, Kind], factor: tuple[float, int], backwards: bool
) -> None:
    """Fill `out` with the base times the factor, so many times; backwards with what it was."""
    first, last = reversed(kinds) if backwards else kinds
    words, view = _words(base, first), memoryview(out).cast("B")
    if len(_words(view, last)) != len(words):
        raise ValueError("the base has another size than the target")
    step = _unscaled if backwards else _scaled
    with np.errstate(all="ignore"):
        for _ in range(factor[1]):
            words = step(words, *kinds, factor[0])
    view[:] = words.tobytes()


def add_product(
    base: Buffer,
    out: Buffer,
    kind: Kind,
    place: tuple[int, int, bool],
    factors: tuple[Buffer, Buffer],
) -> None:
    """Fill `out` with elements from a place on of a matrix plus the product of two.

    The place is the number of the first element, that of columns, and whether the product is
    rounded before it is added.
    """
    words, view = _words(base, kind), memoryview(out).cast("B")
    (start, columns, rounded), sizes = place, [memoryview(each).nbytes for each in factors]
    n, rank = len(words), sizes[1] // 8 // columns if columns > 0 else 0
    fits = rank > 0 and start >= 0 and len(view) == memoryview(base).nbytes
    fits = fits and sizes[1] == rank * columns * 8 and sizes[0] % (rank * 8) == 0
    if not fits or (n and (start + n - 1) // columns >= sizes[0] // 8 // rank):
        raise ValueError("the factors do not fit the tensor")
    rows = np.frombuffer(factors[0], "<f8").reshape(-1, rank)
    across = np.frombuffer(factors[1], "<f8").reshape(rank, columns)
    places = np.arange(start, start + n)
    sums = np.zeros(n)
    with np.errstate(all="ignore"):
        for k in range(rank):
            sums += rows[places // columns, k] * across[k, places % columns]
        if rounded:
            sums = wide(narrow(sums, kind), kind)
        made = narrow(wide(words, kind) + sums, kind)
    view[:] = np.where(_is_nan(words, kind), _signed_nan(words, kind, kind), made).tobytes()


def wide(words: Words, kind: Kind) -> Numbers:
    """Return the values of words; any NaN is one."""
    width, mantissa, exponent = kind
    if width == 8:
        return words.view("<f8").astype(np.float64)
    bits, bias = words.astype(np.uint64), (1 << (exponent - 1)) - 1
    power = (bits >> np.uint64(mantissa) & np.uint64((1 << exponent) - 1)).astype(np.int64)
    rest = (bits & np.uint64((1 << mantissa) - 1)).astype(np.float64)
    whole = np.where(power > 0, rest + float(1 << mantissa), rest)
    values = np.ldexp(whole, np.maximum(power, 1) - bias - mantissa)
    values[_is_nan(words, kind)] = np.nan
    if not _is_finite_only(kind):
        values[(power == (1 << exponent) - 1) & (rest == 0)] = np.inf
    return np.where(bits >> np.uint64(8 * width - 1) > 0, -values, values)


def narrow(values: Numbers, kind: Kind) -> Words:
    """Return the nearest words, ties to even."""
    width, mantissa, exponent = kind
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64)
    magnitude = bits & ~np.uint64(1 << 63)
    lost = magnitude > _INFINITE
    if width == 8:
        return np.where(lost, np.uint64(_nan(kind)), bits).astype("<u8")
    top = ((1 << exponent) - 1) << mantissa
    largest = np.uint64(top | 6 if _is_finite_only(kind) else top)
    power = (magnitude >> np.uint64(52)).astype(np.int64) - 1023 + (1 << (exponent - 1)) - 1
    small = np.clip(1 - power, 0, mantissa + 2)
    shift = (52 - mantissa + small).astype(np.uint64)
    word = magnitude & ~_INFINITE
    word |= np.where(small > 0, np.uint64(1 << 52), np.maximum(power, 0).astype(np.uint64) << 52)
    one = np.uint64(1)
    word = (word + (one << (shift - one)) - one + (word >> shift & one)) >> shift
    word[power < -mantissa - 1] = 0
    sign = bits >> np.uint64(63) << np.uint64(8 * width - 1)
    word = sign | np.minimum(word, largest)
    return np.where(lost, np.uint64(_nan(kind)), word).astype(f"<u{width}")


def _words(data: Buffer, kind: Kind) -> Words:
    if kind[2] < 2 or kind[1] < 1 or (kind[2] > 8 and kind[0] < 8):
        raise ValueError("only floats are predicted")
    return words_of(data, kind, _MOST)


def _scaled(words: Words, kind: Kind, to: Kind, factor: float) -> Words:
    made = narrow(wide(words, kind) * factor, to)
    return np.where(_is_nan(words, kind), _signed_nan(words, kind, to), made)


def _unscaled(words: Words, kind: Kind, to: Kind, factor: float) -> Words:
    """Return the words that the factor turns into these, or some beside them."""
    guess = narrow(wide(words, to) / factor, kind)
    best = guess.copy()
    best_found = _scaled(guess, kind, to, factor) == words
    for step in (-1, 1):
        other = words_from(orders(guess, kind) + np.uint64(step % (1 << 64)), kind)
        hit = ~best_found & (_scaled(other, kind, to, factor) == words)
        best[hit] = other[hit]
        best_found |= hit
    return np.where(_is_nan(words, to), _signed_nan(words, to, kind), best)


def _is_finite_only(kind: Kind) -> bool:
    """Floats of one byte with four bits of exponent use the highest one for numbers."""
    return kind[0] == 1 and kind[2] == 4


def _nan(kind: Kind) -> int:
    top = ((1 << kind[2]) - 1) << kind[1]
    return top | 7 if _is_finite_only(kind) else top | 1 << (kind[1] - 1)


def _is_nan(words: Words, kind: Kind) -> NDArray[np.bool_]:
    top = ((1 << kind[2]) - 1) << kind[1]
    magnitude = words & words.dtype.type((1 << (8 * kind[0] - 1)) - 1)
    if _is_finite_only(kind):
        return magnitude == (top | 7)
    return magnitude > words.dtype.type(top)


def _signed_nan(words: Words, kind: Kind, to: Kind) -> Words:
    sign = words.astype(np.uint64) >> np.uint64(8 * kind[0] - 1)
    return (sign << np.uint64(8 * to[0] - 1) | np.uint64(_nan(to))).astype(f"<u{to[0]}")
