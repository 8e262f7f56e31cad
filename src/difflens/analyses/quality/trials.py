"""Every metric there is evidence for, with a way to compare it at any level of confidence.

Levels are not fixed here: how sure one metric must be depends on how many are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from ...evidences import Evidence, Example, Latency, Past
from ...stats.clusters import clustered_mean
from ...stats.comparison import Comparison
from ...stats.mcnemar import mcnemar
from ...stats.paired import paired
from ...stats.prediction import LEAST, Prediction, against_history, against_trend
from ...stats.proportions import newcombe, newcombe_paired, wilson
from ...stats.quantiles import compare, quantile
from ...stats.scalars import NO_REPEATS
from ...stats.trend import mann_kendall
from ...stats.welch import welch
from .joins import Join, join, metrics_of
from .settings import Settings

SOURCES = ("evals", "latency", "history", "metrics")  # the strongest first
FEWEST = 2  # values a side below which nothing can be compared
_VERDICT = 5  # values a side below which samples earn no verdict (methods 9.1)
_TREND = 8  # past values below which a drift cannot be told from noise

Ends = tuple[float | None, float | None]


class Trial(NamedTuple):
    """One metric: both values, and how their difference is compared at a level.

    `compare` is None where two single numbers are all there is; `own` gives the interval of the
    right value alone.
    """

    metric: str
    source: str
    left: float
    right: float
    note: str
    compare: Callable[[float], Comparison] | None = None
    own: Callable[[float], Ends] | None = None
    least: int = _VERDICT
    flips: tuple[int, int] | None = None  # answers that broke, answers that were fixed


def trials(evidence: Evidence, settings: Settings) -> list[Trial]:
    """List each metric once, by the strongest evidence: evals, latency, history, two numbers."""
    found: dict[str, Trial] = {}
    for trial in _all(evidence, settings):
        known = found.get(trial.metric)
        if known is None or SOURCES.index(trial.source) < SOURCES.index(known.source):
            found[trial.metric] = trial
    return list(found.values())


def _all(evidence: Evidence, settings: Settings) -> Iterator[Trial]:
    yield from _evals(evidence)
    yield from _latency(evidence, settings)
    yield from _history(evidence, settings)
    yield from _scalars(evidence)


def _evals(evidence: Evidence) -> Iterator[Trial]:
    left, right = evidence.left.evals, evidence.right.evals
    for metric in metrics_of(left, right):
        joined = join(left, right, metric)
        if len(joined.ids) >= FEWEST:
            yield paired_trial(metric, joined)
            continue
        sides = [_scores(side, metric) for side in (left, right)]
        if min(map(len, sides)) >= FEWEST:
            yield _unpaired_trial(metric, *sides)


def paired_trial(metric: str, joined: Join) -> Trial:
    """Compare pairs: with clusters by their own errors, right and wrong by their flips."""
    plain = joined.clusters is None and joined.is_binary
    flags = [[bool(each) for each in side] for side in (joined.left, joined.right)]
    flips = mcnemar(*flags) if joined.is_binary else None

    @cache
    def compared(level: float) -> Comparison:
        if plain:
            return newcombe_paired(flags[0], flags[1], level)
        return paired(joined.left, joined.right, joined.clusters, level)

    return Trial(
        metric, "evals", _mean(joined.left), _mean(joined.right), joined.about, compared,
        _own_mean(joined.right, None if plain else joined.clusters or joined.ids),
        flips=(flips.broke, flips.fixed) if flips else None,
    )  # fmt: skip


def _unpaired_trial(metric: str, left: list[float], right: list[float]) -> Trial:
    binary = set(left) | set(right) <= {0.0, 1.0}
    counts = int(sum(left)), len(left), int(sum(right)), len(right)

    @cache
    def compared(level: float) -> Comparison:
        return newcombe(*counts, level) if binary else welch(left, right, level)

    note = "no ids in common: not paired"
    own = _own_mean(right, None if binary else range(len(right)))
    return Trial(metric, "evals", _mean(left), _mean(right), note, compared, own)


def _own_mean(
    values: Sequence[float], clusters: Sequence[str] | range | None
) -> Callable[[float], Ends]:
    """Bound a mean: Wilson's interval for independent right and wrong, t (by cluster) else."""

    def own(level: float) -> Ends:
        if clusters is None:
            found = wilson(int(sum(values)), len(values), level)
            return found.low, found.high
        mean = clustered_mean(values, clusters, level)
        return mean.low, mean.high

    return own


