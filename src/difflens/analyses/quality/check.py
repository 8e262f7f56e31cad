"""One metric held against its evidence: what was compared, how, and what that allows to say."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...records import Interval, MetricRule, Policy
from ...stats.comparison import Comparison
from ...stats.decision import Decision, decide
from ...stats.directions import direction
from ...stats.equivalence import Direction

SOURCES = ("evals", "latency", "history", "metrics")  # the strongest first


class Check(NamedTuple):
    """A metric, the evidence it was judged by, and the judgement.

    `statistical` is False where two single numbers were all there was: then a limit of the user
    may be breached, but nothing can be called noise or change.
    """

    metric: str
    source: str
    left: float | None
    right: float | None
    direction: Direction | None
    rule: MetricRule
    comparison: Comparison | None
    decision: Decision | None
    statistical: bool
    note: str = ""
    adjusted: float | None = None  # p after Holm, over the metrics of one screen

    @property
    def degradation(self) -> float | None:
        """How much worse right is, in the metric's own units; None where worse has no meaning."""
        if self.decision is not None:
            return self.decision.degradation
        if self.left is None or self.right is None or self.direction is None:
            return None
        return self.left - self.right if self.direction == "higher" else self.right - self.left

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
        made = self.comparison
        return {
            "metric": self.metric,
            "source": self.source,
            "left": self.left,
            "right": self.right,
            "direction": self.direction,
            "margin": self.rule.margin,
            "degradation": self.degradation,
            "degradation_low": self.decision.degradation_low if self.decision else None,
            "degradation_high": self.decision.degradation_high if self.decision else None,
            "p": made.p if made else None,
            "p_adjusted": self.adjusted,
            "method": made.method if made else None,
            "n": made.n_right if made else None,
            "word": self.decision.word if self.decision else None,
            "statistical": self.statistical,
            "note": self.note or (self.decision.reason if self.decision else ""),
        }


def rule_of(metric: str, policy: Policy) -> tuple[MetricRule, Direction | None]:
    """Give what the user says of a metric, and which way is better: theirs, or as it is known."""
    rule = policy.metrics.get(metric, MetricRule())
    return rule, rule.direction or direction(metric)


def judged(metric: str, source: str, made: Comparison, policy: Policy, **more: Any) -> Check:
    """Make a check of a comparison: the word its interval allows."""
    rule, better = rule_of(metric, policy)
    decision = decide(made, better, margin=rule.margin, alpha=1 - made.level)
    return Check(metric, source, direction=better, rule=rule, comparison=made, decision=decision,
                 statistical=True, **more)  # fmt: skip
