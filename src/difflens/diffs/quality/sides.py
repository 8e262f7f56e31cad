"""Results of both sides on the same examples, joined by their ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from difflens.stats.clusters import linked
from difflens.stats.comparison import Comparison, quantile
from difflens.stats.means import welch
from difflens.stats.paired import NONE_DIFFERS
from difflens.stats.proportions import (
    PAIRED,
    McNemar,
    agreeing,
    answers_of,
    apart_limits,
    mcnemar,
    newcombe,
    newcombe_paired,
    paired_limits,
)
from difflens.stats.skewed import paired_mean

from ..evidence.records import Example


class Own(NamedTuple):
    """All that one side was measured on, whether the other side has it or not."""

    values: tuple[float, ...]
    clusters: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None

    @property
    def mean(self) -> float:
        """The side's own value."""
        return sum(self.values) / len(self.values)


class Join(NamedTuple):
    """The examples both sides have, by id, how many only one has, and all that each has."""

    ids: tuple[str, ...]
    left: tuple[float, ...]
    right: tuple[float, ...]
    clusters: tuple[str, ...] | None
    only_left: int
    only_right: int
    repeats: int  # examples with several answers, which were averaged first
    alone: int = 0  # examples without a cluster among others that have one
    own: tuple[Own, Own] = (Own(()), Own(()))

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
    named = {name: each.cluster for name, each in (after | before).items()}
    named |= {name: before[name].cluster or after[name].cluster for name in ids}
    groups = [named[each] for each in ids]
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
        (_own(before, named), _own(after, named)),
    )


def _own(side: dict[str, _Answers], named: dict[str, str | None]) -> Own:
    ids = tuple(sorted(side))
    known = _clusters(ids, [named[each] for each in ids]) if any(named.values()) else None
    return Own(tuple(side[each].mean for each in ids), known, ids)


def _clusters(ids: Iterable[str], groups: Iterable[str | None]) -> tuple[str, ...]:
    """Put each example without a cluster into one of its own: none is left out silently."""
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


# Every gate compares by the one function here, so that the same data give the same answer.

SHARED = "welch, shared examples"
FEWEST = 1  # values a side below which nothing can be compared
# Of the smaller side. Below it pairs would judge by the lesser part of what was measured. From it
# on the same questions on both sides tell more: no difference between the two sets of questions
# can pass for one between the models.
_ENOUGH_SHARED = 0.5


class Sides(NamedTuple):
    """Both sides of one metric as they are compared: finite, and in one order where paired.

    A name among the clusters of both sides is one cluster. `own` is what the value of each side
    is told by; where pairs are compared, not all of it need be in them.
    """

    left: tuple[float, ...]
    right: tuple[float, ...]
    is_paired: bool
    left_clusters: tuple[str, ...] | None = None
    right_clusters: tuple[str, ...] | None = None
    note: str = ""
    own: tuple[Own, Own] | None = None

    @property
    def is_binary(self) -> bool:
        """Are all values right or wrong?"""
        return set(self.left) | set(self.right) <= {0.0, 1.0}

    @property
    def owned(self) -> tuple[Own, Own]:
        """All that each side was measured on."""
        compared = Own(self.left, self.left_clusters), Own(self.right, self.right_clusters)
        return self.own or compared

    @property
    def caution(self) -> str:
        """Say what a reader must know: ids were shared, and too few to pair by."""
        left, right = (set(own.ids or ()) for own in self.owned)
        return self.note if not self.is_paired and left & right else ""

    @property
    def flips(self) -> McNemar | None:
        """Count answers to the same questions that turned from right to wrong and back."""
        if not self.is_paired or not self.is_binary:
            return None
        return mcnemar(_flags(self.left), _flags(self.right))


def _flags(values: Iterable[float]) -> list[bool]:
    return [bool(each) for each in values]


