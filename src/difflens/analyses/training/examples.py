"""One metric of per-example results, compared pair by pair."""

from __future__ import annotations

from typing import NamedTuple

from ...evidences import Evidence
from ...records import Interval, Policy
from ...stats.comparison import Comparison
from ...stats.decision import Decision, decide
from ...stats.paired import paired
from ..quality.joins import join, metrics_of
from .trends import better_way

_LEAST = 2  # pairs below which there is nothing to compare


class Compared(NamedTuple):
    """A metric, how its pairs compare, and what that allows to say."""

    metric: str
    comparison: Comparison
    decision: Decision
    about: str

    @property
    def interval(self) -> Interval | str:
        """How sure the difference right - left is."""
        made = self.comparison
        if made.low is None or made.high is None:
            return f"none_available: {made.note}"
        return Interval(made.low, made.high, made.level, made.method, made.n_right)


def compared(
    evidence: Evidence, policy: Policy, chosen: str | None, level: float
) -> Compared | None:
    """Compare the chosen metric, else the first whose better direction is known."""
    left, right = evidence.left.evals, evidence.right.evals
    for metric in metrics_of(left, right):
        way, rule = better_way(metric, policy), policy.metrics.get(metric)
        joined = join(left, right, metric)
        if chosen not in (None, metric) or way is None or len(joined.ids) < _LEAST:
            continue
        made = paired(joined.left, joined.right, joined.clusters, level)
        margin = (rule.margin if rule else None) or None
        decision = decide(made, way, margin=margin, alpha=1 - level)
        return Compared(metric, made, decision, joined.about)
    return None
