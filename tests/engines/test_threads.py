"""Threads: how many tasks run at a time."""

import threading
import time
from collections.abc import Iterator
from typing import NamedTuple, Self

from difflens.core.protocols import Ahead, Extent
from difflens.engines.threads import Threads
from difflens.storage.read_ahead import BUDGET


class Task(NamedTuple):
    """A task that reads nothing."""

    number: int
    memory_bytes: int = 0

    def extents(self) -> Iterator[Extent]:
        return iter(())

    def with_ahead(self, ahead: Ahead) -> Self:  # noqa: ARG002
        return self


def most_at_once(*, remote: bool) -> int:
    """Run many tasks on many threads; return how many of them ran at the same time."""
    lock, running, most = threading.Lock(), 0, 0

    def work(task: Task) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return task.number

    engine = Threads(32)
    assert list(engine.run(work, map(Task, range(200)), remote=remote)) == list(range(200))
    engine.close()
    return most


def test_tasks_that_read_from_far_away_leave_half_of_the_memory_to_what_is_read_ahead():
    assert 1 < most_at_once(remote=True) <= BUDGET // (2 * Threads.task_bytes)


def test_local_tasks_run_on_every_thread():
    assert most_at_once(remote=False) > BUDGET // (2 * Threads.task_bytes)
