"""The tensors that the base, the left and the right model all hold, and their numbers in step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ...diffs import Diff
from ...records import Pair
from ..anatomy.roles import is_parameter

if TYPE_CHECKING:
    from numpy.typing import NDArray

PIECE = 1 << 18  # elements of each model held at a time
COMPARED = frozenset({"identical", "within_epsilon", "changed", "recast"})


class Three(NamedTuple):
    """One tensor of three models, by its name in each."""

    name: str  # as the diff of left and right calls it
    base: str
    left: str
    right: str
    elements: int


class Ancestry(NamedTuple):
    """The base against the left model, and against the right one."""

    to_left: Diff
    to_right: Diff

    def threes(self) -> list[Three]:
        """List the float parameters that all three hold in one shape and layout."""
        after = {}
        for delta in self.to_right.deltas:
            if delta.kind in COMPARED and _is_plain(delta.pair) and delta.pair.left:
                after[delta.pair.left.name] = delta.pair
        found = []
        for delta in self.to_left.deltas:
            base, left = delta.pair.left, delta.pair.right
            other = after.get(base.name) if base else None
            right = other.right if other else None
            if delta.kind not in COMPARED or not _is_plain(delta.pair):
                continue
            if base and left and right and base.shape == left.shape == right.shape:
                names = Three(right.name, base.name, left.name, right.name, base.count)
                floats = is_parameter(right.name, base.dtype, left.dtype, right.dtype)
                found.extend([names] if floats else [])
        return found

    def pieces(self, three: Three) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
        """Yield base, left - base and right - base in float64, some elements at a time."""
        import numpy as np

        sources = (
            self.to_left.values("left", three.base),
            self.to_left.values("right", three.left),
            self.to_right.values("right", three.right),
        )
        for base, left, right in zip(*(source.pieces(PIECE) for source in sources), strict=True):
            wide = base.astype(np.float64)
            yield wide, left - wide, right - wide


def _is_plain(pair: Pair) -> bool:
    return pair.transform is None and pair.left_recipe is None and pair.right_recipe is None
