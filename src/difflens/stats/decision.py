"""From a comparison to one word: better, worse, equivalent, non-inferior, or not known.

"No significant difference" is never "the same". The margin is the user's: it says which
difference would not matter, and no data can tell that. Of many tests p-values are adjusted: by
Holm for gates (no false alarm at all), by Benjamini-Hochberg for screens (few among those found).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from .comparison import Comparison, below
from .paired import FEW_CLUSTERS
from .samples import probability

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
    _check_margin(margin, alpha)
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
    _check_margin(margin, alpha)
    worse = degradation(comparison, direction)
    ends = worse.interval(1 - 2 * alpha)
    if ends is None:
        return NonInferiority(None, None, None, 1 - alpha, margin)
    p = _p_below(worse, margin)
    return NonInferiority(ends[1] < margin, p, ends[1], 1 - alpha, margin)


def degradation(comparison: Comparison, direction: Direction) -> Comparison:
    """Turn a difference so that positive is worse."""
    if direction == "lower":
        return comparison
    low, high = comparison.low, comparison.high
    return comparison._replace(
        difference=0.0 - comparison.difference,  # no negative zero
        low=None if high is None else 0.0 - high,
        high=None if low is None else 0.0 - low,
    )


def _p_below(comparison: Comparison, margin: float) -> float | None:
    if not comparison.standard_error:
        return None
    return below((comparison.difference - margin) / comparison.standard_error, comparison.df)


def _check_margin(margin: float, alpha: float) -> None:
    if not 0 < margin < float("inf"):
        raise ValueError(f"margin is {margin!r}, it must be above zero and finite")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha is {alpha!r}, it must lie between 0 and 0.5")


Word = Literal["better", "worse", "equivalent", "non_inferior", "inconclusive", "not_enough_data"]


class Decision(NamedTuple):
    """A word, and the degradation behind it: positive is worse, None without a direction."""

    word: Word
    degradation: float | None
    degradation_low: float | None
    degradation_high: float | None
    reason: str


def decide(
    comparison: Comparison,
    direction: Direction | None,
    margin: float | None = None,
    alpha: float = 0.05,
    least: int = 5,
) -> Decision:
    """Say what the interval at level 1 - alpha allows to say, and nothing beyond it.

    A margin is the difference that does not matter, so within it the word is `equivalent` even
    where the difference is sure. Without a direction there is a difference and no winner.
    """
    probability(alpha, "alpha")
    worse = comparison if direction is None else degradation(comparison, direction)
    ends = worse.interval(1 - alpha)
    word, reason = _too_little(comparison, least) or _judged(
        comparison, ends, direction, margin, alpha
    )
    if direction is None:
        return Decision(word, None, None, None, reason)
    low, high = ends or (None, None)
    return Decision(word, worse.difference, low, high, reason)


def _too_little(comparison: Comparison, least: int) -> tuple[Word, str] | None:
    fewest = min(comparison.n_left, comparison.n_right)
    if fewest < max(least, 2):
        values = "value" if fewest == 1 else "values"
        return "not_enough_data", f"{fewest} {values} on a side, a verdict needs {max(least, 2)}"
    if comparison.clusters is not None and comparison.clusters < FEW_CLUSTERS:
        clusters = "cluster" if comparison.clusters == 1 else "clusters"
        few = f"{comparison.clusters} {clusters}, a verdict needs {FEW_CLUSTERS}"
        return "not_enough_data", few
    return None


def _judged(
    comparison: Comparison,
    ends: tuple[float, float] | None,
    direction: Direction | None,
    margin: float | None,
    alpha: float,
) -> tuple[Word, str]:
    if ends is None:
        return "inconclusive", comparison.note or f"no interval at level {1 - alpha:g} is known"
    if margin is not None and equivalence(comparison, margin, alpha).holds:
        return "equivalent", f"the {1 - 2 * alpha:.0%} interval lies within ±{margin:g}"
    if direction is None:
        said = "includes" if ends[0] <= 0 <= ends[1] else "excludes"
        lead = f"the {1 - alpha:.0%} interval {said} zero"
        return "inconclusive", f"{lead}, and which direction is better is not known"
    return _directed(comparison, ends, direction, margin, alpha)


def _directed(
    comparison: Comparison,
    ends: tuple[float, float],
    direction: Direction,
    margin: float | None,
    alpha: float,
) -> tuple[Word, str]:
    if ends[1] < 0:
        return "better", f"the {1 - alpha:.0%} interval lies on the better side of zero"
    if margin is not None and non_inferior(comparison, margin, direction, alpha).holds:
        return "non_inferior", f"worse by less than {margin:g} at level {1 - alpha:.0%}"
    if ends[0] > 0:
        return "worse", f"the {1 - alpha:.0%} interval lies on the worse side of zero"
    lead = f"the {1 - alpha:.0%} interval includes zero"
    return "inconclusive", f"{lead}: from {-ends[0]:.4g} better to {ends[1]:.4g} worse"


def probability_worse(
    comparison: Comparison, direction: Direction, margin: float = 0.0
) -> float | None:
    """Return P(degradation > margin | data) for a mean, under a flat prior.

    The posterior of the mean is then difference + t·SE, t with the comparison's degrees of
    freedom (Box & Tiao 1973). None if the comparison has no standard error.
    """
    worse = degradation(comparison, direction)
    if not worse.standard_error:
        return None
    return below((worse.difference - margin) / worse.standard_error, worse.df)


def probability_fixes_prevail(broke: int, fixed: int) -> float:
    """Return P(more answers get fixed than broken | flips), for right and wrong answers in pairs.

    Under a flat Dirichlet prior on the 2x2 table, the part of fixes among the flips is
    Beta(fixed + 1, broke + 1), whatever the other two cells hold.

    >>> probability_fixes_prevail(3, 3)
    0.5
    """
    from scipy.special import betainc

    if min(broke, fixed) < 0:
        raise ValueError(f"{broke} broken and {fixed} fixed are no counts")
    return float(betainc(broke + 1, fixed + 1, 0.5))


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Adjust for the chance of any false alarm: max over ranks j <= i of (m - j + 1)·p_(j).

    >>> holm([0.01, 0.04])
    (0.02, 0.04)
    """
    import numpy as np

    array = _p_values(ps)
    order = np.argsort(array, kind="stable")
    raised = np.maximum.accumulate(array[order] * np.arange(array.size, 0, -1))
    return _back(raised, order)


def benjamini_hochberg(ps: Sequence[float]) -> tuple[float, ...]:
    """Adjust for the part of false alarms among the found: min over j >= i of m·p_(j)/j.

    >>> benjamini_hochberg([0.01, 0.04])
    (0.02, 0.04)
    """
    return _stepped_up(_p_values(ps), 1.0)


def _stepped_up(array: NDArray[np.float64], factor: float) -> tuple[float, ...]:
    import numpy as np

    order = np.argsort(array, kind="stable")
    raised = array[order] * factor * array.size / np.arange(1, array.size + 1)
    return _back(np.minimum.accumulate(raised[::-1])[::-1], order)


def _back(raised: NDArray[np.float64], order: NDArray[np.int64]) -> tuple[float, ...]:
    import numpy as np

    found = np.empty_like(raised)
    found[order] = np.minimum(raised, 1.0)
    return tuple(float(each) for each in found)


def _p_values(ps: Sequence[float]) -> NDArray[np.float64]:
    import numpy as np

    array = np.asarray(ps, dtype=np.float64)
    if not ((array >= 0) & (array <= 1)).all():
        raise ValueError("p-values lie between 0 and 1")
    return array
