"""The two arms of an A/B test as the caller has them: numbers, metrics of numbers, or examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from difflens.core.errors import InsufficientData, SnapshotError
from difflens.core.findings import Missing
from difflens.diffs.evidence.records import Example
from difflens.diffs.quality.sides import Sides, sides_of

from .metrics import LARGEST
from .records.ab import ABTestConfig, ABTestMetrics, SummaryStats

PRIMARY = "primary_metric"  # the name of plain numbers that nobody named


class Arm(NamedTuple):
    """One arm's values of one metric, as they came: not all need be finite."""

    values: tuple[float, ...]
    ids: tuple[str, ...] | None = None
    clusters: tuple[str | None, ...] | None = None

    @property
    def finite(self) -> tuple[float, ...]:
        """The values that are finite."""
        return tuple(value for value in self.values if isfinite(value))


def arms(data: Any, config: ABTestConfig, name: str) -> dict[str, Arm]:
    """Read one arm: a sequence of numbers or examples, or a map of metrics to such."""
    if isinstance(data, Mapping):
        return {metric: _arm(each, f"{name}, {metric}") for metric, each in data.items()}
    items = _listed(data, name)
    if items and isinstance(items[0], Example):
        metrics = dict.fromkeys(example.metric for example in items)
        return {
            metric: _examples([each for each in items if each.metric == metric])
            for metric in metrics
        }
    named = config.primary_metric or next(iter(config.tracked_metrics), PRIMARY)
    return {named: _arm(items, name)}


def _arm(data: Any, name: str) -> Arm:
    items = _listed(data, name)
    if items and isinstance(items[0], Example):
        return _examples(items)
    values = []
    for item in items:
        if item is not None and not isinstance(item, (int, float)):
            raise SnapshotError(f"{item!r} is no number", where=name)
        values.append(float("nan") if item is None else float(item))
        if isfinite(values[-1]) and abs(values[-1]) > LARGEST:
            raise SnapshotError(f"{item!r} is too large to be squared", where=name)
    return Arm(tuple(values))


def _examples(items: Sequence[Example]) -> Arm:
    clusters = tuple(each.cluster for each in items)
    known = clusters if any(each is not None for each in clusters) else None
    return Arm(tuple(each.score for each in items), tuple(each.id for each in items), known)


def _listed(data: Any, name: str) -> list[Any]:
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise SnapshotError(f"{data!r} is no sequence of numbers", where=name)
    plain = data.tolist() if hasattr(data, "tolist") else data
    return list(plain)


def sides(left: Arm, right: Arm, metric: str, config: ABTestConfig) -> Sides:
    """Pair by id where the ids say so, by order where the user says so, else not at all."""
    if config.paired is not False and left.ids is not None and right.ids is not None:
        examples = _as_examples(left, metric), _as_examples(right, metric)
        found = sides_of(*examples, metric, must_pair=bool(config.paired))
        # What is looked at again and again is followed in the order it came in.
        if found is not None and (found.is_paired or not config.sequential):
            return found
        if config.paired:
            raise InsufficientData(f"{metric}: no two ids in common, so nothing can be paired")
    if config.paired:
        return _in_order(left, right, metric)
    if left.clusters is None and right.clusters is None:
        return Sides(left.finite, right.finite, is_paired=False)
    return Sides(
        left.finite,
        right.finite,
        is_paired=False,
        left_clusters=_of_finite(left, "A"),
        right_clusters=_of_finite(right, "B"),
    )


def _of_finite(arm: Arm, side: str) -> tuple[str, ...]:
    """Name the clusters of the finite values; a value without a cluster is one of its own."""
    clusters = arm.clusters or (None,) * len(arm.values)
    rows = enumerate(zip(arm.values, clusters, strict=True))
    return tuple(
        f"value {place} of {side}" if cluster is None else f"cluster {cluster}"
        for place, (value, cluster) in rows
        if isfinite(value)
    )


def _as_examples(arm: Arm, metric: str) -> list[Example]:
    clusters = arm.clusters or (None,) * len(arm.values)
    rows = zip(arm.ids or (), arm.values, clusters, strict=True)
    return [Example(name, value, metric, group) for name, value, group in rows if isfinite(value)]


def _in_order(left: Arm, right: Arm, metric: str) -> Sides:
    if len(left.values) != len(right.values):
        said = f"{metric}: {len(left.values)} and {len(right.values)} values cannot be paired"
        raise InsufficientData(said, hint="pairs need as many values, in one order, or ids")
    both = [
        pair
        for pair in zip(left.values, right.values, strict=True)
        if isfinite(pair[0]) and isfinite(pair[1])
    ]
    ours, theirs = zip(*both, strict=True) if both else ((), ())
    return Sides(ours, theirs, is_paired=True, note=f"{len(both)} pairs, by their order")


def describe_arms(found: Mapping[str, Arm]) -> ABTestMetrics:
    """Record one arm: how many values, the values, and their summary."""
    return ABTestMetrics(
        sample_size=max(len(each.values) for each in found.values()),
        metrics={metric: each.values for metric, each in found.items()},
        summary_stats={metric: summary_stats(each.values) for metric, each in found.items()},
    )


def summary_stats(values: Sequence[float]) -> SummaryStats:
    """Sum up a sample; quantiles of type 7, deviation with n - 1.

    >>> found = summary_stats([4.0, 1.0, 3.0, 2.0])
    >>> found.q25, found.median, found.q75
    (1.75, 2.5, 3.25)
    """
    import numpy as np

    finite = np.array([value for value in values if isfinite(value)], np.float64)
    lost = len(values) - len(finite)
    if not len(finite):
        raise InsufficientData(f"{len(values)} values, and none of them is a finite number")
    low, q25, median, q75, high = np.quantile(finite, [0, 0.25, 0.5, 0.75, 1]).tolist()
    one = len(finite) < 2
    why = "one value has no deviation"
    return SummaryStats(
        mean=min(max(float(finite.mean()), low), high),
        std_dev=None if one else float(finite.std(ddof=1)),
        min=low,
        max=high,
        median=median,
        q25=q25,
        q75=q75,
        n=len(finite),
        nonfinite=lost,
        missing=(Missing("std_dev", "two values", why),) if one else (),
    )
