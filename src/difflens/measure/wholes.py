"""Measures of whole tensors as work that can be sent away: a pair, and all kinds wanted of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from difflens.core.encodings import extents_of
from difflens.core.protocols import Extent, WholeMeasure

from .chunks import Side
from .resources import one_thread_each
from .values import Values


class WholePair(NamedTuple):
    """One pair, and the kinds of measures that are taken of it."""

    kinds: tuple[type[WholeMeasure], ...]
    left: Side | None
    right: Side | None

    @property
    def size_bytes(self) -> int:
        """How many bytes both sides hold."""
        return sum(side.info.size_bytes for side in (self.left, self.right) if side)

    def extents(self) -> Iterator[Extent]:
        """Yield the ranges of remote files that both sides lie in."""
        for side in (self.left, self.right):
            if side:
                yield from extents_of(side.encoding, 0, side.info.size_bytes)


def measure_whole(pair: WholePair) -> list[Any]:
    """Take the measures of one pair, one after another; None where there is nothing to measure."""
    left, right = (side and Values(side) for side in (pair.left, pair.right))
    with one_thread_each():
        return [kind.of(left, right) for kind in pair.kinds]
