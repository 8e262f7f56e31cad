"""Every metric there is evidence for, each judged by the strongest: evals, latency, history.

Two single numbers come last: their difference is told, and nothing is tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...evidences import Evidence, Example, Latency
from ...records import Policy
from ...stats.adjust import holm
from ...stats.comparison import Comparison
from ...stats.paired import paired
from ...stats.prediction import against_history
from ...stats.proportions import newcombe, newcombe_paired
from ...stats.quantiles import compare
from ...stats.scalars import NO_REPEATS
from ...stats.welch import welch
from .check import SOURCES, Check, judged, rule_of
from .joins import Join, join, metrics_of

_FEWEST = 2  # values a side below which nothing can be compared


class Settings(NamedTuple):
    """What the policy says of the comparisons."""

    alpha: float = 0.05
    latency_quantile: float = 0.95
    seed: int = 0


def checks(evidence: Evidence, policy: Policy, settings: Settings) -> list[Check]:
    """Judge each metric once, by the strongest evidence; p-values are Holm's over all tested."""
    found: dict[str, Check] = {}
    for check in _all(evidence, policy, settings):
        known = found.get(check.metric)
        if known is None or SOURCES.index(check.source) < SOURCES.index(known.source):
            found[check.metric] = check
    return _adjusted(list(found.values()))


def _all(evidence: Evidence, policy: Policy, settings: Settings) -> Iterator[Check]:
    yield from _evals(evidence, policy, settings)
    yield from _latency(evidence, policy, settings)
    yield from _history(evidence, policy, settings)
    yield from _scalars(evidence, policy)


def _evals(evidence: Evidence, policy: Policy, settings: Settings) -> Iterator[Check]:
    left, right = evidence.left.evals, evidence.right.evals
    for metric in metrics_of(left, right):
        joined = join(left, right, metric)
        level = 1 - settings.alpha
        if len(joined.ids) >= _FEWEST:
            made, note = _paired(joined, level), joined.about
            means = _mean(joined.left), _mean(joined.right)
        else:
            sides = [_scores(side, metric) for side in (left, right)]
            if min(map(len, sides)) < _FEWEST:
                continue
            made, note = _unpaired(sides[0], sides[1], level), "no ids in common: not paired"
            means = _mean(sides[0]), _mean(sides[1])
        yield judged(metric, "evals", made, policy, left=means[0], right=means[1], note=note)


def _paired(joined: Join, level: float) -> Comparison:
    """Compare pairs: with clusters by their own errors, right and wrong by their flips."""
    if joined.clusters is None and joined.is_binary:
        flags = [[bool(each) for each in side] for side in (joined.left, joined.right)]
        return newcombe_paired(flags[0], flags[1], level)
    return paired(joined.left, joined.right, joined.clusters, level)


def _unpaired(left: list[float], right: list[float], level: float) -> Comparison:
    if set(left) | set(right) <= {0.0, 1.0}:
        return newcombe(int(sum(left)), len(left), int(sum(right)), len(right), level)
    return welch(left, right, level)


def _scores(examples: Iterable[Example], metric: str) -> list[float]:
    return [each.score for each in examples if each.metric == metric]


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)


def _latency(evidence: Evidence, policy: Policy, settings: Settings) -> Iterator[Check]:
    left, right = evidence.left.latency, evidence.right.latency
    if min(len(left), len(right)) < _FEWEST:
        return
    q = settings.latency_quantile
    made = compare(
        [each.ms for each in left], [each.ms for each in right], q, _runs(left), _runs(right),
        seed=settings.seed, level=1 - settings.alpha,
    )  # fmt: skip
    metric = f"latency_p{100 * q:g}_ms"
    comparison = Comparison(
        made.difference, made.low, made.high, made.level, made.p, made.method,
        made.n_left, made.n_right, note=made.note,
    )  # fmt: skip
    yield judged(metric, "latency", comparison, policy, left=_quantile(left, q),
                 right=_quantile(right, q), note=made.note)  # fmt: skip


def _quantile(samples: Iterable[Latency], q: float) -> float:
    import numpy as np

    return float(np.quantile([each.ms for each in samples], q))


def _runs(samples: Iterable[Latency]) -> list[str] | None:
    named = [each.run for each in samples]
    return [str(each) for each in named] if all(each is not None for each in named) else None


def _history(evidence: Evidence, policy: Policy, settings: Settings) -> Iterator[Check]:
    """Hold the newest value against the past ones: noise is what earlier versions show of it."""
    current = evidence.right.metrics or {}
    for metric in dict.fromkeys(each.metric for each in evidence.history):
        past = [each.value for each in evidence.history if each.metric == metric]
        if metric not in current:
            continue
        level = 1 - settings.alpha
        found = against_history(past, current[metric], level)
        if found is None:
            continue
        mean, value = sum(past) / len(past), current[metric]
        reach = (found.high - found.low) / 2
        made = Comparison(
            value - mean, value - mean - reach, value - mean + reach, level, found.p,
            "prediction interval", len(past), len(past), statistic=found.t, df=found.df,
        )  # fmt: skip
        note = f"against {len(past)} past versions"
        yield judged(metric, "history", made, policy, left=mean, right=value, note=note)


def _scalars(evidence: Evidence, policy: Policy) -> Iterator[Check]:
    left, right = evidence.left.metrics or {}, evidence.right.metrics or {}
    for metric in (name for name in left if name in right):
        rule, better = rule_of(metric, policy)
        yield Check(
            metric, "metrics", left[metric], right[metric], better, rule, None, None,
            statistical=False, note=NO_REPEATS,
        )  # fmt: skip


def _adjusted(found: list[Check]) -> list[Check]:
    tested = [(at, each.comparison.p) for at, each in enumerate(found)
              if each.comparison and each.comparison.p is not None]  # fmt: skip
    for (at, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        found[at] = found[at]._replace(adjusted=p)
    return found
