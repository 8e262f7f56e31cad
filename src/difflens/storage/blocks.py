"""The beginnings of remote files, and small parts of them: kept a while, for the next reader."""

from __future__ import annotations

import threading
from collections import OrderedDict

MOST_BYTES = 32 * 1024**2  # of all files together


class Blocks:
    """Parts of files, by a number of each file; those that were used longest ago go first."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._starts: dict[int, list[int]] = {}  # of each file
        self._bytes = 0

    def add(self, file: int, start: int, block: bytes) -> None:
        """Keep a part of a file."""
        with self._lock:
            self._remove(file, start)
            self._blocks[file, start] = block
            self._starts.setdefault(file, []).append(start)
            self._bytes += len(block)
            while self._bytes > MOST_BYTES:
                self._remove(*next(iter(self._blocks)))

    def read(self, file: int, start: int, buffer: memoryview) -> int:
        """Copy what is here of the bytes from `start` on; return how many that were."""
        with self._lock:
            for first in self._starts.get(file, ()):
                block = self._blocks[file, first]
                count = min(first + len(block) - start, len(buffer))
                if first <= start and count > 0:
                    offset = start - first
                    buffer[:count] = memoryview(block)[offset : offset + count]
                    self._blocks.move_to_end((file, first))
                    return count
        return 0

    def end(self, file: int, start: int) -> int:
        """Return up to where the bytes from `start` on are here."""
        with self._lock:
            for first in self._starts.get(file, ()):
                end = first + len(self._blocks[file, first])
                if first <= start < end:
                    return end
        return start

    def holds(self, file: int, start: int, stop: int) -> bool:
        """Is all of a range in one part that is here?"""
        with self._lock:
            return any(
                first <= start and stop <= first + len(self._blocks[file, first])
                for first in self._starts.get(file, ())
            )

    def drop(self, file: int) -> None:
        """Let go of all parts of a file."""
        with self._lock:
            for start in list(self._starts.get(file, ())):
                self._remove(file, start)

    def _remove(self, file: int, start: int) -> None:
        block = self._blocks.pop((file, start), None)
        if block is None:
            return
        self._bytes -= len(block)
        self._starts[file].remove(start)
        if not self._starts[file]:
            del self._starts[file]


BLOCKS = Blocks()
