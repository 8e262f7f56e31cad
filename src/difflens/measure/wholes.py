"""Measures of whole tensors as work that can be sent away: a pair, and all kinds wanted of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple, Self

from difflens.core.protocols import Ahead, Extent, WholeMeasure

from .chunks import Side
from .held import hold_sides, size_of
from .resources import LIMIT, one_thread_each
from .values import LARGEST, Values


class WholePair(NamedTuple):
    """One pair, and the kinds of measures that are taken of it."""

    kinds: tuple[type[WholeMeasure], ...]
    left: Side | None
    right: Side | None
    is_remote: bool = False

    @property
    def size_bytes(self) -> int:
        """How many bytes both sides hold."""
        return size_of(self.left, self.right)

    @property
    def memory_bytes(self) -> int:
        """How much memory it takes: what measures share, the bytes, and an array of each side."""
        return LIMIT + 2 * min(self.size_bytes, LARGEST)

    def extents(self) -> Iterator[Extent]:
        """Yield nothing: it is fetched ahead piece by piece, when its turn has come."""
        yield from ()

    def with_ahead(self, ahead: Ahead) -> Self:
        """Return the same pair: it fetches ahead in any case."""
        del ahead
        return self


def measure_whole(pair: WholePair) -> list[Any]:
    """Take the measures of one pair, one after another; None where there is nothing to measure."""
    here = nullcontext((pair.left, pair.right))
    with one_thread_each(), hold_sides(pair.left, pair.right) if pair.is_remote else here as sides:
        left, right = (side and Values(side) for side in sides)
        return [kind.of(left, right) for kind in pair.kinds]
