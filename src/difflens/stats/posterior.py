"""The probability that right is better or worse, from a stated posterior. Never 1 - p."""

from __future__ import annotations

from .comparison import Comparison, below
from .equivalence import Direction, degradation


def probability_worse(
    comparison: Comparison, direction: Direction, margin: float = 0.0
) -> float | None:
    """Give P(degradation > margin | data) for a mean, under a flat prior.

    The posterior of the mean is then difference + t·SE, t with the comparison's degrees of
    freedom (Box & Tiao 1973). None where the comparison has no standard error.
    """
    worse = degradation(comparison, direction)
    if not worse.standard_error:
        return None
    return below((worse.difference - margin) / worse.standard_error, worse.df)


def probability_fixes_prevail(broke: int, fixed: int) -> float:
    """Give P(more answers get fixed than broken | flips), for right and wrong answers in pairs.

    Under a flat Dirichlet prior on the 2x2 table, the part of fixes among the flips is
    Beta(fixed + 1, broke + 1), whatever the other two cells hold.

    >>> probability_fixes_prevail(3, 3)
    0.5
    """
    from scipy.special import betainc

    if min(broke, fixed) < 0:
        raise ValueError(f"{broke} broken and {fixed} fixed are no counts")
    return float(betainc(broke + 1, fixed + 1, 0.5))
