"""What was unpacked or gathered last, of all streams together: one bound for all of it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from itertools import count
from time import monotonic

MOST_BYTES = 96 << 20
_LATELY_SECONDS = 0.25


class Blocks:
    """Pieces of many streams, by stream and place; those not asked for longest give way."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._size = 0
        self._serials = count()
        self._asked: dict[int, float] = {}  # when each stream was asked for last

    def serial(self) -> int:
        """Give a number to a stream that is new here."""
        return next(self._serials)

    def get(self, stream: int, index: int) -> bytes | None:
        """Give a block that is still there."""
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