def _scores(examples: Iterable[Example], metric: str) -> list[float]:
    return [each.score for each in examples if each.metric == metric]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _latency(evidence: Evidence, settings: Settings) -> Iterator[Trial]:
    left, right = evidence.left.latency, evidence.right.latency
    if min(len(left), len(right)) < FEWEST:
        return
    q, runs = settings.latency_quantile, (_runs(left), _runs(right))
    values = [each.ms for each in left], [each.ms for each in right]

    @cache
    def compared(level: float) -> Comparison:
        made = compare(*values, q, *runs, seed=settings.seed, level=level)
        return Comparison(
            made.difference, made.low, made.high, made.level, made.p, made.method,
            made.n_left, made.n_right, note=made.note,
        )  # fmt: skip

    def own(level: float) -> Ends:
        found = quantile(values[1], q, level)
        return found.low, found.high

    note = "" if all(runs) else "no runs named: values are taken for independent"
    ends = quantile(values[0], q).value, quantile(values[1], q).value
    yield Trial(latency_metric(q), "latency", *ends, note, compared, own)


def latency_metric(q: float) -> str:
    """Name the metric of a quantile of latencies.

    >>> latency_metric(0.95)
    'latency_p95_ms'
    """
    return f"latency_p{100 * q:g}_ms"


def _runs(samples: Iterable[Latency]) -> list[str] | None:
    named = [each.run for each in samples]
    return [str(each) for each in named] if all(each is not None for each in named) else None


def _history(evidence: Evidence, settings: Settings) -> Iterator[Trial]:
    """Hold the newest value against the past ones: noise is what earlier versions show of it."""
    current = evidence.right.metrics or {}
    for metric in dict.fromkeys(each.metric for each in evidence.history):
        past = _ordered([each for each in evidence.history if each.metric == metric])
        if metric in current and len(past) >= LEAST:
            yield _predicted(metric, past, current[metric], settings)


def _ordered(past: list[Past]) -> list[float]:
    """Put past versions in order of time where all have one, else as they were handed in."""
    if all(each.time for each in past):
        past = sorted(past, key=lambda each: each.time or "")
    return [each.value for each in past]


def _predicted(metric: str, past: list[float], value: float, settings: Settings) -> Trial:
    drifts = len(past) >= _TREND and _has_trend(past, settings)

    @cache
    def predicted(level: float) -> Prediction:
        times = list(range(len(past)))
        found = against_trend(times, past, len(past), value, level) if drifts else None
        found = found or against_history(past, value, level)
        if found is None:
            raise ValueError(f"{len(past)} past values: the least is {LEAST}")
        return found

    def compared(level: float) -> Comparison:
        found = predicted(level)
        expected, reach = (found.low + found.high) / 2, (found.high - found.low) / 2
        moved = value - expected
        flat = found.t is None and found.p < 1
        return Comparison(
            moved, None if flat else moved - reach, None if flat else moved + reach, level,
            None if flat else found.p, "prediction interval", len(past), len(past),
            statistic=found.t, df=found.df,
            note="all past versions are equal: no noise to test against" if flat else "",
        )  # fmt: skip

    ends = predicted(1 - settings.alpha)
    what = "the line through" if drifts else "the mean of"
    note = f"left is {what} {len(past)} past versions"
    return Trial(
        metric, "history", (ends.low + ends.high) / 2, value, note, compared, least=LEAST
    )  # fmt: skip


def _has_trend(past: list[float], settings: Settings) -> bool:
    return mann_kendall(past, seed=settings.seed).p < settings.alpha


def _scalars(evidence: Evidence) -> Iterator[Trial]:
    left, right = evidence.left.metrics or {}, evidence.right.metrics or {}
    for metric in (name for name in left if name in right):
        yield Trial(metric, "metrics", left[metric], right[metric], NO_REPEATS)
