"""A comparison in few words, each from a number that stands in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from ..comparisons import ComparisonSummary, MetricComparison, PairwiseTest
from ..records import Finding, Missing
from .metrics import ACCURACY, LATENCY, LOSS, MEMORY, SIZE
from .pareto import Front

CRITERIA = ("val_accuracy", "test_accuracy", "val_loss", "test_loss")
# What the contract calls the ranking of a metric; every other has the metric's own name.
RANKINGS = {ACCURACY: "accuracy", LOSS: "loss", LATENCY: "latency", MEMORY: "memory", SIZE: "size"}
_TOLD = 12  # findings that become sentences; all of them stand in `findings`


def criterion_of(compared: Mapping[str, MetricComparison]) -> str | None:
    """Choose what decides which model is best: accuracy, else loss, else the first that can."""
    usable = [name for name, each in compared.items() if each.direction]
    costs = {LATENCY, MEMORY, SIZE}
    quality = [name for name in usable if name not in costs]
    return next(
        (name for name in CRITERIA if name in usable), next(iter([*quality, *usable]), None)
    )


def summarised(
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
        missing = [Missing("best_model", needs, "there is none"),
                   Missing("separated", needs, "there is none")]  # fmt: skip
    elif chosen.separated is None:
        missing = [each for each in chosen.missing if each.field == "separated"]
    return ComparisonSummary(
        best_model=chosen.best_model if chosen else None,
        rankings={RANKINGS.get(name, name): tuple(chain(*each.ranking))
                  for name, each in ranked.items()},
        key_findings=tuple(each.text for each in found[:_TOLD]),
        recommendations=tuple(_recommendations(chosen, front, tests)),
        criterion=criterion or "",
        separated=chosen.separated if chosen else None,
        ties={name: tuple(group for group in each.ranking if len(group) > 1)
              for name, each in ranked.items() if any(len(group) > 1 for group in each.ranking)},
        pareto_front=front.front,
        pareto=front.points,
        objectives=front.objectives,
        left_out=front.left_out,
        findings=found,
        missing=tuple(missing),
    )  # fmt: skip


def _findings(compared: Mapping[str, MetricComparison], level: float) -> Iterator[Finding]:
    """Tell differences that matter: first those that are sure, then those nothing can test."""
    sure: list[Finding] = []
    bare: list[Finding] = []
    for metric, each in compared.items():
        for model in (name for group in each.ranking for name in group):
            if model == each.best_model or not each.exceeds_practical_threshold.get(model):
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
    best = each.best_model or ""
    gap = abs(each.absolute_differences[model])
    unit = f" {each.unit}" if each.unit else ""
    how = (
        f"sure at {level:.0%} after adjustment" if stands else "not tested: no samples, or too few"
    )
    text = (
        f"{metric}: {best} {each.values[best]:.4g}{unit}, {model} {each.values[model]:.4g}{unit};"
        f" {gap:.3g} apart, {each.margin or 0:.3g} matter; {how}"
    )
    evidence = {"best": each.values[best], "value": each.values[model], "difference": gap,
                "margin": each.margin}  # fmt: skip
    return Finding("compare", model, text, evidence, "medium" if stands else "info")


def _recommendations(
    chosen: MetricComparison | None, front: Front, tests: Iterable[PairwiseTest]
) -> Iterator[str]:
    yield from _by_front(front)
    if chosen is None or chosen.best_model is None:
        return
    if chosen.separated is None:
        yield (
            f"record evals or seeds of {chosen.metric}: single numbers cannot tell whether"
            f" {chosen.best_model} is ahead by more than noise"
        )
    elif chosen.separated is False:
        near = [test for test in tests if test.metric == chosen.metric and not test.significant
                and chosen.best_model in (test.left, test.right)]  # fmt: skip
        seen = [test.minimal_detectable for test in near if test.minimal_detectable]
        told = f"; a difference of {max(seen):.3g} would have been found in 80 %" if seen else ""
        yield f"do not choose by {chosen.metric} alone: its best is not told apart{told}"


def _by_front(front: Front) -> Iterator[str]:
    """Say what the front allows: one model, or a choice between named values."""
    names = ", ".join(front.objectives)
    if len(front.points) > 1 and len(front.front) == 1:
        yield f"choose {front.front[0]}: no other is better in any of {names}"
        return
    if len(front.front) < 2 or len(front.objectives) < 2:
        return
    points = {point.model: point.values for point in front.points}
    told = []
    for name, better in front.objectives.items():
        if len({points[model][name] for model in front.front}) == 1:
            continue
        sign = 1 if better == "higher" else -1
        best = max(front.front, key=lambda model, name=name, sign=sign: sign * points[model][name])  # type: ignore[misc]
        told.append(f"{best} for {name} ({points[best][name]:.4g})")
    yield f"choose by what matters: {', '.join(told)}"
