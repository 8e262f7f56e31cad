"""How the metrics handed in differ between the two sides, with intervals where examples are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from ...evidences import Evidence, Example
from ...records import Interval, Policy
from ...stats.paired import paired
from ...stats.welch import welch
from ..quality.check import rule_of
from ..quality.joins import join, metrics_of

Sides = tuple[tuple[float, ...], tuple[float, ...]]

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
    found = {each.metric: each for each in _of_examples(evidence, policy)}
    left, right = evidence.left.metrics or {}, evidence.right.metrics or {}
    for metric in sorted(left.keys() & right.keys() - found.keys()):
        _, better = rule_of(metric, policy)
        found[metric] = Difference(metric, left[metric], right[metric], better)
    return list(found.values())


def _of_examples(evidence: Evidence, policy: Policy) -> Iterator[Difference]:
    left, right = evidence.left.evals, evidence.right.evals
    for metric in sorted(metrics_of(left, right)):
        joined = join(left, right, metric)
        sides: Sides = joined.left, joined.right
        is_paired = len(joined.ids) >= _LEAST
        if not is_paired:
            sides = _scores(left, metric), _scores(right, metric)
            if min(map(len, sides)) < _LEAST:
                continue
        test = paired(*sides, joined.clusters, LEVEL) if is_paired else welch(*sides, LEVEL)
        means = [sum(side) / len(side) for side in sides]
        known = test.low is not None and test.high is not None
        span = Interval(test.low, test.high, LEVEL, test.method, test.n_left) if known else None
        yield Difference(metric, means[0], means[1], rule_of(metric, policy)[1], span)


def _scores(examples: tuple[Example, ...], metric: str) -> tuple[float, ...]:
    return tuple(each.score for each in examples if each.metric == metric)
