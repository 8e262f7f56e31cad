"""What was tried: every metric that both sides have, with all that was measured of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from difflens.core.errors import DifflensError
from difflens.stats.clusters import clustered_mean
from difflens.stats.comparison import NO_REPEATS, Comparison
from difflens.stats.forecast import LEAST, Prediction, against_history, against_trend
from difflens.stats.proportions import wilson
from difflens.stats.quantiles import compare, quantile
from difflens.stats.trend import mann_kendall

from ..answer import Answer
from ..evidence.records import Evidence, Example, Latency, Past
from .sides import FEWEST, Own, Sides, compared, enlarged, metrics_of, sides_of


class Settings(NamedTuple):
    """How sure a claim must be, and how latencies are compared."""

    alpha: float = 0.05
    latency_quantile: float = 0.95
    seed: int = 0

    @classmethod
    def of(cls, answer: Answer) -> Settings:
        """Take those in force; one that allows no test is refused."""
        limits = {"alpha": 0.5, "latency_quantile": 1.0}
        for name, limit in limits.items():
            if not 0 < answer[name] < limit:
                reason = f"{name} is {answer[name]}, it must lie between 0 and {limit:g}"
                raise DifflensError(reason, where=f"policy, [{answer.name}]")
        if answer["seed"] < 0:
            reason = f"seed is {answer['seed']}, it must not be negative"
            raise DifflensError(reason, where=f"policy, [{answer.name}]")
        return cls(answer["alpha"], answer["latency_quantile"], answer["seed"])


# Levels are not fixed here: how sure one metric must be depends on how many are looked at.

SOURCES = ("evals", "latency", "history", "metrics")  # the strongest first
_VERDICT = 5  # values a side below which samples earn no verdict
_TREND = 8  # past values below which a drift cannot be told from noise

Ends = tuple[float | None, float | None]


class Trial(NamedTuple):
    """One metric: both values, and how their difference is compared at a level.

    `compare` is None if two single numbers are all there is; `own` gives the interval of the
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
    caution: str = ""  # what must be told wherever the result is
    # The interval of so many times the examples at a level, where more of them are to be had.
    enlarged: Callable[[float, float], tuple[float, float] | None] | None = None


def trials(evidence: Evidence, settings: Settings) -> list[Trial]:
    """List each metric once, by the strongest evidence: evals, latency, history, two numbers."""
    found: dict[str, Trial] = {}
    for trial in _all(evidence, settings):
        known = found.get(trial.metric)
        if known is None or SOURCES.index(trial.source) < SOURCES.index(known.source):
            found[trial.metric] = trial
    return list(found.values())


def _all(evidence: Evidence, settings: Settings) -> Iterator[Trial]:
    left, right = evidence.left, evidence.right
    yield from eval_trials(left.evals, right.evals)
    yield from latency_trials(left.latency, right.latency, settings)
    yield from history_trials(evidence.history, right.metrics or {}, settings)
    yield from number_trials(left.metrics or {}, right.metrics or {})


def eval_trials(left: Sequence[Example], right: Sequence[Example]) -> Iterator[Trial]:
    """Yield each metric that both sides have examples of."""
    for metric in metrics_of(left, right):
        sides = sides_of(left, right, metric)
        if sides is not None:
            yield sides_trial(metric, sides)


def sides_trial(metric: str, sides: Sides) -> Trial:
    """Compare two evaluations; the values told are each side's own, over all its examples."""
    left, right = sides.owned
    flips = sides.flips

    @cache
    def at(level: float) -> Comparison:
        return compared(sides, level)

    return Trial(
        metric,
        "evals",
        left.mean,
        right.mean,
        sides.note,
        at,
        _own_mean(right),
        flips=(flips.broke, flips.fixed) if flips else None,
        caution=sides.caution,
        enlarged=lambda times, level: enlarged(sides, times, level),
    )


def _own_mean(own: Own) -> Callable[[float], Ends]:
    """Bound a mean: Wilson's interval for independent right and wrong, t (by cluster) else."""
    is_binary = set(own.values) <= {0.0, 1.0}

    def bounds(level: float) -> Ends:
        if own.clusters is None and is_binary:
            found = wilson(int(sum(own.values)), len(own.values), level)
            return found.low, found.high
        mean = clustered_mean(own.values, own.clusters or range(len(own.values)), level)
        return mean.low, mean.high

    return bounds


def latency_trials(
    left: Sequence[Latency], right: Sequence[Latency], settings: Settings
) -> Iterator[Trial]:
    """Yield the quantile of latencies that the settings name, if both sides have any."""
    if min(len(left), len(right)) < FEWEST:
        return
    q, runs = settings.latency_quantile, (_runs(left), _runs(right))
    values = [each.ms for each in left], [each.ms for each in right]

    @cache
    def compared(level: float) -> Comparison:
        made = compare(*values, q, *runs, seed=settings.seed, level=level)
        return Comparison(
            made.difference,
            made.low,
            made.high,
            made.level,
            made.p,
            made.method,
            made.n_left,
            made.n_right,
            note=made.note,
        )

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


def history_trials(
    past: Sequence[Past], current: Mapping[str, float], settings: Settings
) -> Iterator[Trial]:
    """Compare each current value with its past ones: how far those scatter is the noise."""
    for metric in dict.fromkeys(each.metric for each in past):
        values = _ordered([each for each in past if each.metric == metric])
        if metric in current and len(values) >= LEAST:
            yield _predicted(metric, values, current[metric], settings)


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
            moved,
            None if flat else moved - reach,
            None if flat else moved + reach,
            level,
            None if flat else found.p,
            "prediction interval",
            len(past),
            len(past),
            statistic=found.t,
            df=found.df,
            note="all past versions are equal: no noise to test against" if flat else "",
        )

    ends = predicted(1 - settings.alpha)
    what = "the line through" if drifts else "the mean of"
    note = f"left is {what} {len(past)} past versions"
    return Trial(metric, "history", (ends.low + ends.high) / 2, value, note, compared, least=LEAST)


def _has_trend(past: list[float], settings: Settings) -> bool:
    return mann_kendall(past, seed=settings.seed).p < settings.alpha


def number_trials(left: Mapping[str, float], right: Mapping[str, float]) -> Iterator[Trial]:
    """Yield each metric that both sides have one number of: nothing can be tested with it."""
    for metric in (name for name in left if name in right):
        yield Trial(metric, "metrics", left[metric], right[metric], NO_REPEATS)
