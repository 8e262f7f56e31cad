"""Several models on one metric and on several: who leads, by how much, and whom no other beats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from difflens.core.findings import Missing
from difflens.stats.decision import Direction

from .metrics import LATENCY, MEMORY, SIZE, Rule, relative
from .records.comparisons import MetricComparison, PairwiseTest, ParetoPoint


def metric_comparison(
    metric: str,
    values: Mapping[str, float],
    rule: Rule,
    tests: Iterable[PairwiseTest],
    evidence: Any,
) -> MetricComparison:
    """Rank the models on one metric; without a direction there are differences and no winner."""
    own = [test for test in tests if test.metric == metric]
    apart = {frozenset((test.left, test.right)): test.significant for test in own}
    ranking, same = ranked(values, rule), equivalents(own)
    best, worst = _sole(ranking[:1], same), _sole(ranking[1:][-1:], same)
    reference = ranking[0][0] if ranking else next(iter(values))
    others = [name for name in values if name != reference]
    significant = {name: apart.get(frozenset((reference, name))) for name in others}
    gaps = {name: value - values[reference] for name, value in values.items()}
    return MetricComparison(
        values=dict(values),
        best_model=best,
        worst_model=worst,
        differences={
            name: _percent(values[reference], value, rule) for name, value in values.items()
        },
        significant_differences={reference: None if None in significant.values() else False}
        | significant,
        metric=metric,
        unit=rule.unit,
        direction=rule.direction,
        separated=_separated(ranking, significant.values()),
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
        missing=(
            *_missing(metric, rule, ranking, significant, evidence),
            *_tied(metric, ranking, same),
        ),
    )


def ranked(values: Mapping[str, float], rule: Rule) -> tuple[tuple[str, ...], ...]:
    """Put the best first; equal values share a place, in the order the models were named."""
    if rule.direction is None:
        return ()
    sign = -1 if rule.direction == "higher" else 1
    order = sorted(values, key=lambda name: sign * values[name])
    return tuple(tuple(group) for _, group in groupby(order, key=lambda name: values[name]))


def equivalents(tests: Iterable[PairwiseTest]) -> frozenset[frozenset[str]]:
    """List the equivalent pairs: their difference does not matter."""
    return frozenset(
        frozenset((test.left, test.right)) for test in tests if test.word == "equivalent"
    )


def _sole(places: Sequence[tuple[str, ...]], same: Iterable[frozenset[str]]) -> str | None:
    """Name the model that has a place to itself; None if others are as good."""
    if not places or len(places[0]) > 1 or any(places[0][0] in pair for pair in same):
        return None
    return places[0][0]


def _tied(
    metric: str, ranking: Sequence[tuple[str, ...]], same: Iterable[frozenset[str]]
) -> Iterator[Missing]:
    """Say why there is no best or no worst model: others are as good, or as bad."""
    for field, places in (("best_model", ranking[:1]), ("worst_model", ranking[1:][-1:])):
        for group in places or ranking[:1]:
            others = {name for pair in same if group[0] in pair for name in pair} - {group[0]}
            if len(group) > 1:
                why = f"{', '.join(group)} have the same {metric}"
                yield Missing(field, f"values of {metric} that differ", why)
            elif others:
                why = f"{', '.join([group[0], *sorted(others)])} are equivalent in {metric}"
                yield Missing(field, "a difference beyond the margin", why)


def _percent(best: float, value: float, rule: Rule) -> float | None:
    """Return the difference in percent of the best value, negative where a model is worse."""
    share = relative(best, value)
    if share is None:
        return None
    gap = 100 * share if rule.direction != "lower" else -100 * share
    return gap + 0.0  # no negative zero


def _separated(
    ranking: Sequence[tuple[str, ...]], significant: Iterable[bool | None]
) -> bool | None:
    if not ranking:
        return None
    known = list(significant)
    if False in known or len(ranking[0]) > 1:
        return False
    return None if None in known else True


def letters(order: Sequence[str], apart: Mapping[frozenset[str], bool | None]) -> dict[str, str]:
    """Mark models that do not differ by a letter in common (Piepho 2004, insert and absorb).

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
    metric: str,
    rule: Rule,
    ranking: Sequence[tuple[str, ...]],
    significant: Mapping[str, bool | None],
    evidence: str,
) -> tuple[Missing, ...]:
    found = []
    if rule.direction is None:
        why = f"which way {metric} is better is not known"
        found += [
            Missing(field, f"[metrics.{metric}] direction in --policy", why)
            for field in ("best_model", "worst_model", "direction", "margin")
        ]
    silent = [name for name, each in significant.items() if each is None]
    if silent:
        needs, lead = "--eval, or replicates over seeds", "no samples to test with"
        if evidence != "scalars":
            needs = "samples that vary, five a side or more"
            lead = "too few samples, or none that vary"
        why = f"{lead}: {', '.join(silent)}"
        found.append(Missing("significant_differences", needs, why))
        if _separated(ranking, significant.values()) is None and rule.direction is not None:
            found.append(Missing("separated", needs, why))
    elif rule.direction is None:
        found.append(
            Missing(
                "separated",
                f"[metrics.{metric}] direction in --policy",
                "without a direction there is no best",
            )
        )
    return tuple(found)


