"""How two snapshots can be compared on each metric, by the strongest evidence both have.

Enough seeds go before examples: they tell how the recipes differ, examples only how these two
checkpoints do. Then examples, latencies, fewer seeds, counts behind an accuracy, past versions,
and last two single numbers, which nothing can be tested with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from ..analyses.quality.settings import Settings
from ..analyses.quality.trials import Ends, Trial
from ..analyses.quality.trials import trials as evidence_trials
from ..evidences import Evidence, Past, Side
from ..snapshots import ModelSnapshot
from ..stats.clusters import clustered_mean
from ..stats.comparison import Comparison
from ..stats.paired import paired
from ..stats.proportions import newcombe, wilson
from ..stats.welch import welch
from .metrics import LATENCY, known, ordered, reckonable, stated

ENOUGH = 5  # seeds a side from which they earn a verdict
FEWEST = 2  # values a side below which there is nothing to compare
SCALARS = "scalars"
SOURCES = ("many seeds", "evals", "latency", "seeds", "counts", "history", SCALARS)
_COUNTED = ("val_accuracy", "test_accuracy")  # shares of the examples that were evaluated
_WHOLE = 0.26  # how far accuracy · n may lie from a whole number, as two decimals round it


def trials(
    left: ModelSnapshot,
    right: ModelSnapshot,
    settings: Settings,
    past: Iterable[Past] = (),
) -> list[Trial]:
    """List each metric of both snapshots once."""
    found: dict[str, Trial] = {}
    for trial in _all(reckonable(left), reckonable(right), settings, tuple(past)):
        before = found.get(trial.metric)
        if before is None or _rank(trial) < _rank(before):
            found[trial.metric] = trial
    return [found[name] for name in ordered(found)]


def _rank(trial: Trial) -> int:
    many = trial.source == "seeds" and "few" not in trial.note
    return SOURCES.index("many seeds" if many else trial.source)


def _all(
    left: ModelSnapshot, right: ModelSnapshot, settings: Settings, past: tuple[Past, ...]
) -> Iterator[Trial]:
    values = [{name: each.value for name, each in known(side).items()} for side in (left, right)]
    evidence = Evidence(
        left=Side(metrics=values[0], evals=left.evals, latency=left.latency_samples),
        right=Side(metrics=values[1], evals=right.evals, latency=right.latency_samples),
        history=past,
    )
    for trial in evidence_trials(evidence, settings):
        yield trial._replace(source=SCALARS) if trial.source == "metrics" else trial
    middle = Evidence(
        left=Side(latency=left.latency_samples), right=Side(latency=right.latency_samples)
    )
    for trial in evidence_trials(middle, settings._replace(latency_quantile=0.5)):
        yield trial._replace(metric=LATENCY)
    yield from _seeds(left, right)
    yield from _counts(left, right)


def _seeds(left: ModelSnapshot, right: ModelSnapshot) -> Iterator[Trial]:
    for metric in left.replicates:
        before, after = left.replicates[metric], right.replicates.get(metric, ())
        if min(len(before), len(after)) < FEWEST:
            continue
        shared = [each for each in left.replicate_ids if each in set(right.replicate_ids)]
        if len(shared) >= FEWEST:
            yield _paired_seeds(metric, left, right, shared)
        else:
            yield _seed_trial(metric, before, after, is_paired=False, note="seeds, not paired")


def _paired_seeds(
    metric: str, left: ModelSnapshot, right: ModelSnapshot, shared: list[str]
) -> Trial:
    sides = []
    for side in (left, right):
        values = dict(zip(side.replicate_ids, side.replicates[metric], strict=True))
        sides.append(tuple(values[each] for each in shared))
    return _seed_trial(metric, *sides, is_paired=True, note=f"{len(shared)} seeds on both sides")


def _seed_trial(
    metric: str, left: tuple[float, ...], right: tuple[float, ...], *, is_paired: bool, note: str
) -> Trial:
    @cache
    def compared(level: float) -> Comparison:
        if is_paired:
            return paired(left, right, None, level)
        return welch(left, right, level)

    def own(level: float) -> Ends:
        mean = clustered_mean(right, range(len(right)), level)
        return mean.low, mean.high

    fewest = min(len(left), len(right))
    few = f", few: {fewest} of the {ENOUGH} a verdict needs" if fewest < ENOUGH else ""
    means = sum(left) / len(left), sum(right) / len(right)
    return Trial(metric, "seeds", *means, note + few, compared, own, ENOUGH)


def _counts(left: ModelSnapshot, right: ModelSnapshot) -> Iterator[Trial]:
    """Compare an accuracy by the counts behind it, where it is clear which accuracy they are of."""
    sizes = left.evaluation.n, right.evaluation.n
    recorded = [stated(side) for side in (left, right)]
    metrics = [name for name in _COUNTED if all(name in each for each in recorded)]
    if len(metrics) != 1 or not sizes[0] or not sizes[1]:
        return
    values = [each[metrics[0]] for each in recorded]
    counts = [round(value * n) for value, n in zip(values, sizes, strict=True) if n]
    if any(abs(value * n - count) > max(_WHOLE, 0.005 * n)
           for value, n, count in zip(values, sizes, counts, strict=True) if n):  # fmt: skip
        return
    found = _count_trial(metrics[0], (counts[0], sizes[0]), (counts[1], sizes[1]))
    yield found._replace(left=values[0], right=values[1])


def _count_trial(metric: str, left: tuple[int, int], right: tuple[int, int]) -> Trial:
    @cache
    def compared(level: float) -> Comparison:
        return newcombe(*left, *right, level)

    def own(level: float) -> Ends:
        found = wilson(*right, level)
        return found.low, found.high

    note = f"{left[0]} of {left[1]} against {right[0]} of {right[1]}: which examples is not known"
    rates = left[0] / left[1], right[0] / right[1]
    return Trial(metric, "counts", *rates, note, compared, own)
