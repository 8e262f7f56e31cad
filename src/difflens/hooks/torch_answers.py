"""What a GPU has summed up, on its way to the processor: nothing waits, and little is made anew.

An answer is copied to a place in pinned memory, with an event behind it. Places and events serve
again once the recorder has read them: to make them is a call of CUDA each, at every reading of a
loop that may be short of processor time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .torch_tables import Group

# Readings whose time on the device is taken: the first ones, and then one in so many. The events
# of a time are two calls more.
_TIMED = 8


class Begun:
    """A reading that a device is at, or is done with."""

    __slots__ = ("begun", "columns", "ended", "group", "host", "what")

    def __init__(self, what: str, group: Group, begun: Any, ended: Any) -> None:
        """Take the events before and behind it; the first is None where no time is taken."""
        self.what, self.group, self.begun, self.ended = what, group, begun, ended
        self.host: Any = None  # where the answer goes
        self.columns: Any = None  # kept, because it may be asked for twice


class Answers:
    """Fetches answers; begun on the loop's thread, taken on the recorder's."""

    def __init__(self, torch: Any) -> None:
        """Begin with nothing to use again."""
        self._cuda = torch.cuda
        self._events: list[Any] = []
        self._counts = {"gradients": 0, "weights": 0}
        self._seconds = {"gradients": 0.0, "weights": 0.0}

    def ask(self, what: str, group: Group, sum_up: Callable[[str, Group], None]) -> Begun:
        """Have a group summed up, and begin to fetch what comes out."""
        reading = Begun(what, group, *self._around(what))
        if reading.begun is not None:
            reading.begun.record()
        sum_up(what, group)
        reading.host = group.spare.pop() if group.spare else group.place()
        reading.host.copy_(group.out, non_blocking=True)
        reading.ended.record()
        return reading

    def _around(self, what: str) -> tuple[Any, Any]:
        """Give the events around a reading: the first one only where its time is taken."""
        count = self._counts[what]
        self._counts[what] = count + 1
        event = self._cuda.Event
        if count < _TIMED or count % _TIMED == 0:
            return event(enable_timing=True), event(enable_timing=True, blocking=True)
        return None, self._events.pop() if self._events else event(blocking=True)

    def take(self, reading: Begun) -> Any:
        """Wait for an answer, and give its columns; where it came to serves again."""
        if reading.columns is not None:
            return reading.columns
        reading.ended.synchronize()
        if reading.begun is None:
            self._events.append(reading.ended)
        else:
            self._seconds[reading.what] = reading.begun.elapsed_time(reading.ended) / 1e3
        shares, columns = reading.group.shares, reading.host.numpy()
        # Nothing but squares and moves is summed up of weights; of a sample, these stand for all.
        reading.columns = columns.copy() if shares is None else columns * shares[:, None]
        reading.group.spare.append(reading.host)
        reading.host = None
        return reading.columns

    def seconds(self) -> float:
        """Give the time that the device spent on the last reading whose time was taken."""
        return self._seconds["gradients"] + self._seconds["weights"]
