"""Read-ahead: the bytes that a series of tasks will read are fetched long before.

A request takes as long as the way to the server and back, whatever it asks for. So many are under
way at a time, each for some megabytes, and tasks find their bytes here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from difflens.core.protocols import Extent

from .segments import Segment, Window

BUDGET = 144 * 1024**2  # bytes on their way, or here and not yet read
_MOST_AHEAD = 256  # items; they may read nothing from far away

Item = TypeVar("Item")


def read_ahead(
    items: Iterable[Item], extents: Callable[[Item], Iterable[Extent]], budget: int = BUDGET
) -> ReadAhead[Item]:
    """Yield the items in order; the bytes they will read are fetched before, within a budget."""
    return ReadAhead(items, extents, budget)


class ReadAhead(Generic[Item]):
    """The items of a series, whose bytes are announced before they are yielded.

    Items may be yielded long before they read: what is fetched depends on what was read, and not
    on how many items were taken.
    """

    def __init__(
        self, items: Iterable[Item], extents: Callable[[Item], Iterable[Extent]], budget: int
    ) -> None:
        """Announce nothing yet."""
        self._items = iter(items)
        self._extents = extents
        self._horizon = 2 * budget  # bytes that are announced, so that neighbours can be joined
        self._window = Window(budget)
        self._ahead: deque[Item] = deque()
        self._live: list[Segment] = []

    def __iter__(self) -> Iterator[Item]:
        """Return itself: a series is gone through once."""
        return self

    def __next__(self) -> Item:
        """Announce what later items will read, and return the next one."""
        while not self._ahead or self._sees_further():
            try:
                item = next(self._items)
            except StopIteration:
                for segment in self._live:  # nothing follows that could be joined to them
                    segment.close()
                break
            self._live += self._plan(item)
            self._ahead.append(item)
        if not self._ahead:
            raise StopIteration
        return self._ahead.popleft()

    def close(self) -> None:
        """Let go of what nobody has read: whoever waits for it is woken."""
        for segment in self._live:
            segment.drop()

    def _plan(self, item: Item) -> list[Segment]:
        planned: list[Segment] = []
        for extent in self._extents(item):
            plan = getattr(extent.file, "plan", None)  # a file on this machine needs no help
            if plan is not None:
                planned += plan(self._window, extent.start, extent.stop)
        return planned

    def _sees_further(self) -> bool:
        """Forget what was read; is what was not within the horizon?"""
        self._live = [each for each in dict.fromkeys(self._live) if each.due > 0]
        announced = sum(each.end - each.begin for each in self._live)
        return announced < self._horizon and len(self._ahead) < _MOST_AHEAD
