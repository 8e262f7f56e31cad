"""Threads of this process: they suffice, since the kernel and `pread` both release the GIL."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from operator import methodcaller
from typing import TypeVar

from difflens.core.protocols import TaskT

from . import engine

Item = TypeVar("Item")
Result = TypeVar("Result")


@engine()
class Threads:
    """Threads of this process, which work ahead of the reader by a few items."""

    task_bytes = 16 << 20  # some ten milliseconds
    is_here = True

    def __init__(self, count: int | None = None) -> None:
        """Set the number of threads; by default as many as this process may run at once."""
        self.count = count or _available()
        self._pool: ThreadPoolExecutor | None = None

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Do the work on every item and yield the results in the items' order."""
        if self.count == 1:
            yield from map(work, items)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="difflens")
        ahead: deque[Future[Result]] = deque()
        for item in items:
            ahead.append(self._pool.submit(work, item))
            if len(ahead) > 4 * self.count:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()

    def run(
        self, work: Callable[[TaskT], Result], tasks: Iterable[TaskT], *, remote: bool
    ) -> Iterator[Result]:
        """Do the same with tasks; those that read remote files have their bytes fetched ahead."""
        if not remote:
            yield from self.map(work, tasks)
            return
        from difflens.storage import places  # local diffs need none of it
        from difflens.storage.read_ahead import BUDGET, read_ahead

        # Tasks under way hold bytes, whatever was read ahead: so few that half the budget is free.
        few = Threads(min(self.count, BUDGET // (2 * self.task_bytes)))
        ahead = read_ahead(tasks, methodcaller("extents"))
        try:
            yield from few.map(work, ahead)
        except KeyboardInterrupt:
            places.end_transfers()
            raise
        finally:
            ahead.close()  # who still waits for bytes is woken
            few.close()

    def close(self) -> None:
        """Drop what has not begun, and wait for what has: a few milliseconds."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _available() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
