"""Tensors whose values are spread otherwise than before, by more than layers differ anyway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...diffs import Diff
from ...measure.histogram import Histogram
from ...records import Delta, TensorInfo
from ...stats.divergence import histograms, jensen_shannon
from ..anatomy.roles import is_parameter, role
from .anomaly import Anomaly, Case, Detection

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SAMPLE, _SPANS = 1 << 16, 64  # values taken of one tensor, in so many stretches
_BINS = 256
_LAYERS = 8  # layers of the same role whose distances tell the spread


def distribution_shift(case: Case) -> Detection:
    """W₁ above a tenth of the deviation, and a divergence that no two layers of left have."""
    found: list[Anomaly] = []
    tested = 0
    for delta, histogram in case.diff.measured(Histogram):
        left, right = delta.pair.left, delta.pair.right
        if not (left and right and is_parameter(delta.name, left.dtype, right.dtype)):
            continue
        if min(left.count, right.count) < case.limits["shift_values"]:
            continue
        tested += 1
        shift = histogram.relative_wasserstein
        if shift is None or shift <= case.limits["shift"]:
            continue
        moved, spread = _divergences(case.diff, delta)
        if moved > spread:
            text = f"values moved by {shift:.3g} of their deviation on average (W1)"
            numbers = {"relative_wasserstein": shift, "jensen_shannon": moved, "spread": spread}
            big = shift > case.limits["shift_medium"]
            found.append(
                Anomaly("distribution_shift", delta.name, text, numbers, "medium" if big else "low")
            )
    return Detection("distribution_shift", tested, tuple(found))


def _divergences(diff: Diff, delta: Delta) -> tuple[float, float]:
    """Give the divergence of the pair, and the largest one among layers of its role on the left.

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

    def take() -> NDArray[Any]:
        import numpy as np

        values = diff.values(side, info.name)
        if info.count <= _SAMPLE:
            whole = values.span(0, info.count)
        else:
            length = _SAMPLE // _SPANS
            starts = np.linspace(0, info.count - length, _SPANS).astype(int).tolist()
            whole = np.concatenate([values.span(start, start + length) for start in starts])
        return np.asarray(whole[np.isfinite(whole)], np.float64)

    taken: NDArray[Any] = diff.remember(("sampled", side, info.name), take)
    return taken


def _apart(one: NDArray[Any], other: NDArray[Any]) -> float:
    if not (len(one) and len(other)):
        return 0.0
    fewest = min(len(one), len(other))
    # Rice's rule: with many bins and few values the divergence is mostly that of chance.
    counted = histograms(one, other, min(_BINS, round(2 * fewest ** (1 / 3))))
    return jensen_shannon(counted.left, counted.right)
