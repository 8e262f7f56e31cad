"""Values that should not be, one by one and as a distribution."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from difflens.core.records import Delta, TensorInfo
from difflens.measure.extremes import Extremes, Large
from difflens.measure.histogram import QUANTILES, Histogram
from difflens.models.anatomy.roles import is_parameter, role
from difflens.stats.distributions import histograms, jensen_shannon

from ...answer import Question
from ...diff import Diff
from .anomaly import Anomaly, Detection

if TYPE_CHECKING:
    from numpy.typing import NDArray


_QUARTILES = QUANTILES.index(0.25), QUANTILES.index(0.75)
_IQR = 1.3489795003921634  # of the normal law, in units of its deviation
_LEAST = 100  # elements below which nine values are not few
_SCALES = ("_scale", "_scale_inv")
_CODES = {"F64": "<d", "F32": "<f", "F16": "<e", "BF16": "<f"}


def nan_inf(asked: Question) -> Detection:
    """Any value of a changed tensor that is NaN or infinite."""
    found: list[Anomaly] = []
    tested = 0
    for delta in asked.diff.deltas:
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


def dtype_saturation(asked: Question) -> Detection:
    """Values at the largest finite number of their dtype that were not there before."""
    scaled = _with_scales(asked.diff)
    found: list[Anomaly] = []
    tested = 0
    for delta, measure in asked.diff.measured(Extremes):
        info = delta.pair.right
        if info is None or info.stored or info.name in scaled or measure.newly_saturated is None:
            continue
        tested += 1
        if measure.newly_saturated:
            text = f"{measure.newly_saturated} values are at the largest number {info.dtype} has"
            numbers = {"newly_saturated": float(measure.newly_saturated)}
            found.append(Anomaly("dtype_saturation", delta.name, text, numbers, "critical"))
    return Detection("dtype_saturation", tested, tuple(found))


def isolated_extreme_value(asked: Question) -> Detection:
    """Few values beyond any law: |w| > z s and > 1,000 times the 99.99 % quantile of |w|.

    z is the normal quantile at 0.01/N two-sided, s the interquartile range over 1.349. In a tensor
    of fewer than 90,000 values the quantile is that of all but the eight largest.
    """
    shapes = {id(delta): measure for delta, measure in asked.diff.measured(Histogram)}
    found: list[Anomaly] = []
    tested = 0
    for delta, measure in asked.diff.measured(Extremes):
        histogram = shapes.get(id(delta))
        if histogram is None or measure.elements < _LEAST:
            continue
        tested += 1
        found += _isolated(asked, delta, measure, histogram)
    return Detection("isolated_extreme_value", tested, tuple(found))


def _isolated(
    asked: Question, delta: Delta, measure: Extremes, histogram: Histogram
) -> Iterator[Anomaly]:
    from scipy.special import ndtri

    most = int(asked.answer["extreme_count"])
    low, high = (histogram.right_quantiles[at] for at in _QUARTILES)
    reach = -float(ndtri(asked.answer["extreme_p"] / measure.elements / 2)) * (high - low) / _IQR
    usual = min(histogram.right_q9999, *(abs(each.right) for each in measure.largest[most:]))
    bound = max(reach, asked.answer["extreme_ratio"] * usual)
    out = [each for each in measure.largest if abs(each.right) > bound]
    out = [each for each in out if each.right != each.left]
    if not out or len(out) > most or bound <= 0:
        return
    info = delta.pair.right
    if info is not None:
        text = f"{len(out)} values far beyond all others: {_shown(out[0], info)}"
        numbers = {
            "values": float(len(out)),
            "largest": out[0].right,
            "usual": usual,
            "left": out[0].left,
        }
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
    """Return the bits of a number in its format; None for formats that are not written out.

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


_SAMPLE, _SPANS = 1 << 16, 64  # values taken of one tensor, in so many stretches
_BINS = 256
_PEERS = 3  # other tensors that show what is usual
_LAYERS = 8  # layers of the same role whose distances tell the spread


