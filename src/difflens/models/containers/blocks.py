"""What threads that read one stream share: the blocks unpacked last, and turns to read on."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from time import monotonic

MOST_BYTES = 96 << 20
_LATELY_SECONDS = 0.25


class Blocks:
    """Pieces of many streams, by stream and place; the least recently used are dropped."""

    def __init__(self) -> None:
        """Start without pieces."""
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._size = 0
        self._serials = count()
        self._asked: dict[int, float] = {}  # when each stream was asked for last

    def serial(self) -> int:
        """Return a number for a new stream."""
        return next(self._serials)

    def get(self, stream: int, index: int) -> bytes | None:
        """Return a block that is still there."""
        with self._lock:
            self._asked[stream] = monotonic()
            block = self._blocks.get((stream, index))
            if block is not None:
                self._blocks.move_to_end((stream, index))
            return block

    def share(self) -> int:
        """Say how many bytes each of the streams that are being read may count on."""
        with self._lock:
            lately = monotonic() - _LATELY_SECONDS
            self._asked = {each: then for each, then in self._asked.items() if then > lately}
            return MOST_BYTES // max(1, len(self._asked))

    def put(self, stream: int, index: int, block: bytes) -> None:
        """Keep a block, and let others go where they become too many."""
        with self._lock:
            old = self._blocks.pop((stream, index), b"")
            self._blocks[stream, index] = block
            self._size += len(block) - len(old)
            while self._size > MOST_BYTES:
                self._size -= len(self._blocks.popitem(last=False)[1])

    def drop(self, stream: int) -> None:
        """Forget a stream's blocks."""
        with self._lock:
            for key in [key for key in self._blocks if key[0] == stream]:
                self._size -= len(self._blocks.pop(key))


BLOCKS = Blocks()


# Threads read one tensor at several places at once. What was unpacked or gathered for one of them
# serves the others only for a while; if they ran apart, each would begin the stream anew.

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
