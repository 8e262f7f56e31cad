"""The layers of two models, and which of them are each other's before and after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from ...diffs import Diff
from ..symmetry.slots import Group, Slot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .layers import Load

Item = TypeVar("Item")


class Sides(NamedTuple):
    """The groups of units of both models."""

    left: list[Group]
    right: list[Group]


def paired(diff: Diff, sides: Sides) -> Iterator[tuple[Group, Group]]:
    """Yield the groups whose first tensors are a pair and that are made up alike."""
    partners = {pair.left.name: pair.right.name for pair in diff.pairs if pair.left and pair.right}
    after = {(group.kind, group.slots[0].name): group for group in sides.right}
    for group in sides.left:
        other = after.get((group.kind, partners.get(group.slots[0].name, "")))
        if other and [slot.part for slot in group.slots] == [slot.part for slot in other.slots]:
            yield group, other


def loads(diff: Diff) -> tuple[Load, Load]:
    """Give what reads a slot's tensor, for each side."""

    def of(side: Literal["left", "right"]) -> Load:
        def load(slot: Slot) -> NDArray[Any]:
            whole: NDArray[Any] = diff.values(side, slot.name).array()
            return whole

        return load

    return of("left"), of("right")


def spread(items: list[Item], most: int) -> list[Item]:
    """Take so many at most, evenly over the whole."""
    if len(items) <= most:
        return items
    return [items[index * len(items) // most] for index in range(most)]
