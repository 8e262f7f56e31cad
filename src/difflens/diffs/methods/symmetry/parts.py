"""The groups of a diff in which something changed, each aligned on its own."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.records import Delta

from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.energy import KEPT, is_float
from ..networks import network
from .groups import components, groups
from .matching import Aligned, align_groups, align_wide
from .slots import Group

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = dict[str, tuple[NDArray[Any], NDArray[Any]]]

SEED = 0


class Limits(NamedTuple):
    """How much may be tried."""

    max_units: int
    max_elements: int
    restarts: int


class Part(NamedTuple):
    """Groups that share tensors, and what came of them."""

    groups: list[Group]
    aligned: Aligned | None
    why: str = ""

    @property
    def names(self) -> set[str]:
        """The tensors they touch, by their names on the left."""
        return {name for group in self.groups for name in group.names}


def changed_components(diff: Diff, evidence: Evidence) -> list[list[Group]]:
    """List the components in which some tensor is not bit-identical."""
    usable = _usable(diff)
    infos = [delta.pair.left for delta in usable.values() if delta.pair.left]
    found = components(groups(infos, network(diff, evidence, "left")))
    return [
        part
        for part in found
        if any(usable[name].kind != "identical" for group in part for name in group.names)
    ]


def parts(diff: Diff, chosen: list[list[Group]], limits: Limits) -> Iterator[Part]:
    """Align each component; memory holds one at a time."""
    usable = _usable(diff)
    for found in chosen:
        names = sorted({name for group in found for name in group.names})
        yield _part(diff, [usable[name] for name in names], found, limits)


def _usable(diff: Diff) -> dict[str, Delta]:
    """Return the float parameters of one shape on both sides, by their names on the left."""
    return {
        delta.pair.left.name: delta
        for delta in diff.deltas
        if delta.kind in KEPT
        and is_float(delta)
        and delta.pair.left
        and delta.pair.right
        and delta.pair.left.shape == delta.pair.right.shape
    }


def _part(diff: Diff, deltas: list[Delta], found: list[Group], limits: Limits) -> Part:
    count = sum(delta.pair.left.count for delta in deltas if delta.pair.left)
    if count > limits.max_elements:
        return Part(found, None, f"{count} numbers together, more than `max_elements`")
    wide = max(group.units for group in found) > limits.max_units
    if wide and len(found) > 1:
        return Part(found, None, "more units than `max_units`, in layers that depend on another")
    arrays, why = _arrays(diff, deltas)
    if why:
        return Part(found, None, why)
    if wide:
        aligned = align_wide(found[0], arrays)
        why = "" if aligned else "more units than `max_units`, and some without a clear partner"
        return Part(found, aligned, why)
    return Part(found, align_groups(found, arrays, limits.restarts, SEED))


def _arrays(diff: Diff, deltas: list[Delta]) -> tuple[Arrays, str]:
    """Load both sides of each tensor; the second says why that is no use."""
    import numpy as np

    arrays: Arrays = {}
    for delta in deltas:
        left, right = delta.pair.left, delta.pair.right
        if left and right:
            before = diff.values("left", left.name, delta.pair)
            sides = before.array(), diff.values("right", right.name, delta.pair).array()
            if not all(np.isfinite(side).all() for side in sides):
                return {}, f"{delta.name} holds NaN or infinities"
            arrays[left.name] = sides
    return arrays, ""


_SEARCHED = frozenset({"chain", "recurrent"})  # there what a unit reads may be reordered too


def gain_beyond_chance(diff: Diff, evidence: Evidence, limits: Limits) -> float | None:
    """Return the largest correlation that reordering gains, as Cohen's kappa corrects for chance.

    Chance is what the same search gains with the right model's values in random places. None where
    no chain of layers has one shape on both sides, or it is too large.
    """
    usable, gains = _usable(diff), []
    for found in changed_components(diff, evidence):
        deltas = [usable[name] for name in sorted({name for each in found for name in each.names})]
        size = sum(delta.pair.left.count for delta in deltas if delta.pair.left)
        units = max(group.units for group in found)
        if not _SEARCHED & {group.kind for group in found}:
            continue
        if size > limits.max_elements or units > limits.max_units:
            continue
        arrays, why = _arrays(diff, deltas)
        if not why:
            own, chance = (
                _gain(align_groups(found, each, limits.restarts, SEED))
                for each in (arrays, _scattered(arrays))
            )
            gains.append((own - chance) / (1 - chance) if chance < 1 else 0.0)
    return max(gains, default=None)


def _gain(aligned: Aligned) -> float:
    norms = sqrt(aligned.left_norm * aligned.right_norm)
    return (aligned.before - aligned.after) / 2 / norms if norms > 0 else 0.0


def _scattered(arrays: Arrays) -> Arrays:
    """Put the values of each right tensor in random places."""
    import numpy as np

    random = np.random.default_rng(SEED)
    return {
        name: (left, random.permutation(right.ravel()).reshape(right.shape))
        for name, (left, right) in arrays.items()
    }
