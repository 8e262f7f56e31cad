"""Who is far ahead waits for who is behind: keeps threads that share a stream near each other.

Threads read one tensor at several places at once. What was unpacked or gathered for one of them
serves the others only for a while; if they ran apart, each would begin the stream anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

_PATIENCE_SECONDS = 0.25  # who has not read for so long is not waited for
_NAP_SECONDS = 0.002


class Turns:
    """The places where threads are reading, counted in pieces of a stream."""

    def __init__(self, window: Callable[[], int]) -> None:
        """`window` says how many pieces a thread may be ahead of another, as things are now."""
        self.lock = threading.Condition()
        self._window = window
        self._readers: dict[int, tuple[int, float]] = {}

    def at(self, place: int) -> None:
        """Note where this thread is."""
        self._readers[threading.get_ident()] = place, monotonic()

    def wait(self, place: int) -> None:
        """Wait, with the lock held, until nobody who is reading is too far behind."""
        while self._someone_is_behind(place):
            self.lock.wait(_NAP_SECONDS)
            self.at(place)

    def _someone_is_behind(self, place: int) -> bool:
        me, lately = threading.get_ident(), monotonic() - _PATIENCE_SECONDS
        window = self._window()
        return any(
            there + window < place and then > lately and reader != me
            for reader, (there, then) in list(self._readers.items())
        )
