"""Buffers that a thread reads into again and again."""

from __future__ import annotations

import threading
from collections.abc import Hashable


class ThreadBuffers(threading.local):
    """Buffers by name, each thread its own; they live as long as this object or the thread."""

    def __init__(self) -> None:
        """Begin with none."""
        self._all: dict[Hashable, memoryview] = {}

    def get(self, which: Hashable, size: int, least: int = 0) -> memoryview:
        """Return `size` bytes, good until this thread asks for `which` again.

        A buffer that is too small is made anew, of `least` bytes or more.
        """
        buffer = self._all.get(which)
        if buffer is None or len(buffer) < size:
            buffer = self._all[which] = memoryview(bytearray(max(size, least)))
        return buffer[:size]
