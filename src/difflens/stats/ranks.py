"""Which side tends to be larger: Brunner-Munzel and Mann-Whitney, by ranks alone.

Brunner-Munzel first: it tests P(left < right) = P(left > right) whatever the shapes are.
Mann-Whitney is the exact test of the two laws being equal, and only of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .comparison import Comparison, quantile, two_sided
from .samples import probability, sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EXACT = 30  # values a side up to which the exact law of U is cheap


def brunner_munzel(
    left: Sequence[float], right: Sequence[float], level: float = 0.95
) -> Comparison:
    """Compare by θ = P(left < right) + P(left = right)/2, which is the effect with its interval.

    The difference is 2θ - 1 = P(left < right) - P(left > right). The standard error of θ is
    sqrt(n_l S_l² + n_r S_r²) / (n_l n_r), S² the variance of the placements, and df is by
    Satterthwaite (Brunner & Munzel 2000). Samples that do not overlap have no S²: there the p
    is Mann-Whitney's, and no interval is given.
    """
    probability(level, "level")
    before, after = sample(left, "left"), sample(right, "right")
    theta, parts = _placements(before, after)
    sizes = before.size, after.size
    if min(sizes) < 2 or not sum(parts):
        return _without_spread(before, after, theta, level)
    df = sum(parts) ** 2 / sum(part**2 / (n - 1) for part, n in zip(parts, sizes, strict=True))
    error = sum(parts) ** 0.5 / (before.size * after.size)
    reach = quantile((1 + level) / 2, df) * error
    low, high = max(theta - reach, 0.0), min(theta + reach, 1.0)
    return Comparison(
        2 * theta - 1,
        2 * low - 1,
        2 * high - 1,
        level,
        two_sided((theta - 0.5) / error, df),
        "brunner-munzel",
        *sizes,
        statistic=(theta - 0.5) / error,
        df=df,
        effect=theta,
        effect_low=low,
        effect_high=high,
        standard_error=2 * error,
    )


def mann_whitney(left: Sequence[float], right: Sequence[float]) -> Comparison:
    """Test that both sides have one law; U counts the pairs in which right is larger.

    Exact without ties and with up to 30 values a side, else normal, corrected for ties and for
    continuity (Mann & Whitney 1947). The difference and the effect are as in Brunner-Munzel.
    """
    from numpy import unique
    from scipy.stats import mannwhitneyu

    before, after = sample(left, "left"), sample(right, "right")
    theta, _ = _placements(before, after)
    tied = unique([*before, *after]).size < before.size + after.size
    exact = not tied and max(before.size, after.size) <= _EXACT
    constant = unique([*before, *after]).size == 1
    law = "exact" if exact else "normal"
    found = mannwhitneyu(after, before, method="exact" if exact else "asymptotic")
    return Comparison(
        2 * theta - 1,
        None,
        None,
        0.95,
        1.0 if constant else float(found.pvalue),
        f"mann-whitney, {law}",
        before.size,
        after.size,
        statistic=float(found.statistic),
        effect=theta,
        note="a test of equal laws, without an interval",
    )


def _placements(
    before: NDArray[np.float64], after: NDArray[np.float64]
) -> tuple[float, tuple[float, float]]:
    from numpy import concatenate
    from scipy.stats import rankdata

    ranks = rankdata(concatenate([before, after]))
    left, right = ranks[: before.size], ranks[before.size :]
    theta = float(right.mean() - (after.size + 1) / 2) / before.size
    if min(before.size, after.size) < 2:
        return theta, (0.0, 0.0)
    parts = [
        array.size * float((placed - rankdata(array)).var(ddof=1))
        for array, placed in ((before, left), (after, right))
    ]
    return theta, (parts[0], parts[1])


def _without_spread(
    before: NDArray[np.float64], after: NDArray[np.float64], theta: float, level: float
) -> Comparison:
    small = min(before.size, after.size) < 2
    note = "fewer than two values on a side" if small else "ranks do not vary within the sides"
    p = None if small else mann_whitney(list(before), list(after)).p
    method = "brunner-munzel" if small else "mann-whitney, where brunner-munzel is undefined"
    sizes = before.size, after.size
    return Comparison(2 * theta - 1, None, None, level, p, method, *sizes, effect=theta, note=note)
