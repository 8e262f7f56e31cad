"""Keeps measures that run side by side from taking more memory together than is meant for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

LIMIT = 600 << 20  # bytes that whole-tensor measures may hold together


class Room:
    """A number of bytes to share; who needs more than there is waits, or goes alone."""

    def __init__(self, limit: int = LIMIT) -> None:
        """Begin empty."""
        self.limit = limit
        self._taken = 0
        self._changed = Condition()

    @contextmanager
    def __call__(self, size_bytes: int) -> Iterator[None]:
        """Hold so many bytes meanwhile; what is larger than the limit runs while nothing else does.

        >>> room = Room(10)
        >>> with room(7):
        ...     room.taken
        7
        """
        with self._changed:
            self._changed.wait_for(
                lambda: not self._taken or self._taken + size_bytes <= self.limit
            )
            self._taken += size_bytes
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size_bytes
                self._changed.notify_all()

    @property
    def taken(self) -> int:
        """How many bytes are held now."""
        return self._taken


room = Room()
