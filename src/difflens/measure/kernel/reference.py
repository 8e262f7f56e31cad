"""The kernel in NumPy: the fallback where nothing was compiled, the oracle where it was.

It answers as the C kernel does, to the last bit, more slowly, and is written to be read. Powers are
summed block by block about a pivot near the mean. Sums of x, x², x³, x⁴ about zero would not do: on
values like 1e8 ± 1 the subtraction at the end would leave no digit of the variance. Blocks are
joined by pairwise formulae: Chan, Golub & LeVeque (1979), "Updating Formulae and a Pairwise
Algorithm for Computing Sample Variances"; Pébay (2008), "Formulas for Robust, One-Pass Parallel
Computation of Covariances and Arbitrary-Order Statistical Moments".

What rounds is defined here, and done alike by every kernel:

- Blocks end at multiples of 8,192 elements; one that holds a NaN, an infinity or a 64-bit integer
  that is no double is cut at multiples of 1,024.
- Element i of a block adds to lane i mod 8 of each sum; then the lanes are added, first to last.
- A product is rounded before it is added. Formulae are evaluated from left to right, as written.

Squares of F64 values beyond 1e154 overflow: counts and extremes stay exact, the
sums become infinite or NaN.
"""

import math
import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from difflens.core.dtypes import ROUNDING

from .layout import BLOCK, COUNTS, FIELDS, STATE, VALUES
from .moments import Figures, Flags, Floats, add, add_up, centred, mean_of, pivot_near, powers

# Parts of this kernel, in a file of their own.
from .readings import are_as_read, bytes_of, read, read_gradients, read_weights  # noqa: F401

NAME = "numpy"

_Bytes = bytes | bytearray | memoryview
_Codes = NDArray[np.unsignedinteger[Any]]  # encoded elements, one per item

_SMALL_BLOCK = 1024
_PIECE = 1 << 16  # elements read at a time; even, so that no F4 byte is cut

# NumPy's names of the types that it has itself: F32 is "<f4".
_VIEWS = {
    f"{kind}{8 * size}": f"<{kind.lower()}{size}"
    for kind, sizes in (("F", (2, 4, 8)), ("I", (1, 2, 4, 8)), ("U", (1, 2, 4, 8)))
    for size in sizes
}
_VIEWS["C64"] = "<f4"


def _table(dtype: Any, codes: int = 256) -> Floats:
    table: Floats = np.arange(codes, dtype=np.uint8).view(dtype).astype(np.float64)
    return table


