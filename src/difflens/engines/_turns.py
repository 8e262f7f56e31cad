"""Calls handed out to a cluster: a bounded number at a time, their results in order, and twins.

    handed out   [ 4 done | 5 late, and its twin | 6 done | 7 done | ... ]    next: 12

Results are yielded in the order of the calls. So one that is late holds up those behind it, which
are few and small. If none is done for `late` times as long as a call takes on average, while a
processor is idle, the oldest gets a twin on another one; whichever is done first counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any, Protocol


class Cluster(Protocol):
    """What runs calls."""

    def start(self, call: Any) -> Any:
        """Hand out a call."""

    def wait(self, calls: list[Any], timeout: float | None) -> list[Any]:
        """Wait until one of the calls is done; return those that are."""

    def result(self, call: Any) -> Any:
        """Return the result of a call that is done; raise what it raised."""

    def cancel(self, call: Any) -> None:
        """Take a call back."""


class Turns:
    """One series of calls."""

    def __init__(self, cluster: Cluster, slots: int, most: int, late: float) -> None:
        """Run on so many slots; `most` calls may be handed out and not yet yielded."""
        self._cluster, self._slots, self._most, self._late = cluster, slots, most, late
        self._begin = monotonic()
        self._done = 0
        self._calls: dict[int, Any] = {}  # what was handed out and is not done, by its place
        self._running: dict[Any, int] = {}  # the place of each that runs; twins share one
        self._results: dict[int, Any] = {}  # done, and waiting for their turn

    def results(self, calls: Iterable[Any]) -> Iterator[Any]:
        """Yield the results in the order of the calls; take back the rest if nobody wants them."""
        waiting, first, place = iter(calls), 0, 0
        try:
            while True:
                while place - first < self._most:
                    call = next(waiting, None)
                    if call is None:
                        break
                    self._start(place, call)
                    place += 1
                if first == place:
                    return
                while first not in self._results:
                    self._wait(is_full=place - first >= self._most or call is None)
                yield self._results.pop(first)
                first += 1
        finally:
            for running in self._running:
                self._cluster.cancel(running)

    def _start(self, place: int, call: Any) -> None:
        self._calls[place] = call
        self._running[self._cluster.start(call)] = place

    def _wait(self, *, is_full: bool) -> None:
        """Wait for a result; where none comes for long, and a slot is idle, start a twin."""
        alone = self._alone() if is_full and self._done else []
        each = (monotonic() - self._begin) * self._slots / max(1, self._done)
        done = self._cluster.wait(list(self._running), self._late * each if alone else None)
        if not done:
            self._start(alone[0], self._calls[alone[0]])
        for running in done:
            place = self._running.pop(running)
            if place not in self._calls:
                continue
            self._results[place] = self._cluster.result(running)
            del self._calls[place]
            self._done += 1
            self._drop_twin(place)

    def _alone(self) -> list[int]:
        """List what runs without a twin, the oldest first; none while no slot is idle."""
        if len(self._running) >= self._slots:
            return []
        counts = Counter(self._running.values())
        return [place for place in self._calls if counts[place] == 1]

    def _drop_twin(self, place: int) -> None:
        for running in [each for each, other in self._running.items() if other == place]:
            del self._running[running]
            self._cluster.cancel(running)
