"""One metric held against its evidence: what was compared, how, and what that allows to say."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...records import Interval, MetricRule, Policy
from ...stats.comparison import Comparison
from ...stats.decision import Decision
from ...stats.directions import direction
from ...stats.equivalence import Direction
from ...stats.power import minimal_difference
from .trials import Trial


class Check(NamedTuple):
    """A metric, the evidence it was judged by, and the judgement.

    `comparison` and `decision` are at the level asked for, and None where two single numbers were
    all there was: then a limit of the user may be breached, but nothing can be called noise or
    change. `sure_loss` is the least loss at `sure_level`, which is higher where several metrics
    are looked at, so that all of them together raise a false alarm no more often than one.
    """

    trial: Trial
    direction: Direction | None
    rule: MetricRule
    comparison: Comparison | None = None
    decision: Decision | None = None
    adjusted: float | None = None  # p after Holm, over the metrics of one screen
    sure_loss: float | None = None
    sure_level: float | None = None
    right_interval: tuple[float | None, float | None] = (None, None)

    @property
    def metric(self) -> str:
        """Its name."""
        return self.trial.metric

    @property
    def source(self) -> str:
        """Which evidence it was judged by."""
        return self.trial.source

    @property
    def left(self) -> float:
        """The value before."""
        return self.trial.left

    @property
    def right(self) -> float:
        """The value after."""
        return self.trial.right

    @property
    def statistical(self) -> bool:
        """Can change be told from noise at all?"""
        return self.trial.compare is not None

    @property
    def is_enough(self) -> bool:
        """Is there a test, and enough data for a verdict?"""
        return self.decision is not None and self.decision.word != "not_enough_data"

    @property
    def degradation(self) -> float | None:
        """How much worse right is, in the metric's own units; None where worse has no meaning."""
        if self.decision is not None:
            return self.decision.degradation
        if self.direction is None:
            return None
        return self.left - self.right if self.direction == "higher" else self.right - self.left

    @property
    def relative(self) -> float | None:
        """How much worse right is, over the size of left."""
        loss = self.degradation
        return None if loss is None or not self.left else loss / abs(self.left)

    @property
    def note(self) -> str:
        """What to know of the evidence and of the test."""
        test = self.comparison.note if self.comparison else ""
        return "; ".join(dict.fromkeys(filter(None, (self.trial.note, test))))

    @property
    def interval(self) -> Interval | str:
        """How sure the degradation is."""
        found, made = self.decision, self.comparison
        if found is None or made is None or found.degradation_low is None:
            return f"none_available: {self.note or 'no interval'}"
        return Interval(
            found.degradation_low, found.degradation_high, made.level, made.method, made.n_right
        )

    def told(self) -> dict[str, Any]:
        """Give it as plain data."""
        made, found = self.comparison, self.decision
        flips = self.trial.flips
        return {
            "metric": self.metric,
            "source": self.source,
            "left": self.left,
            "right": self.right,
            "direction": self.direction,
            "margin": self.rule.margin,
            "limit": self.rule.threshold,
            "degradation": self.degradation,
            "degradation_low": found.degradation_low if found else None,
            "degradation_high": found.degradation_high if found else None,
            "sure_loss": self.sure_loss,
            "sure_level": self.sure_level,
            "p": made.p if made else None,
            "p_adjusted": self.adjusted,
            "method": made.method if made else None,
            "n": made.n_right if made else None,
            "clusters": made.clusters if made else None,
            "detectable": detectable(made),
            "broke": flips[0] if flips else None,
            "fixed": flips[1] if flips else None,
            "word": found.word if found else None,
            "statistical": True if self.statistical else None,
            "note": self.note,
        }


def detectable(made: Comparison | None) -> float | None:
    """Give the difference that would be found in 80 of 100 cases; None without a standard error."""
    if made is None or not made.standard_error:
        return None
    return minimal_difference(made.standard_error, made.df, alpha=1 - made.level)


def rule_of(metric: str, policy: Policy) -> tuple[MetricRule, Direction | None]:
    """Give what the user says of a metric, and which way is better: theirs, or as it is known."""
    rule = policy.metrics.get(metric, MetricRule())
    return rule, rule.direction or direction(metric)
