"""Sameness within a margin: two one-sided tests, and non-inferiority.

"No significant difference" is never "the same". The margin is the user's: it says which
difference would not matter, and no data can tell that.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from .comparison import Comparison, below
from .samples import probability

Direction = Literal["higher", "lower"]


class Equivalence(NamedTuple):
    """Whether the interval at level 1 - 2·alpha lies in (-margin, margin); None if unknown."""

    holds: bool | None
    p: float | None
    low: float | None
    high: float | None
    level: float
    margin: float


class NonInferiority(NamedTuple):
    """Whether right is worse than left by less than the margin; None if unknown.

    `limit` is the upper limit of the degradation at level 1 - alpha, one-sided.
    """

    holds: bool | None
    p: float | None
    limit: float | None
    level: float
    margin: float


def equivalence(comparison: Comparison, margin: float, alpha: float = 0.05) -> Equivalence:
    """Test |difference| < margin by two one-sided tests at alpha (Schuirmann 1987).

    Both reject exactly when the interval at level 1 - 2·alpha lies within the margins.
    """
    _checked(margin, alpha)
    level = 1 - 2 * alpha
    ends = comparison.interval(level)
    if ends is None:
        return Equivalence(None, None, None, None, level, margin)
    upper = _p_below(comparison, margin)
    lower = _p_below(comparison._replace(difference=-comparison.difference), margin)
    p = None if upper is None or lower is None else max(upper, lower)
    return Equivalence(-margin < ends[0] and ends[1] < margin, p, *ends, level, margin)


def non_inferior(
    comparison: Comparison, margin: float, direction: Direction, alpha: float = 0.05
) -> NonInferiority:
    """Test degradation < margin at alpha: its one-sided upper limit lies below the margin."""
    _checked(margin, alpha)
    worse = degradation(comparison, direction)
    ends = worse.interval(1 - 2 * alpha)
    if ends is None:
        return NonInferiority(None, None, None, 1 - alpha, margin)
    p = _p_below(worse, margin)
    return NonInferiority(ends[1] < margin, p, ends[1], 1 - alpha, margin)


def largest_margin(
    comparison: Comparison, direction: Direction, alpha: float = 0.05
) -> float | None:
    """Give the degradation that is still possible: non-inferiority holds at any margin above.

    Zero where right is better beyond doubt, None where no interval is known.
    """
    ends = degradation(comparison, direction).interval(1 - 2 * probability(alpha, "alpha"))
    return None if ends is None else max(ends[1], 0.0)


def degradation(comparison: Comparison, direction: Direction) -> Comparison:
    """Turn a difference so that positive is worse."""
    if direction == "lower":
        return comparison
    low, high = comparison.low, comparison.high
    return comparison._replace(
        difference=-comparison.difference,
        low=None if high is None else -high,
        high=None if low is None else -low,
    )


def _p_below(comparison: Comparison, margin: float) -> float | None:
    if not comparison.standard_error:
        return None
    return below((comparison.difference - margin) / comparison.standard_error, comparison.df)


def _checked(margin: float, alpha: float) -> None:
    if not 0 < margin < float("inf"):
        raise ValueError(f"margin is {margin!r}, it must be above zero and finite")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha is {alpha!r}, it must lie between 0 and 0.5")
