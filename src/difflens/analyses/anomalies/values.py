"""Single values that should not be: not finite, as large as the dtype goes, alone far out."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ...diffs import Diff
from ...measure.extremes import Extremes, Large
from ...measure.histogram import QUANTILES, Histogram
from ...records import Delta, TensorInfo
from .anomaly import Anomaly, Case, Detection

_QUARTILES = QUANTILES.index(0.25), QUANTILES.index(0.75)
_IQR = 1.3489795003921634  # of the normal law, in units of its deviation
_LEAST = 100  # elements below which nine values are not few
_SCALES = ("_scale", "_scale_inv")
_CODES = {"F64": "<d", "F32": "<f", "F16": "<e", "BF16": "<f"}


def nan_inf(case: Case) -> Detection:
    """Any value of a changed tensor that is NaN or infinite."""
    found: list[Anomaly] = []
    tested = 0
    for delta in case.diff.deltas:
        after = None if delta.kind in {"identical", "tied"} else delta.stats("right")
        if after is None:
            continue
        tested += 1
        if after.nonfinite:
            before = delta.stats("left")
            numbers = {
                "nan": after.nan,
                "infinite": after.positive_infinite + after.negative_infinite,
                "left": before.nonfinite if before else None,
            }
            text = f"{after.nonfinite} values are NaN or infinite"
            found.append(Anomaly("nan_inf", delta.name, text, numbers, "critical"))
    return Detection("nan_inf", tested, tuple(found))


def dtype_saturation(case: Case) -> Detection:
    """Values at the largest finite number of their dtype that were not there before."""
    scaled = _with_scales(case.diff)
    found: list[Anomaly] = []
    tested = 0
    for delta, measure in case.diff.measured(Extremes):
        info = delta.pair.right
        if info is None or info.stored or info.name in scaled or measure.newly_saturated is None:
            continue
        tested += 1
        if measure.newly_saturated:
            text = f"{measure.newly_saturated} values are at the largest number {info.dtype} has"
            numbers = {"newly_saturated": float(measure.newly_saturated)}
            found.append(Anomaly("dtype_saturation", delta.name, text, numbers, "critical"))
    return Detection("dtype_saturation", tested, tuple(found))


def isolated_extreme_value(case: Case) -> Detection:
    """Few values beyond any law: |w| > z s and > 1,000 times the 99.99 % quantile of |w|.

    z is the normal quantile at 0.01/N two-sided, s the interquartile range over 1.349. In a tensor
    of fewer than 90,000 values the quantile is that of all but the eight largest.
    """
    shapes = {id(delta): measure for delta, measure in case.diff.measured(Histogram)}
    found: list[Anomaly] = []
    tested = 0
    for delta, measure in case.diff.measured(Extremes):
        histogram = shapes.get(id(delta))
        if histogram is None or measure.elements < _LEAST:
            continue
        tested += 1
        found += _isolated(case, delta, measure, histogram)
    return Detection("isolated_extreme_value", tested, tuple(found))


def _isolated(
    case: Case, delta: Delta, measure: Extremes, histogram: Histogram
) -> Iterator[Anomaly]:
    from scipy.special import ndtri

    most = int(case.limits["extreme_count"])
    low, high = (histogram.right_quantiles[at] for at in _QUARTILES)
    reach = -float(ndtri(case.limits["extreme_p"] / measure.elements / 2)) * (high - low) / _IQR
    usual = min(histogram.right_q9999, *(abs(each.right) for each in measure.largest[most:]))
    bound = max(reach, case.limits["extreme_ratio"] * usual)
    out = [each for each in measure.largest if abs(each.right) > bound]
    out = [each for each in out if each.right != each.left]
    if not out or len(out) > most or bound <= 0:
        return
    info = delta.pair.right
    if info is not None:
        text = f"{len(out)} values far beyond all others: {_shown(out[0], info)}"
        numbers = {"values": float(len(out)), "largest": out[0].right, "usual": usual,
                   "left": out[0].left}  # fmt: skip
        yield Anomaly("isolated_extreme_value", delta.name, text, numbers, "high")


def _shown(value: Large, info: TensorInfo) -> str:
    """Tell place, value and bits: a flipped bit shows."""
    index = []
    place = value.place
    for length in reversed(info.shape):
        place, along = divmod(place, length)
        index.append(along)
    said = f"{list(reversed(index))} {value.left:.4g} -> {value.right:.4g}"
    codes = bits_of(value.left, info.dtype), bits_of(value.right, info.dtype)
    if codes[0] is None or codes[1] is None:
        return said
    width = 16 if info.dtype in {"F16", "BF16"} else 64 if info.dtype == "F64" else 32
    flipped = (codes[0] ^ codes[1]).bit_count()
    return f"{said}, bits {codes[0]:0{width}b} -> {codes[1]:0{width}b} ({flipped} differ)"


def bits_of(value: float, dtype: str) -> int | None:
    """Give the bits of a number in its format; None for formats that are not written out.

    >>> hex(bits_of(1.0, "BF16"))
    '0x3f80'
    """
    if dtype not in _CODES:
        return None
    try:
        code = int.from_bytes(struct.pack(_CODES[dtype], value), "little")
    except OverflowError:  # what a coarser dtype could not hold
        return None
    return code >> 16 if dtype == "BF16" else code


def _with_scales(diff: Diff) -> set[str]:
    """Name the tensors whose scales stand beside them: those fill their dtype on purpose."""
    names = {pair.right.name for pair in diff.pairs if pair.right}
    return {name for name in names if any(f"{name}{scale}" in names for scale in _SCALES)}
