"""From a comparison to one word: better, worse, equivalent, non-inferior, or not known."""

from __future__ import annotations

from typing import Literal, NamedTuple

from .comparison import Comparison
from .equivalence import Direction, degradation, equivalence, non_inferior
from .paired import FEW_CLUSTERS
from .samples import probability

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
        return "not_enough_data", f"{fewest} values on a side, a verdict needs {max(least, 2)}"
    if comparison.clusters is not None and comparison.clusters < FEW_CLUSTERS:
        few = f"{comparison.clusters} clusters, a verdict needs {FEW_CLUSTERS}"
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
