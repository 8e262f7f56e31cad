"""One metric of several models: who is first, by how much, and who is told apart from whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from ..comparisons import MetricComparison, PairwiseTest
from ..records import Missing
from .metrics import Rule, relative


def metric_comparison(
    metric: str,
    values: Mapping[str, float],
    rule: Rule,
    tests: Iterable[PairwiseTest],
    evidence: Any,
) -> MetricComparison:
    """Rank the models on one metric; without a direction there are differences and no winner."""
    apart = {frozenset((test.left, test.right)): test.significant
             for test in tests if test.metric == metric}  # fmt: skip
    ranking = ranked(values, rule)
    best = ranking[0][0] if ranking else None
    reference = best or next(iter(values))
    others = [name for name in values if name != reference]
    significant = {name: apart.get(frozenset((reference, name))) for name in others}
    gaps = {name: value - values[reference] for name, value in values.items()}
    return MetricComparison(
        values=dict(values),
        best_model=best,
        worst_model=ranking[-1][-1] if ranking else None,
        differences={name: _percent(values[reference], value, rule)
                     for name, value in values.items()},
        significant_differences={reference: None if None in significant.values() else False}
        | significant,
        metric=metric,
        unit=rule.unit,
        direction=rule.direction,
        separated=_separated(significant.values()) if ranking else None,
        absolute_differences=gaps,
        exceeds_practical_threshold={
            name: None if rule.margin is None else abs(gap) > rule.margin
            for name, gap in gaps.items()
        },
        margin=rule.margin,
        ranking=ranking,
        letters=letters([name for group in ranking for name in group], apart),
        reference=reference,
        evidence=evidence,
        missing=_missing(metric, rule, significant),
    )  # fmt: skip


def ranked(values: Mapping[str, float], rule: Rule) -> tuple[tuple[str, ...], ...]:
    """Put the best first; equal values share a place, in the order the models were named."""
    if rule.direction is None:
        return ()
    sign = -1 if rule.direction == "higher" else 1
    order = sorted(values, key=lambda name: sign * values[name])
    return tuple(tuple(group) for _, group in groupby(order, key=lambda name: values[name]))


def _percent(best: float, value: float, rule: Rule) -> float | None:
    """Give the difference in percent of the best value, negative where a model is worse."""
    share = relative(best, value)
    if share is None:
        return None
    gap = 100 * share if rule.direction != "lower" else -100 * share
    return gap + 0.0  # no negative zero


def _separated(significant: Iterable[bool | None]) -> bool | None:
    known = list(significant)
    if False in known:
        return False
    return None if None in known else True


def letters(order: Sequence[str], apart: Mapping[frozenset[str], bool | None]) -> dict[str, str]:
    """Give models that are not told apart a letter in common (Piepho 2004, insert and absorb).

    Empty where a pair was not tested: letters would claim what nobody knows.
    """
    pairs = [frozenset((one, other)) for at, one in enumerate(order) for other in order[at + 1 :]]
    if not pairs or any(apart.get(pair) is None for pair in pairs):
        return {}
    columns = [frozenset(order)]
    for pair in pairs:
        if apart[pair]:
            split = [column - {name} for column in columns for name in pair if pair <= column]
            kept = [column for column in columns if not pair <= column]
            columns = _absorbed([*kept, *split])
    columns.sort(key=lambda column: sorted(order.index(name) for name in column))
    return {
        name: "".join(_letter(at) for at, column in enumerate(columns) if name in column)
        for name in order
    }


def _absorbed(columns: list[frozenset[str]]) -> list[frozenset[str]]:
    unique = list(dict.fromkeys(columns))
    return [one for one in unique if not any(one < other for other in unique)]


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"({place + 1})"


def _missing(
    metric: str, rule: Rule, significant: Mapping[str, bool | None]
) -> tuple[Missing, ...]:
    found = []
    if rule.direction is None:
        why = f"which way {metric} is better is not known"
        found += [Missing(field, f"[metrics.{metric}] direction in --policy", why)
                  for field in ("best_model", "worst_model", "direction", "margin")]  # fmt: skip
    silent = [name for name, each in significant.items() if each is None]
    if silent:
        why = f"no samples to test with, or too few: {', '.join(silent)}"
        found.append(Missing("significant_differences", "--eval, or replicates over seeds", why))
        if rule.direction is not None:
            found.append(Missing("separated", "--eval, or replicates over seeds", why))
    elif rule.direction is None:
        found.append(Missing("separated", f"[metrics.{metric}] direction in --policy",
                             "without a direction there is no best"))  # fmt: skip
    return tuple(found)
