"""Per-example results of two models, joined by their ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ...evidences import Example


class Join(NamedTuple):
    """The examples both sides have, by id, and how many only one has."""

    ids: tuple[str, ...]
    left: tuple[float, ...]
    right: tuple[float, ...]
    clusters: tuple[str, ...] | None
    only_left: int
    only_right: int
    repeats: int  # examples with several answers, which were averaged first
    alone: int = 0  # examples without a cluster among others that have one

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
        parts += [f"{self.alone} without a cluster, each one of its own"] * bool(self.alone)
        return ", ".join(parts)


def metrics_of(*sides: Iterable[Example]) -> list[str]:
    """List the metrics that every side has examples of, in order of appearance."""
    names = [dict.fromkeys(each.metric for each in side) for side in sides]
    return [name for name in names[0] if all(name in other for other in names[1:])]


def join(left: Iterable[Example], right: Iterable[Example], metric: str) -> Join:
    """Join the examples of one metric by id; several answers to one are averaged first.

    Sorted by id: neither the order of the files nor which is left changes a resampled figure.
    """
    before, after = _gathered(left, metric), _gathered(right, metric)
    ids = tuple(sorted(before.keys() & after.keys()))
    groups = [before[each].cluster or after[each].cluster for each in ids]
    alone = sum(group is None for group in groups)
    return Join(
        ids,
        tuple(before[each].mean for each in ids),
        tuple(after[each].mean for each in ids),
        _clusters(ids, groups) if alone < len(ids) else None,
        len(before) - len(ids),
        len(after) - len(ids),
        sum(max(len(side[each].scores) for side in (before, after)) > 1 for each in ids),
        alone if alone < len(ids) else 0,
    )


def _clusters(ids: Iterable[str], groups: Iterable[str | None]) -> tuple[str, ...]:
    """Give each example without a cluster one of its own: to leave all out would hide the rest."""
    pairs = zip(ids, groups, strict=True)
    return tuple(f"id {name}" if group is None else f"cluster {group}" for name, group in pairs)


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
