"""Which models no other beats in everything: the front of quality, latency, memory and size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..comparisons import ParetoPoint
from ..stats.equivalence import Direction
from .metrics import LATENCY, MEMORY, SIZE, Rule


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
) -> Front:
    """Hold every model against every other on the objectives that at least two have.

    One dominates another where it is at least as good in all of them and better in one; the
    values are those observed, noise and all.
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
            other for other, theirs in table.items() if _dominates(theirs, own, objectives)
        )
        points.append(ParetoPoint(model=model, values=own, on_front=not above, dominated_by=above))
    return Front(tuple(points), objectives, left_out)


def _dominates(
    one: Mapping[str, float], other: Mapping[str, float], objectives: Mapping[str, Direction]
) -> bool:
    gains = [
        (one[name] - other[name]) * (1 if better == "higher" else -1)
        for name, better in objectives.items()
    ]
    return min(gains) >= 0 and max(gains) > 0
