"""Read-ahead: the bytes that a series of tasks will read are fetched long before.

A request takes as long as the way to the server and back, whatever it asks for. So many are under
way at a time, each for some megabytes, and tasks find their bytes here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from difflens.core.protocols import Extent

from .segments import Segment, Segments, free_buffers

BUDGET = 144 * 1024**2  # bytes fetched or on their way, and not yet read

Item = TypeVar("Item")


class _Planned(NamedTuple):
    segments: Segments
    segment: Segment


def read_ahead(
    items: Iterable[Item], extents: Callable[[Item], Iterable[Extent]], budget: int = BUDGET
) -> Iterator[Item]:
    """Yield the items in order; the bytes they will read are fetched before, within a budget."""
    window: deque[tuple[Item, list[_Planned]]] = deque()
    live: list[_Planned] = []
    waiting = iter(items)
    try:
        more = True
        while more or window:
            while more and (not window or _outstanding(live) < budget):
                try:
                    item = next(waiting)
                except StopIteration:
                    more = False
                    break
                planned = _plan(extents(item))
                live += planned
                window.append((item, planned))
            if window:
                item, planned = window.popleft()
                for each in planned:
                    each.segments.start(each.segment)
                yield item
    finally:
        for each in live:
            each.segments.drop([each.segment])
        free_buffers()


def _plan(extents: Iterable[Extent]) -> list[_Planned]:
    planned = []
    for extent in extents:
        segments = getattr(extent.file, "segments", None)  # local files have none
        if isinstance(segments, Segments):
            planned += [
                _Planned(segments, each) for each in segments.plan(extent.start, extent.stop)
            ]
    return planned


def _outstanding(live: list[_Planned]) -> int:
    """Forget what was read; return the bytes of what was not."""
    live[:] = [each for each in live if each.segment.is_live]
    return sum({id(each.segment): each.segment.stop - each.segment.start for each in live}.values())
