"""The kernel in NumPy: the fallback where nothing was compiled, the oracle where it was.

It answers as the C kernel does, more slowly, and is written to be read. Buffers are read in pieces
that stay in the cache, and each piece twice: for its mean, then for the powers about that mean. One
pass with sums of x, x², x³, x⁴ would not do: on values like 1e8 ± 1 the subtraction at the end
would leave no digit of the variance. Pieces are joined by pairwise formulae: Chan, Golub & LeVeque
(1979), "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances"; Pébay (2008),
"Formulas for Robust, One-Pass Parallel Computation of Covariances and Arbitrary-Order Statistical
Moments".

Squares of F64 values beyond 1e154 overflow: counts and extremes stay exact, the
sums become infinite or NaN.
"""

import os
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from difflens.core.dtypes import ROUNDING

from .layout import COUNTS, FIELDS, STATE, VALUES

# Parts of this kernel, in a file of their own.
from .readings import are_as_read, bytes_of, read, read_gradients, read_weights  # noqa: F401

NAME = "numpy"

_Bytes = bytes | bytearray | memoryview
_Codes = NDArray[np.unsignedinteger[Any]]  # encoded elements, one per item
_Floats = NDArray[np.float64]
_Flags = NDArray[np.bool_]
_Figures = dict[str, Any]  # a state by the names of its fields

_PIECE = 1 << 16  # elements; even, so that no F4 byte is cut

# NumPy's names of the types that it has itself: F32 is "<f4".
_VIEWS = {
    f"{kind}{8 * size}": f"<{kind.lower()}{size}"
    for kind, sizes in (("F", (2, 4, 8)), ("I", (1, 2, 4, 8)), ("U", (1, 2, 4, 8)))
    for size in sizes
}
_VIEWS["C64"] = "<f4"


def _table(dtype: Any, codes: int = 256) -> _Floats:
    table: _Floats = np.arange(codes, dtype=np.uint8).view(dtype).astype(np.float64)
    return table


