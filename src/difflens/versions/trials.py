"""How two snapshots can be compared on each metric, by the strongest evidence both have.

Enough seeds go before examples: they tell how the recipes differ, examples only how these two
checkpoints do. Then examples, latencies, fewer seeds, counts behind an accuracy, past versions,
and last two single numbers, which nothing can be tested with.

Figures of different data say nothing of the models: such metrics are shown and not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from difflens.diffs.evidence.records import Past
from difflens.diffs.quality.trials import (
    Ends,
    Settings,
    Trial,
    eval_trials,
    history_trials,
    latency_trials,
    number_trials,
)
from difflens.stats.clusters import clustered_mean
from difflens.stats.comparison import Comparison
from difflens.stats.means import welch
from difflens.stats.proportions import newcombe, wilson
from difflens.stats.skewed import paired_mean

from .metrics import LATENCY, depends_on, drop_huge_samples, known, ordered, single_numbers
from .records.snapshots import ModelSnapshot

ENOUGH = 5  # seeds a side from which they earn a verdict
FEWEST = 2  # values a side below which there is nothing to compare
SCALARS = "scalars"
SOURCES = ("many seeds", "evals", "latency", "seeds", "counts", "history", SCALARS)
_COUNTED = ("val_accuracy", "test_accuracy")  # shares of the examples that were evaluated
_WHOLE = 0.26  # how far accuracy · n may lie from a whole number, as two decimals round it


def trials(
    left: ModelSnapshot, right: ModelSnapshot, settings: Settings, past: Iterable[Past] = ()
) -> list[Trial]:
    """List each metric of both snapshots once."""
    found: dict[str, Trial] = {}
    for trial in _every_trial(
        drop_huge_samples(left), drop_huge_samples(right), settings, tuple(past)
    ):
        before = found.get(trial.metric)
        if before is None or _rank(trial) < _rank(before):
            found[trial.metric] = trial
    return [found[name] for name in ordered(found)]


def _rank(trial: Trial) -> int:
    many = trial.source == "seeds" and "few" not in trial.note
    return SOURCES.index("many seeds" if many else trial.source)


def _every_trial(
    left: ModelSnapshot, right: ModelSnapshot, settings: Settings, past: tuple[Past, ...]
) -> Iterator[Trial]:
    values = [{name: each.value for name, each in known(side).items()} for side in (left, right)]
    timed = left.latency_samples, right.latency_samples
    yield from eval_trials(left.evals, right.evals)
    yield from latency_trials(*timed, settings)
    for trial in latency_trials(*timed, settings._replace(latency_quantile=0.5)):
        yield trial._replace(metric=LATENCY)
    yield from _seeds(left, right)
    yield from _counts(left, right)
    yield from history_trials(past, values[1], settings)
    for trial in number_trials(*values):
        yield trial._replace(source=SCALARS)


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
            return paired_mean(left, right, None, level)
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
    recorded = [single_numbers(side) for side in (left, right)]
    metrics = [name for name in _COUNTED if all(name in each for each in recorded)]
    if len(metrics) != 1 or not sizes[0] or not sizes[1]:
        return
    values = [each[metrics[0]] for each in recorded]
    counts = [round(value * n) for value, n in zip(values, sizes, strict=True) if n]
    if any(
        abs(value * n - count) > max(_WHOLE, 0.005 * n)
        for value, n, count in zip(values, sizes, counts, strict=True)
        if n
    ):
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


class Conditions:
    """What speaks against comparing two snapshots, and what is only worth knowing."""

    def __init__(self, left: ModelSnapshot, right: ModelSnapshot) -> None:
        """Look at what both say of their evaluation; what one does not say is no obstacle."""
        before, after = left.evaluation, right.evaluation
        self._obstacles: dict[str, str] = {}
        self.warnings: list[str] = []
        if before.fingerprint and after.fingerprint:
            if before.fingerprint != after.fingerprint:
                self._obstacles["data"] = "measured on different data: the fingerprints differ"
        elif _differ(before.dataset, after.dataset):
            self._obstacles["data"] = (
                f"measured on different data: {before.dataset} and {after.dataset}"
            )
        if _differ(before.hardware, after.hardware):
            self._obstacles["hardware"] = (
                f"measured on different hardware: {before.hardware} and {after.hardware}"
            )
        pair = f"{left.key} and {right.key}"
        self.warnings += [f"{pair} were {each}" for each in self._obstacles.values()]
        if _differ(before.precision, after.precision):
            said = f"{before.precision} and {after.precision}"
            self.warnings.append(f"{pair} were measured in different precision: {said}")
        if before.n and after.n and before.n != after.n and "data" not in self._obstacles:
            self.warnings.append(f"{pair} were measured on {before.n} and {after.n} examples")

    def obstacle(self, metric: str) -> str:
        """Say why a metric of the two cannot be compared; empty if it can."""
        return self._obstacles.get(depends_on(metric), "")


def _differ(left: str | None, right: str | None) -> bool:
    return bool(left and right and left != right)
