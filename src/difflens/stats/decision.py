"""From a comparison to one word: better, worse, equivalent, non-inferior, or not known."""

from __future__ import annotations

from typing import Literal, NamedTuple

from .comparison import Comparison
from .equivalence import Direction, degradation, equivalence, non_inferior
from .paired import FEW_CLUSTERS
from .samples import probability

Word = Literal[
    "better", "worse", "equivalent", "non_inferior", "inconclusive", "not_enough_data"
]


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
    worse = None if direction is None else degradation(comparison, direction)
    ends = None if worse is None else worse.interval(1 - alpha)
    figures = (
        None if worse is None else worse.difference,
        None if ends is None else ends[0],
        None if ends is None else ends[1],
    )
    word, reason = (
        _too_little(comparison, least, alpha)
        or _within(comparison, margin, alpha)
        or _by_sign(comparison, ends, direction, alpha)
        or _not_worse(comparison, margin, direction, alpha)
        or _sure_or_not(ends, alpha)
    )
    return Decision(word, *figures, reason)


def _too_little(comparison: Comparison, least: int, alpha: float) -> tuple[Word, str] | None:
    fewest = min(comparison.n_left, comparison.n_right)
    if fewest < max(least, 2):
        return "not_enough_data", f"{fewest} values on a side, a verdict needs {max(least, 2)}"
    if comparison.clusters is not None and comparison.clusters < FEW_CLUSTERS:
        few = f"{comparison.clusters} clusters, a verdict needs {FEW_CLUSTERS}"
        return "not_enough_data", few
    if comparison.interval(1 - alpha) is None:
        return "inconclusive", comparison.note or f"no interval at level {1 - alpha:g} is known"
    return None


def _within(comparison: Comparison, margin: float | None, alpha: float) -> tuple[Word, str] | None:
    if margin is None:
        return None
    found = equivalence(comparison, margin, alpha)
    if not found.holds:
        return None
    return "equivalent", f"the {found.level:.0%} interval lies within ±{margin:g}"


def _by_sign(
    comparison: Comparison,
    ends: tuple[float, float] | None,
    direction: Direction | None,
    alpha: float,
) -> tuple[Word, str] | None:
    if direction is None:
        low, high = comparison.interval(1 - alpha) or (0.0, 0.0)
        said = "excludes" if low > 0 or high < 0 else "includes"
        lead = f"the {1 - alpha:.0%} interval {said} zero"
        return "inconclusive", f"{lead}; which direction is better is not known"
    if ends is not None and ends[1] < 0:
        return "better", f"the {1 - alpha:.0%} interval lies on the better side of zero"
    return None