def sides_of(
    left: Iterable[Example], right: Iterable[Example], metric: str, *, must_pair: bool = False
) -> Sides | None:
    """Pair by id where half of the smaller side is shared, else keep all; None if too few."""
    joined = join(left, right, metric)
    fewest = min(len(own.values) for own in joined.own)
    shared = len(joined.ids)
    if shared >= FEWEST and (must_pair or shared >= _ENOUGH_SHARED * fewest):
        return in_pairs(joined)
    return None if must_pair or fewest < FEWEST else _apart(joined)


def in_pairs(joined: Join) -> Sides:
    """Compare the shared examples; what one side has alone counts for its own value only."""
    note = joined.about
    if joined.only_left or joined.only_right:
        means = [sum(side) / len(side) for side in (joined.left, joined.right)]
        note += f"; compared on the shared ones: {means[0]:.4g} -> {means[1]:.4g}"
    return Sides(
        joined.left,
        joined.right,
        is_paired=True,
        left_clusters=joined.clusters,
        right_clusters=joined.clusters,
        note=note,
        own=joined.own,
    )


def _apart(joined: Join) -> Sides:
    """Compare all that both sides have; shared examples and clusters move both means."""
    left, right = joined.own
    counts = f"{len(left.values)} and {len(right.values)} examples"
    note = f"no ids in common: not paired, {counts}"
    if joined.ids:
        note = (
            f"only {len(joined.ids)} of {counts} are on both sides, fewer than half of the"
            " smaller side: not paired, all are compared"
        )
    return Sides(
        left.values,
        right.values,
        is_paired=False,
        left_clusters=left.clusters,
        right_clusters=right.clusters,
        note=note,
        own=joined.own,
    )


def compared(sides: Sides, level: float) -> Comparison:
    """Choose the test by the data: paired or not, right and wrong or measured, in clusters."""
    if sides.is_paired:
        if sides.is_binary and sides.left_clusters is None:
            before, after = _flags(sides.left), _flags(sides.right)
            answers = answers_of(before, after)
            made = newcombe_paired(before, after, level)
            return agreeing(made, lambda z: paired_limits(answers, z))
        return paired_mean(sides.left, sides.right, sides.left_clusters, level)
    if sides.left_clusters is not None and sides.right_clusters is not None:
        clusters = sides.left_clusters, sides.right_clusters
        return linked(sides.left, sides.right, *clusters, level)
    return _overlapping(sides, level) or _independent(sides, level)


def enlarged(sides: Sides, times: float, level: float) -> tuple[float, float] | None:
    """Return the interval that so many times the examples would have, with the same results."""
    made = compared(sides, level)
    z = quantile((1 + level) / 2, None)
    if made.method == PAIRED:
        answers = answers_of(_flags(sides.left), _flags(sides.right))
        return paired_limits([times * each for each in answers], z)
    if made.method.startswith("newcombe"):
        return apart_limits([times * each for each in _counts(sides)], z)
    if made.low is None or made.high is None:
        return None
    shrunk = times if made.method == NONE_DIFFERS else times**0.5
    below, above = made.difference - made.low, made.high - made.difference
    return made.difference - below / shrunk, made.difference + above / shrunk


def _overlapping(sides: Sides, level: float) -> Comparison | None:
    """Compare samples of which a few examples are on both sides; None if none is."""
    left, right = (own.ids or () for own in sides.owned)
    if not set(left) & set(right):
        return None
    made = linked(sides.left, sides.right, left, right, level)
    return made._replace(clusters=None, method=SHARED) if made.p is not None else None


def _independent(sides: Sides, level: float) -> Comparison:
    if not sides.is_binary:
        return welch(sides.left, sides.right, level)
    counts = _counts(sides)
    return agreeing(newcombe(*counts, level), lambda z: apart_limits(counts, z))


def _counts(sides: Sides) -> tuple[int, int, int, int]:
    return int(sum(sides.left)), len(sides.left), int(sum(sides.right)), len(sides.right)
