"""Where the units of a symmetry group lie in the tensors that make or read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Slot(NamedTuple):
    """Units along one axis of a tensor: [blocks, units, inner] seen along that axis.

    Four gates of an LSTM are four blocks of its units; a head is one unit of `inner` rows.
    `part` says what the tensor does for its units: those that make them come first in a group.
    """

    name: str
    part: str
    units: int
    axis: int = 0
    blocks: int = 1
    inner: int = 1

    @property
    def length(self) -> int:
        """The length of the axis."""
        return self.units * self.blocks * self.inner


class Group(NamedTuple):
    """Units that may change places together, in every slot at once."""

    name: str
    kind: str  # mlp, heads, recurrent, chain
    units: int
    slots: tuple[Slot, ...]

    def slot(self, part: str) -> Slot | None:
        """Give the first slot of a part."""
        return next((slot for slot in self.slots if slot.part == part), None)

    @property
    def names(self) -> set[str]:
        """The tensors it touches."""
        return {slot.name for slot in self.slots}


def by_unit(array: NDArray[Any], slot: Slot) -> NDArray[Any]:
    """See a tensor as a matrix with one row a unit."""
    import numpy as np

    moved = np.moveaxis(array, slot.axis, 0)
    rest = array.size // slot.length if slot.length else 0
    shaped = moved.reshape(slot.blocks, slot.units, slot.inner, rest)
    return shaped.transpose(1, 0, 2, 3).reshape(slot.units, slot.blocks * slot.inner * rest)


def reordered(array: NDArray[Any], slot: Slot, order: NDArray[Any]) -> NDArray[Any]:
    """Put unit order[i] at place i."""
    import numpy as np

    places = np.arange(slot.length).reshape(slot.blocks, slot.units, slot.inner)
    return array.take(places[:, order].ravel(), axis=slot.axis)