_TABLES: dict[str, _Floats] = {
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

_MOMENTS = ("min", "max", "mean", "m2", "m3", "m4", "abs_sum")
_PAIRED = ("pair_left_mean", "pair_right_mean", "pair_left_m2", "pair_right_m2", "comoment")
_ADDED = (*(name for name in COUNTS if name != "max_abs_at"), "abs_sum", "square_sum")


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
    total = _unpack(state)
    with np.errstate(all="ignore"):  # infinities and signalling NaNs are data here
        for start in range(0, len(left_codes), _PIECE):
            piece = slice(start, start + _PIECE)
            _add(
                total,
                _measure(left_codes[piece], right_codes[piece], left_dtype, right_dtype, epsilon),
            )
    _pack(total, state)


def merge(state: bytearray, other: _Bytes) -> None:
    """Add the state of the elements that follow."""
    total = _unpack(state)
    _add(total, _unpack(other))
    _pack(total, state)


def same_bytes(left: _Bytes, right: _Bytes) -> bool:
    """Are these the same bytes?

    >>> same_bytes(b"ab", bytearray(b"ab"))
    True
    """
    return np.array_equal(np.frombuffer(left, np.uint8), np.frombuffer(right, np.uint8))


def _unpack(state: _Bytes) -> _Figures:
    if len(state) != STATE.size:
        raise ValueError(f"a state takes {STATE.size} bytes, not {len(state)}")
    return dict(zip(FIELDS, STATE.unpack(state), strict=True))


def _pack(figures: _Figures, state: bytearray) -> None:
    STATE.pack_into(
        state,
        0,
        *(int(figures[name]) for name in COUNTS),
        *(float(figures[name]) for name in VALUES),
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


def decode(buffer: _Bytes, dtype: str) -> _Floats:
    """Return the numbers that encoded elements stand for."""
    return _decode(_codes(buffer, dtype), dtype)


def _decode(codes: _Codes, dtype: str) -> _Floats:
    if dtype in _TABLES:
        return _TABLES[dtype][codes]
    if dtype == "BF16":
        codes, dtype = codes.astype("<u4") << np.uint32(16), "F32"  # BF16 is the upper half of F32
    values: _Floats = codes.view(_VIEWS[dtype]).astype(np.float64)
    return values


def _measure(
    left_codes: _Codes, right_codes: _Codes, left_dtype: str, right_dtype: str, epsilon: float
) -> _Figures:
    """Measure one piece from nothing."""
    left, right = _decode(left_codes, left_dtype), _decode(right_codes, right_dtype)
    same_dtype = left_dtype == right_dtype
    wide = same_dtype and left_dtype in _WIDE
    both_nan = np.isnan(left) & np.isnan(right)
    equal = left_codes == right_codes if wide else left == right
    if same_dtype:
        identical = left_codes == right_codes
    else:
        identical = (equal & (np.signbit(left) == np.signbit(right))) | both_nan
    moved = ~(equal | both_nan)
    finite = np.isfinite(left) & np.isfinite(right)
    broken = np.count_nonzero(moved & ~finite)
    distance = _wide_distance(left_codes, right_codes, left_dtype) if wide else abs(right - left)
    if same_dtype:
        over_rounding = np.count_nonzero(moved)
    else:
        half_ulp = _half_ulp(np.minimum(abs(left), abs(right)), left_dtype, right_dtype)
        over_rounding = np.count_nonzero(finite & (distance > half_ulp)) + broken
    return {
        "count": len(left),
        **_side("left", left, left_codes, left_dtype),
        **_side("right", right, right_codes, right_dtype),
        **_paired(_selected(left, finite), _selected(right, finite)),
        **_changes(np.where(finite, distance, 0.0)),
        "bit_equal": np.count_nonzero(identical),
        "value_equal": np.count_nonzero(equal),
        "over_epsilon": np.count_nonzero(finite & (distance > epsilon)) + broken,
        "over_rounding": over_rounding,
    }


def _selected(values: _Floats, flags: _Flags) -> _Floats:
    return values if flags.all() else values[flags]


def _wide_distance(left: _Codes, right: _Codes, dtype: str) -> _Floats:
    """Subtract 64-bit integers before they become floats: the larger minus the smaller fits U64."""
    view = _VIEWS[dtype]
    right_is_larger = right.view(view) > left.view(view)
    return np.where(right_is_larger, right - left, left - right).astype(np.float64)


def _half_ulp(smaller: _Floats, left_dtype: str, right_dtype: str) -> _Floats:
    """Halve the unit in the last place of the format that is coarser at this magnitude."""
    exponent = np.where(smaller == 0, -1100, np.frexp(smaller)[1] - 1)
    half = np.zeros_like(smaller)
    for dtype in {left_dtype, right_dtype} & ROUNDING.keys():
        least, mantissa = ROUNDING[dtype]
        half = np.maximum(half, np.ldexp(1.0, np.maximum(exponent, least) - mantissa - 1))
    return half


def _deviations(values: _Floats) -> tuple[float, _Floats]:
    """Return the mean and each value's distance from it.

    A mean lies between the extremes; holding it there makes that of a constant
    exact, so that its variance is 0 and not the square of a rounding.
    """
    mean = float(np.clip(values.mean(), values.min(), values.max()))
    return mean, values - mean


def _side(side: str, values: _Floats, codes: _Codes, dtype: str) -> _Figures:
    nan, infinite = np.isnan(values), np.isinf(values)
    finite = _selected(values, ~(nan | infinite))
    figures: _Figures = dict.fromkeys(_MOMENTS, 0.0)
    if finite.size:
        mean, deviation = _deviations(finite)
        square = deviation * deviation
        figures = {
            "min": finite.min() + 0.0,  # -0 + 0 = +0
            "max": finite.max() + 0.0,
            "mean": mean,
            "m2": square.sum(),
            "m3": (square * deviation).sum(),
            "m4": (square * square).sum(),
            "abs_sum": abs(finite).sum(),
        }
    figures |= {
        "nan": np.count_nonzero(nan),
        "positive_infinite": np.count_nonzero(infinite & (values > 0)),
        "negative_infinite": np.count_nonzero(infinite & (values < 0)),
        "zeros": np.count_nonzero(values == 0),
        "odd": np.count_nonzero(codes > 1) if dtype == "BOOL" else 0,
    }
    return {f"{side}_{name}": figure for name, figure in figures.items()}


def _paired(left: _Floats, right: _Floats) -> _Figures:
    """Measure how both sides go together, over the elements finite on both."""
    if not left.size:
        return {"pairs": 0, "sign_flips": 0, **dict.fromkeys(_PAIRED, 0.0)}
    left_mean, left_deviation = _deviations(left)
    right_mean, right_deviation = _deviations(right)
    return {
        "pairs": left.size,
        "sign_flips": np.count_nonzero(((left < 0) & (right > 0)) | ((left > 0) & (right < 0))),
        "pair_left_mean": left_mean,
        "pair_right_mean": right_mean,
        "pair_left_m2": (left_deviation * left_deviation).sum(),
        "pair_right_m2": (right_deviation * right_deviation).sum(),
        "comoment": (left_deviation * right_deviation).sum(),
    }


def _changes(distance: _Floats) -> _Figures:
    at = distance.argmax()  # the first of equals
    return {
        "max_abs": distance[at],
        "max_abs_at": at,
        "abs_sum": distance.sum(),
        "square_sum": (distance * distance).sum(),
    }


def _add(total: _Figures, later: _Figures) -> None:
    """Add the figures of the elements that follow."""
    if not later["count"]:
        return
    if not total["count"]:
        total.update(later)
        return
    for side in ("left", "right"):
        _add_side(side, total, later)
    _add_paired(total, later)
    if later["max_abs"] > total["max_abs"]:
        total["max_abs"] = later["max_abs"]
        total["max_abs_at"] = total["count"] + later["max_abs_at"]
    for name in _ADDED:
        total[name] += later[name]


def _finite(figures: _Figures, side: str) -> int:
    lost = ("nan", "positive_infinite", "negative_infinite")
    return int(figures["count"] - sum(figures[f"{side}_{name}"] for name in lost))


def _add_side(side: str, total: _Figures, later: _Figures) -> None:
    """Join the moments of one side, for n = n₁ + n₂, δ = μ₂ - μ₁, p = n₁/n, q = n₂/n.

    μ = μ₁ + δq
    M₂ = M₂₁ + M₂₂ + δ²n₁q
    M₃ = M₃₁ + M₃₂ + δ³n₁q(p - q) + 3δ(pM₂₂ - qM₂₁)
    M₄ = M₄₁ + M₄₂ + δ⁴n₁q(p² - pq + q²) + 6δ²(p²M₂₂ + q²M₂₁) + 4δ(pM₃₂ - qM₃₁)
    """
    names = [f"{side}_{name}" for name in _MOMENTS]
    n1, n2 = _finite(total, side), _finite(later, side)
    if not n2:
        return
    if not n1:
        total.update({name: later[name] for name in names})
        return
    low, high, mean, m2, m3, m4, abs_sum = (total[name] for name in names)
    later_low, later_high, later_mean, k2, k3, k4, later_abs_sum = (later[name] for name in names)
    p, q = n1 / (n1 + n2), n2 / (n1 + n2)
    delta = later_mean - mean
    square = delta * delta
    joined = (
        min(low, later_low),
        max(high, later_high),
        mean + delta * q,
        m2 + k2 + square * n1 * q,
        m3 + k3 + square * delta * n1 * q * (p - q) + 3 * delta * (p * k2 - q * m2),
        m4
        + k4
        + square * square * n1 * q * (p * p - p * q + q * q)
        + 6 * square * (p * p * k2 + q * q * m2)
        + 4 * delta * (p * k3 - q * m3),
        abs_sum + later_abs_sum,
    )
    total.update(zip(names, joined, strict=True))


def _add_paired(total: _Figures, later: _Figures) -> None:
    """Join the paired moments; C = C₁ + C₂ + δₗδᵣn₁q."""
    n1, n2 = total["pairs"], later["pairs"]
    if not n2:
        return
    if not n1:
        total.update({name: later[name] for name in _PAIRED})
        return
    q = n2 / (n1 + n2)
    left_delta = later["pair_left_mean"] - total["pair_left_mean"]
    right_delta = later["pair_right_mean"] - total["pair_right_mean"]
    total["pair_left_mean"] += left_delta * q
    total["pair_right_mean"] += right_delta * q
    total["pair_left_m2"] += later["pair_left_m2"] + left_delta * left_delta * n1 * q
    total["pair_right_m2"] += later["pair_right_m2"] + right_delta * right_delta * n1 * q
    total["comoment"] += later["comoment"] + left_delta * right_delta * n1 * q


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