_TABLES: dict[str, Floats] = {
    "F8_E4M3": _table(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": _table(ml_dtypes.float8_e5m2),
    "F8_E4M3FNUZ": _table(ml_dtypes.float8_e4m3fnuz),
    "F8_E5M2FNUZ": _table(ml_dtypes.float8_e5m2fnuz),
    "F8_E8M0": _table(ml_dtypes.float8_e8m0fnu),
    "F4": _table(ml_dtypes.float4_e2m1fn, 16),
    "BOOL": (np.arange(256) != 0).astype(np.float64),
}

# Bits of an element; C64 counts its parts.
_BITS = {
    **{dtype: 8 * np.dtype(view).itemsize for dtype, view in _VIEWS.items()},
    **dict.fromkeys(_TABLES, 8),
    "BF16": 16,
    "F4": 4,
}

_WIDE = frozenset({"I64", "U64"})  # two of them may differ where their floats do not
_EXACT = 2.0**53  # integers below are floats


def scan(  # noqa: PLR0917 - both kernels are called by position
    left: _Bytes, right: _Bytes, left_dtype: str, right_dtype: str, epsilon: float, state: bytearray
) -> None:
    r"""Add two encoded buffers of as many elements to a state.

    >>> state = bytearray(STATE.size)
    >>> scan(b"\x00\x01", b"\x00\x03", "U8", "U8", 0.0, state)
    >>> dict(zip(FIELDS, STATE.unpack(state)))["max_abs"]
    2.0
    """
    left_codes, right_codes = _codes(left, left_dtype), _codes(right, right_dtype)
    if len(left_codes) != len(right_codes):
        raise ValueError(f"left holds {len(left_codes)} elements, right {len(right_codes)}")
    if left_dtype != right_dtype and "C64" in {left_dtype, right_dtype}:
        raise ValueError(f"C64 is compared with C64 only, not {left_dtype} with {right_dtype}")
    run = _Run(left_codes, right_codes, left_dtype, right_dtype)
    total = _unpack(state)
    with np.errstate(all="ignore"):  # infinities and signalling NaNs are data here
        for block in _cut(run, total, BLOCK):
            sums = _sum_together(block, total)
            if sums:
                add(total, _count(block, epsilon) | sums)
                continue
            for small in _cut(block, total, _SMALL_BLOCK):
                sums = _sum_together(small, total) or _sum_apart(small)
                add(total, _count(small, epsilon) | sums)
    _pack(total, state)


def merge(state: bytearray, other: _Bytes) -> None:
    """Add the state of the elements that follow."""
    total = _unpack(state)
    add(total, _unpack(other))
    _pack(total, state)


def same_bytes(left: _Bytes, right: _Bytes) -> bool:
    """Are these the same bytes?

    >>> same_bytes(b"ab", bytearray(b"ab"))
    True
    """
    return np.array_equal(np.frombuffer(left, np.uint8), np.frombuffer(right, np.uint8))


def _unpack(state: _Bytes) -> Figures:
    if len(state) != STATE.size:
        raise ValueError(f"a state takes {STATE.size} bytes, not {len(state)}")
    return dict(zip(FIELDS, STATE.unpack(state), strict=True))


def _pack(figures: Figures, state: bytearray) -> None:
    STATE.pack_into(
        state,
        0,
        *(int(figures[name]) for name in COUNTS),
        *(math.nan if figures[name] != figures[name] else float(figures[name]) for name in VALUES),
    )


def _codes(buffer: _Bytes, dtype: str) -> _Codes:
    """See a buffer as unsigned integers, one per element."""
    if dtype not in _BITS:
        raise ValueError(f"the kernel cannot read elements of {dtype}")
    encoded = np.frombuffer(buffer, np.uint8)
    if dtype == "F4":
        return np.stack((encoded & 15, encoded >> 4), axis=-1).reshape(-1)
    size = _BITS[dtype] // 8
    if len(encoded) % (8 if dtype == "C64" else size):
        raise ValueError(f"{len(encoded)} bytes are no whole number of elements of {dtype}")
    return encoded.view(f"<u{size}")


def decode(buffer: _Bytes, dtype: str) -> Floats:
    """Return the numbers that encoded elements stand for."""
    return _decode(_codes(buffer, dtype), dtype)


def _decode(codes: _Codes, dtype: str) -> Floats:
    if dtype in _TABLES:
        return _TABLES[dtype][codes]
    if dtype == "BF16":
        codes, dtype = codes.astype("<u4") << np.uint32(16), "F32"  # BF16 is the upper half of F32
    values: Floats = codes.view(_VIEWS[dtype]).astype(np.float64)
    return values


class _Run:
    """Elements of both sides, encoded, and as numbers once they are asked for."""

    def __init__(
        self, left_codes: _Codes, right_codes: _Codes, left_dtype: str, right_dtype: str
    ) -> None:
        self.left_codes, self.right_codes = left_codes, right_codes
        self.left_dtype, self.right_dtype = left_dtype, right_dtype
        self.same_dtype = left_dtype == right_dtype
        self.wide = self.same_dtype and left_dtype in _WIDE

    @cached_property
    def left(self) -> Floats:
        return _decode(self.left_codes, self.left_dtype)

    @cached_property
    def right(self) -> Floats:
        return _decode(self.right_codes, self.right_dtype)

    @cached_property
    def finite(self) -> Flags:
        flags: Flags = np.isfinite(self.left) & np.isfinite(self.right)
        return flags

    @cached_property
    def distance(self) -> Floats:
        if self.wide:
            return _wide_distance(self.left_codes, self.right_codes, self.left_dtype)
        distance: Floats = abs(self.right - self.left)
        return distance


def _cut(run: _Run, total: Figures, size: int) -> Iterator[_Run]:
    """Yield blocks that end at multiples of a size; the total is to grow by each."""
    start, count = 0, len(run.left_codes)
    while start < count:
        stop = start + size - total["count"] % size
        left, right = run.left_codes[start:stop], run.right_codes[start:stop]
        yield _Run(left, right, run.left_dtype, run.right_dtype)
        start = stop


def _count(run: _Run, epsilon: float) -> Figures:
    """Count and find what no rounding touches."""
    left, right, finite = run.left, run.right, run.finite
    both_nan = np.isnan(left) & np.isnan(right)
    equal = run.left_codes == run.right_codes if run.wide else left == right
    if run.same_dtype:
        identical = run.left_codes == run.right_codes
    else:
        identical = (equal & (np.signbit(left) == np.signbit(right))) | both_nan
    moved = ~(equal | both_nan)
    broken = np.count_nonzero(moved & ~finite)
    distance = np.where(finite, run.distance, 0.0)
    if run.same_dtype:
        over_rounding = np.count_nonzero(moved)
    else:
        half_ulp = _half_ulp(np.minimum(abs(left), abs(right)), run.left_dtype, run.right_dtype)
        over_rounding = np.count_nonzero(finite & (distance > half_ulp)) + broken
    flips = finite & (((left < 0) & (right > 0)) | ((left > 0) & (right < 0)))
    at = distance.argmax()  # the first of equals
    return {
        "count": len(left),
        **_count_side("left", left, run.left_codes, run.left_dtype),
        **_count_side("right", right, run.right_codes, run.right_dtype),
        "pairs": np.count_nonzero(finite),
        "sign_flips": np.count_nonzero(flips),
        "max_abs": float(distance[at]),
        "max_abs_at": int(at),
        "bit_equal": np.count_nonzero(identical),
        "value_equal": np.count_nonzero(equal),
        "over_epsilon": np.count_nonzero(finite & (distance > epsilon)) + broken,
        "over_rounding": over_rounding,
    }


def _wide_distance(left: _Codes, right: _Codes, dtype: str) -> Floats:
    """Subtract 64-bit integers before they become floats: the larger minus the smaller fits U64."""
    view = _VIEWS[dtype]
    right_is_larger = right.view(view) > left.view(view)
    return np.where(right_is_larger, right - left, left - right).astype(np.float64)


def _half_ulp(smaller: Floats, left_dtype: str, right_dtype: str) -> Floats:
    """Halve the unit in the last place of the format that is coarser at this magnitude."""
    exponent = np.where(smaller == 0, -1100, np.frexp(smaller)[1] - 1)
    half = np.zeros_like(smaller)
    for dtype in {left_dtype, right_dtype} & ROUNDING.keys():
        least, mantissa = ROUNDING[dtype]
        half = np.maximum(half, np.ldexp(1.0, np.maximum(exponent, least) - mantissa - 1))
    return half


def _count_side(side: str, values: Floats, codes: _Codes, dtype: str) -> Figures:
    nan, infinite = np.isnan(values), np.isinf(values)
    finite = values[~(nan | infinite)]
    return {
        f"{side}_min": float(finite.min()) + 0.0 if finite.size else 0.0,  # -0 + 0 = +0
        f"{side}_max": float(finite.max()) + 0.0 if finite.size else 0.0,
        f"{side}_nan": np.count_nonzero(nan),
        f"{side}_positive_infinite": np.count_nonzero(infinite & (values > 0)),
        f"{side}_negative_infinite": np.count_nonzero(infinite & (values < 0)),
        f"{side}_zeros": np.count_nonzero(values == 0),
        f"{side}_odd": np.count_nonzero(codes > 1) if dtype == "BOOL" else 0,
    }


def _sum_together(run: _Run, total: Figures) -> Figures | None:
    """Sum both sides and the pairs of a block at once, about pivots near the means so far.

    None where a value is lost: one that is not finite or too wide, or sums that overflow.
    """
    if not run.finite.all():
        return None
    if run.wide and max(abs(run.left).max(), abs(run.right).max()) >= _EXACT:
        return None
    pivots = pivot_near(total, "left", run.left), pivot_near(total, "right", run.right)
    sides, paired = _sum_pairs(run, pivots)
    lost = not all(math.isfinite(sides[f"{side}_abs_sum"]) for side in ("left", "right"))
    return None if lost else sides | paired


def _sum_apart(run: _Run) -> Figures:
    """Sum a block's finite values of each side, and its finite pairs, about means of their own."""
    figures: Figures = {}
    for side, values in (("left", run.left), ("right", run.right)):
        kept = np.isfinite(values)
        pivot = mean_of(values, kept)
        sums = add_up(*powers(values, pivot), kept=kept)
        figures |= centred(side, sums, int(np.count_nonzero(kept)), pivot)
    pivots = mean_of(run.left, run.finite), mean_of(run.right, run.finite)
    return figures | _sum_pairs(run, pivots, kept=run.finite)[1]


def _sum_pairs(
    run: _Run, pivots: tuple[float, float], kept: Flags | None = None
) -> tuple[Figures, Figures]:
    """Return the moments of both sides of the pairs, and how they go together."""
    left, right = run.left - pivots[0], run.right - pivots[1]
    *sums, cross, abs_sum, square_sum = add_up(
        *powers(run.left, pivots[0]),
        *powers(run.right, pivots[1]),
        left * right,
        run.distance,
        run.distance * run.distance,
        kept=kept,
    )
    count = len(run.left) if kept is None else int(np.count_nonzero(kept))
    sides = {
        **centred("left", sums[:5], count, pivots[0]),
        **centred("right", sums[5:], count, pivots[1]),
    }
    return sides, {
        "pair_left_mean": sides["left_mean"],
        "pair_right_mean": sides["right_mean"],
        "pair_left_m2": sides["left_m2"],
        "pair_right_m2": sides["right_m2"],
        "comoment": cross - sums[0] * (sums[5] / count) if count else 0.0,
        "abs_sum": abs_sum,
        "square_sum": square_sum,
    }


def scan_files(  # noqa: PLR0917  the compiled one takes them by position
    left: tuple[int, int, str],
    right: tuple[int, int, str],
    count: int,
    epsilon: float,
    looking: bool,
    state: bytearray,
) -> bool:
    """Read and scan; while looking, pass over equal bytes. Are all of them equal?"""
    at = 0
    while at < count:
        some = min(_PIECE, count - at)
        parts = [_read(*side, at, some) for side in (left, right)]
        if looking and parts[0] == parts[1]:
            at += some
            continue
        if looking:
            looking = False
            if at:  # what came before was equal, but its statistics are wanted now
                at = 0
                continue
        scan(parts[0], parts[1], left[2], right[2], epsilon, state)
        at += some
    return looking


def _read(descriptor: int, offset: int, dtype: str, first: int, count: int) -> bytes:
    width = _BITS[dtype]
    start, stop = first * width // 8, (first + count) * width // 8
    data = b""
    while len(data) < stop - start:
        more = os.pread(descriptor, stop - start - len(data), offset + start + len(data))
        if not more:
            raise EOFError("the file ends before the tensor does")
        data += more
    return data
