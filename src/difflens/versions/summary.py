"""A comparison in few words, each from a number that stands in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from difflens.core.findings import Finding, Missing
from difflens.diffs.quality.margins import is_accuracy, is_loss
from difflens.stats.decision import Direction

from .metrics import ACCURACY, LATENCY, LOSS, MEMORY, SIZE
from .records.comparisons import ComparisonSummary, MetricComparison, PairwiseTest, ParetoPoint
from .standings import Front

CRITERIA = ("val_accuracy", "test_accuracy"), ("val_loss", "test_loss")
_LIKE = is_accuracy, is_loss
# The name of the ranking of a built-in metric; any other has the name of its metric.
RANKINGS = {ACCURACY: "accuracy", LOSS: "loss", LATENCY: "latency", MEMORY: "memory", SIZE: "size"}
_MOST_SENTENCES = 12  # findings that become sentences; all of them stand in `findings`


def criterion_of(compared: Mapping[str, MetricComparison]) -> str | None:
    """Choose what decides which model is best: accuracy, else loss, else the first that can."""
    usable = [name for name, each in compared.items() if each.direction]
    costs = {LATENCY, MEMORY, SIZE}
    quality = [name for name in usable if name not in costs]
    return criterion_among(usable) or next(iter([*quality, *usable]), None)


def criterion_among(names: Collection[str]) -> str | None:
    """Choose an accuracy, else a loss, under whatever name: the built-in ones first."""
    for fixed, is_like in zip(CRITERIA, _LIKE, strict=True):
        for name in (*fixed, *filter(is_like, names)):
            if name in names:
                return name
    return None


def summarise(
    compared: Mapping[str, MetricComparison],
    criterion: str | None,
    front: Front,
    tests: Iterable[PairwiseTest],
    level: float,
) -> ComparisonSummary:
    """Say who is best, on what, and how sure that is."""
    chosen = compared[criterion] if criterion else None
    ranked = {name: each for name, each in compared.items() if each.ranking}
    found = tuple(_findings(compared, level))
    missing = []
    if chosen is None:
        needs = "a metric of a known direction that two models have"
        missing = [
            Missing("best_model", needs, "there is none"),
            Missing("separated", needs, "there is none"),
        ]
    else:
        missing = [each for each in chosen.missing if each.field in {"best_model", "separated"}]
    return ComparisonSummary(
        best_model=chosen.best_model if chosen else None,
        rankings={
            RANKINGS.get(name, name): tuple(chain(*each.ranking)) for name, each in ranked.items()
        },
        key_findings=tuple(each.text for each in found[:_MOST_SENTENCES]),
        recommendations=tuple(_recommendations(chosen, front, tests)),
        criterion=criterion or "",
        separated=chosen.separated if chosen else None,
        ties={
            name: tuple(group for group in each.ranking if len(group) > 1)
            for name, each in ranked.items()
            if any(len(group) > 1 for group in each.ranking)
        },
        pareto_front=front.front,
        pareto=front.points,
        objectives=front.objectives,
        left_out=front.left_out,
        findings=found,
        missing=tuple(missing),
    )


def _findings(compared: Mapping[str, MetricComparison], level: float) -> Iterator[Finding]:
    """Tell differences that matter: first those that are sure, then those nothing can test."""
    sure: list[Finding] = []
    bare: list[Finding] = []
    for metric, each in compared.items():
        for model in (name for group in each.ranking for name in group):
            if model in each.ranking[0] or not each.exceeds_practical_threshold.get(model):
                continue
            stands = each.significant_differences.get(model)
            if stands is False:
                continue
            (sure if stands else bare).append(_finding(metric, each, model, stands, level))
    yield from sure
    yield from bare


def _finding(
    metric: str, each: MetricComparison, model: str, stands: bool | None, level: float
) -> Finding:
    best = each.reference
    level_with = ", ".join(each.ranking[0])
    gap = abs(each.absolute_differences[model])
    unit = f" {each.unit}" if each.unit else ""
    how = (
        f"sure at {level:.0%} after adjustment" if stands else "not tested: no samples, or too few"
    )
    text = (
        f"{metric}: {level_with} {each.values[best]:.4g}{unit},"
        f" {model} {each.values[model]:.4g}{unit};"
        f" {gap:.3g} apart, {each.margin or 0:.3g} matter; {how}"
    )
    evidence = {
        "best": each.values[best],
        "value": each.values[model],
        "difference": gap,
        "margin": each.margin,
    }
    return Finding("compare", model, text, evidence, "medium" if stands else "info")


def _recommendations(
    chosen: MetricComparison | None, front: Front, tests: Iterable[PairwiseTest]
) -> Iterator[str]:
    """Recommend a model only if its lead is significant; else say what would decide."""
    if chosen is None:
        return
    if chosen.separated:
        yield from _by_front(front)
        return
    yield _undecided(chosen, tests)
    others = {name: better for name, better in front.objectives.items() if name != chosen.metric}
    told = list(_best_of(front.points, others))
    if told:
        yield f"choose by what else matters: {', '.join(told)}"


def _undecided(chosen: MetricComparison, tests: Iterable[PairwiseTest]) -> str:
    """Say why the metric chooses nobody, and what would."""
    if chosen.best_model is None:
        why = next(each.why for each in chosen.missing if each.field == "best_model")
        return f"{why}: it prefers none"
    if chosen.separated is None and chosen.evidence != "scalars":
        return f"record samples of {chosen.metric} that vary, five of each model or more"
    if chosen.separated is None:
        return (
            f"record evals or seeds of {chosen.metric}: single numbers cannot tell whether"
            f" {chosen.best_model} is ahead by more than noise"
        )
    near = [
        test
        for test in tests
        if test.metric == chosen.metric
        and not test.significant
        and chosen.best_model in (test.left, test.right)
    ]
    seen = [test.minimal_detectable for test in near if test.minimal_detectable]
    told = f"; a difference of {max(seen):.3g} would have been found in 80 %" if seen else ""
    return f"do not choose by {chosen.metric} alone: its best is not told apart{told}"


def _by_front(front: Front) -> Iterator[str]:
    """Say what the front allows: one model, or a choice between named values."""
    names = ", ".join(front.objectives)
    if len(front.points) > 1 and len(front.front) == 1:
        best = f"it has the best {names}"
        if len(front.objectives) > 1:
            best = f"no other is better in any of {names}"
        yield f"choose {front.front[0]}: {best}"
        return
    if len(front.front) < 2 or len(front.objectives) < 2:
        return
    points = [point for point in front.points if point.on_front]
    yield f"choose by what matters: {', '.join(_best_of(points, front.objectives))}"


def _best_of(points: Sequence[ParetoPoint], objectives: Mapping[str, Direction]) -> Iterator[str]:
    """Name who is best at each objective that has one best value."""
    for name, better in objectives.items():
        sign = 1 if better == "higher" else -1
        best = max((sign * point.values[name] for point in points), default=None)
        first = [point for point in points if sign * point.values[name] == best]
        if len(first) == 1:
            yield f"{first[0].model} for {name} ({first[0].values[name]:.4g})"