def distribution_shift(asked: Question) -> Detection:
    """W₁ above a tenth of the deviation, unlike its peers, and a divergence no two layers have."""
    shifts = list(_shifts(asked))
    found: list[Anomaly] = []
    for at, (delta, shift) in enumerate(shifts):
        if shift <= asked.answer["shift"]:
            continue
        if shift < asked.answer["peer_ratio"] * _usual(shifts, at):
            continue
        moved, spread = _divergences(asked.diff, delta)
        if moved > spread:
            text = f"values moved by {shift:.3g} of their deviation on average (W1)"
            numbers = {"relative_wasserstein": shift, "jensen_shannon": moved, "spread": spread}
            big = shift > asked.answer["shift_medium"]
            found.append(
                Anomaly("distribution_shift", delta.name, text, numbers, "medium" if big else "low")
            )
    return Detection("distribution_shift", len(shifts), tuple(found))


def _shifts(asked: Question) -> Iterator[tuple[Delta, float]]:
    """Yield how far the values of each parameter moved that is large enough."""
    for delta, histogram in asked.diff.measured(Histogram):
        left, right = delta.pair.left, delta.pair.right
        if not (left and right and is_parameter(delta.name, left.dtype, right.dtype)):
            continue
        if min(left.count, right.count) >= asked.answer["shift_values"]:
            yield delta, histogram.relative_wasserstein or 0.0


def _usual(shifts: Sequence[tuple[Delta, float]], at: int) -> float:
    """Return the median shift of its role, or of all others where its role has few; else 0."""
    others = [*shifts[:at], *shifts[at + 1 :]]
    wanted = role(shifts[at][0].name)
    alike = [shift for delta, shift in others if role(delta.name) == wanted]
    group = alike if len(alike) >= _PEERS else [shift for _, shift in others]
    return median(group) if len(group) >= _PEERS else 0.0


def _divergences(diff: Diff, delta: Delta) -> tuple[float, float]:
    """Return the divergence of the pair, and the largest one among layers of its role on the left.

    A tensor alone in its role is held against itself: one half of its values against the other.
    """
    left, right = delta.pair.left, delta.pair.right
    if left is None or right is None:
        return 0.0, 0.0
    before = _sampled(diff, "left", left)
    moved = _apart(before, _sampled(diff, "right", right))
    spread = _apart(before[::2], before[1::2])
    for other in _like(diff, left):
        spread = max(spread, _apart(before, _sampled(diff, "left", other)))
    return moved, spread


def _like(diff: Diff, info: TensorInfo) -> Iterator[TensorInfo]:
    """Yield the first layers of the same role and number of dimensions on the left."""
    wanted, count = role(info.name), 0
    for pair in diff.pairs:
        other = pair.left
        if other is None or other.name == info.name or count == _LAYERS:
            continue
        alike = role(other.name) == wanted and len(other.shape) == len(info.shape)
        if alike and other.count and is_parameter(other.name, other.dtype):
            count += 1
            yield other


def _sampled(diff: Diff, side: Any, info: TensorInfo) -> NDArray[Any]:
    """Take finite values of a tensor: all, or evenly spread stretches of a large one."""

    def sample() -> NDArray[Any]:
        import numpy as np

        values = diff.values(side, info.name)
        if info.count <= _SAMPLE:
            whole = values.span(0, info.count)
        else:
            length = _SAMPLE // _SPANS
            starts = np.linspace(0, info.count - length, _SPANS).astype(int).tolist()
            whole = np.concatenate([values.span(start, start + length) for start in starts])
        return np.asarray(whole[np.isfinite(whole)], np.float64)

    taken: NDArray[Any] = diff.remember(("sampled", side, info.name), sample)
    return taken


def _apart(one: NDArray[Any], other: NDArray[Any]) -> float:
    if not (len(one) and len(other)):
        return 0.0
    fewest = min(len(one), len(other))
    # Rice's rule: with many bins and few values the divergence is mostly that of chance.
    counted = histograms(one, other, min(_BINS, round(2 * fewest ** (1 / 3))))
    return jensen_shannon(counted.left, counted.right)