class Front(NamedTuple):
    """Every model among its objectives; those that lack one are left out, with the reason."""

    points: tuple[ParetoPoint, ...]
    objectives: dict[str, Direction]
    left_out: dict[str, str]

    @property
    def front(self) -> tuple[str, ...]:
        """The models on the front."""
        return tuple(point.model for point in self.points if point.on_front)


def pareto(
    values: Mapping[str, Mapping[str, float]],
    rules: Mapping[str, Rule],
    models: list[str],
    criterion: str | None,
    same: Mapping[str, frozenset[frozenset[str]]] | None = None,
) -> Front:
    """Compare every model with every other on the objectives that at least two have.

    One dominates another where it is at least as good in all of them and better in one; the
    values are those observed, noise and all; but pairs that are the `same` in a metric, told
    equivalent in it, do not beat each other by it.
    """
    wanted = [name for name in (criterion, LATENCY, MEMORY, SIZE) if name and name in values]
    objectives: dict[str, Direction] = {
        name: better for name in wanted if (better := rules[name].direction)
    }
    left_out: dict[str, str] = {}
    table: dict[str, dict[str, float]] = {}
    for model in models:
        lacking = [name for name in objectives if model not in values[name]]
        if lacking:
            left_out[model] = f"{', '.join(lacking)} not recorded"
        else:
            table[model] = {name: values[name][model] for name in objectives}
    if not objectives:
        return Front((), {}, dict.fromkeys(models, "no metric of a known direction"))
    points = []
    for model, own in table.items():
        above = tuple(
            other
            for other, theirs in table.items()
            if _dominates(theirs, own, _apart(objectives, same or {}, frozenset((model, other))))
        )
        points.append(ParetoPoint(model=model, values=own, on_front=not above, dominated_by=above))
    return Front(tuple(points), objectives, left_out)


def _apart(
    objectives: Mapping[str, Direction],
    same: Mapping[str, frozenset[frozenset[str]]],
    pair: frozenset[str],
) -> dict[str, Direction]:
    """Leave out the objectives in which the two are equivalent."""
    return {name: way for name, way in objectives.items() if pair not in same.get(name, ())}


def _dominates(
    one: Mapping[str, float], other: Mapping[str, float], objectives: Mapping[str, Direction]
) -> bool:
    gains = [
        (one[name] - other[name]) * (1 if better == "higher" else -1)
        for name, better in objectives.items()
    ]
    return min(gains, default=0) >= 0 and max(gains, default=0) > 0
