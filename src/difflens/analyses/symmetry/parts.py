"""The groups of a diff in which something changed, each aligned on its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ...diffs import Diff
from ...evidences import Evidence
from ...records import Delta
from ..anatomy.network import network
from ..changes.energy import KEPT, is_float
from .descent import Aligned, align_groups, align_wide
from .groups import components, groups
from .slots import Group

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    """Give the float parameters of one shape on both sides, by their names on the left."""
    return {
        delta.pair.left.name: delta
        for delta in diff.deltas
        if delta.kind in KEPT and is_float(delta) and delta.pair.left and delta.pair.right
        and delta.pair.left.shape == delta.pair.right.shape
    }  # fmt: skip


def _part(diff: Diff, deltas: list[Delta], found: list[Group], limits: Limits) -> Part:
    import numpy as np

    count = sum(delta.pair.left.count for delta in deltas if delta.pair.left)
    if count > limits.max_elements:
        return Part(found, None, f"{count} numbers together, more than `max_elements`")
    wide = max(group.units for group in found) > limits.max_units
    if wide and len(found) > 1:
        return Part(found, None, "more units than `max_units`, in layers that depend on another")
    arrays: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
    for delta in deltas:
        left, right = delta.pair.left, delta.pair.right
        if left and right:
            sides = diff.values("left", left.name).array(), diff.values("right", right.name).array()
            if not all(np.isfinite(side).all() for side in sides):
                return Part(found, None, f"{delta.name} holds NaN or infinities")
            arrays[left.name] = sides
    if wide:
        aligned = align_wide(found[0], arrays)
        why = "" if aligned else "more units than `max_units`, and some without a clear partner"
        return Part(found, aligned, why)
    return Part(found, align_groups(found, arrays, limits.restarts, SEED))
