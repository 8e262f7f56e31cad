"""The end of every transfer, when the program is leaving."""

from __future__ import annotations

import threading

from .connections import CONNECTIONS


class Interrupted(Exception):
    """The program is leaving; nobody waits for these bytes."""


class Interruption:
    """A switch that ends the transfers of this process which are under way.

    What begins later is not affected: in a notebook, the next diff works.
    """

    def __init__(self) -> None:
        """Begin with no transfer ended."""
        self._condition = threading.Condition()
        self.count = 0

    def end_transfers(self) -> None:
        """End all that is under way: waiting threads raise `Interrupted` at once."""
        with self._condition:
            self.count += 1
            self._condition.notify_all()
        CONNECTIONS.interrupt()

    def check(self, since: int) -> None:
        """Raise if transfers were ended since then."""
        if self.count != since:
            raise Interrupted

    def wait(self, seconds: float, since: int) -> None:
        """Wait, unless transfers are ended."""
        with self._condition:
            self._condition.wait_for(lambda: self.count != since, seconds)
        self.check(since)


INTERRUPTION = Interruption()
