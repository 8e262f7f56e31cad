"""Per-example results of two models, joined by their ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ...evidences import Example


class Join(NamedTuple):
    """The examples both sides have, in one order, and how many only one has."""

    ids: tuple[str, ...]
    left: tuple[float, ...]
    right: tuple[float, ...]
    clusters: tuple[str, ...] | None
    only_left: int
    only_right: int
    repeats: int  # examples with several answers, which were averaged first

    @property
    def is_binary(self) -> bool:
        """Are all scores right or wrong?"""
        return set(self.left) | set(self.right) <= {0.0, 1.0}

    @property
    def about(self) -> str:
        """Say what the join left out."""
        parts = [f"{len(self.ids)} examples on both sides"]
        parts += [f"{self.only_left} only left"] * bool(self.only_left)
        parts += [f"{self.only_right} only right"] * bool(self.only_right)
        parts += [f"{self.repeats} answered several times, averaged"] * bool(self.repeats)
        return ", ".join(parts)


def metrics_of(*sides: Iterable[Example]) -> list[str]:
    """List the metrics that every side has examples of, in order of appearance."""
    names = [dict.fromkeys(each.metric for each in side) for side in sides]
    return [name for name in names[0] if all(name in other for other in names[1:])]


def join(left: Iterable[Example], right: Iterable[Example], metric: str) -> Join:
    """Join the examples of one metric by id; several answers to one are averaged first."""
    before, after = _gathered(left, metric), _gathered(right, metric)
    ids = tuple(each for each in before if each in after)
    groups = tuple(before[each].cluster or after[each].cluster for each in ids)
    return Join(
        ids,
        tuple(before[each].mean for each in ids),
        tuple(after[each].mean for each in ids),
        tuple(map(str, groups)) if ids and all(group is not None for group in groups) else None,
        len(before) - len(ids),
        len(after) - len(ids),
        sum(len(side[each].scores) > 1 for side in (before, after) for each in ids),
    )


class _Answers(NamedTuple):
    scores: list[float]
    cluster: str | None

    @property
    def mean(self) -> float:
        return sum(self.scores) / len(self.scores)


def _gathered(examples: Iterable[Example], metric: str) -> dict[str, _Answers]:
    found: dict[str, list[Example]] = defaultdict(list)
    for each in examples:
        if each.metric == metric:
            found[each.id].append(each)
    return {
        name: _Answers([each.score for each in group], group[0].cluster)
        for name, group in found.items()
    }
