"""Yuen's test: two trimmed means, for samples with a few wild values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .comparison import Comparison, by_t
from .samples import probability, sample, variance

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def yuen(
    left: Sequence[float], right: Sequence[float], trim: float = 0.2, level: float = 0.95
) -> Comparison:
    """Compare the means of what is left when `trim` of the values is cut off at each end.

    t = d / sqrt(q_l + q_r), q = (n - 1) s_w² / (h (h - 1)): s_w² is the winsorised variance, h
    the number of values kept; df = (q_l + q_r)² / Σ q² / (h - 1) (Yuen 1974).
    """
    probability(level, "level")
    if not 0 <= trim < 0.5:
        raise ValueError(f"trim is {trim!r}, it must be at least 0 and below 0.5")
    before, after = sample(left, "left"), sample(right, "right")
    left_mean, left_part, left_kept = _trimmed(before, trim)
    right_mean, right_part, right_kept = _trimmed(after, trim)
    difference, total = right_mean - left_mean, left_part + right_part
    method, sizes = f"yuen, {trim:g} trimmed", (before.size, after.size)
    if min(left_kept, right_kept) < 2 or not total:
        note = "what is left after trimming has no spread to test against"
        return Comparison(difference, None, None, level, None, method, *sizes, note=note)
    shares = left_part / total, right_part / total
    df = 1 / (shares[0] ** 2 / (left_kept - 1) + shares[1] ** 2 / (right_kept - 1))
    return by_t(difference, total**0.5, df, level, method, sizes)


def _trimmed(array: NDArray[np.float64], trim: float) -> tuple[float, float, int]:
    import numpy as np

    ordered = np.sort(array)
    cut = int(trim * array.size)
    kept = ordered[cut : array.size - cut]
    if kept.size < 2:
        return float(kept.mean()), 0.0, kept.size
    spread = variance(np.clip(array, kept[0], kept[-1]))
    part = (array.size - 1) * spread / (kept.size * (kept.size - 1))
    return float(kept.mean()), part, kept.size
