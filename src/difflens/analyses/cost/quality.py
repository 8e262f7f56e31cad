"""How the metrics handed in differ between the two sides, with intervals where examples are."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Literal, NamedTuple

from ...evidences import Evidence, Example
from ...records import Interval, Policy
from ...stats.directions import direction
from ...stats.paired import paired
from ...stats.welch import welch

LEVEL = 0.95
_LEAST = 2  # examples a side: one tells no spread


class Difference(NamedTuple):
    """One metric, right minus left; no interval where only two numbers are known."""

    metric: str
    left: float
    right: float
    direction: Literal["higher", "lower"] | None
    interval: Interval | None = None

    @property
    def change(self) -> float:
        """Right minus left."""
        return self.right - self.left

    def plain(self) -> dict[str, Any]:
        """Give plain values."""
        found = self.interval
        return {
            "left": self.left,
            "right": self.right,
            "change": self.change,
            "direction": self.direction,
            "low": found.low if found else None,
            "high": found.high if found else None,
        }


def differences(evidence: Evidence, policy: Policy) -> list[Difference]:
    """Compare every metric that both sides have: by examples where there are, else by numbers."""
    found = dict(_of_examples(evidence, policy))
    left, right = evidence.left.metrics or {}, evidence.right.metrics or {}
    for metric in sorted(left.keys() & right.keys() - found.keys()):
        found[metric] = Difference(metric, left[metric], right[metric], _direction(metric, policy))
    return list(found.values())


def _of_examples(evidence: Evidence, policy: Policy) -> list[tuple[str, Difference]]:
    before, after = _by_metric(evidence.left.evals), _by_metric(evidence.right.evals)
    found = []
    for metric in sorted(before.keys() & after.keys()):
        left, right = before[metric], after[metric]
        if min(len(left), len(right)) >= _LEAST:
            found.append((metric, _compared(metric, left, right, policy)))
    return found


def _compared(
    metric: str, left: dict[str, Example], right: dict[str, Example], policy: Policy
) -> Difference:
    both = [name for name in left if name in right]
    if len(both) >= _LEAST:
        left, right = ({name: side[name] for name in both} for side in (left, right))
    before, after = ([each.score for each in side.values()] for side in (left, right))
    if len(both) >= _LEAST:
        marks = [each.cluster for each in left.values()]
        test = paired(before, after, None if None in marks else marks, LEVEL)
    else:
        test = welch(before, after, LEVEL)
    means = [sum(side) / len(side) for side in (before, after)]
    known = test.low is not None and test.high is not None
    span = Interval(test.low, test.high, LEVEL, test.method, test.n_left) if known else None
    return Difference(metric, means[0], means[1], _direction(metric, policy), span)


def _by_metric(examples: tuple[Example, ...]) -> dict[str, dict[str, Example]]:
    groups: dict[str, dict[str, Example]] = defaultdict(dict)
    for each in examples:
        groups[each.metric][each.id] = each
    return groups


def _direction(metric: str, policy: Policy) -> Literal["higher", "lower"] | None:
    rule = policy.metrics.get(metric)
    return (rule.direction if rule else None) or direction(metric)
