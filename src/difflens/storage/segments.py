"""The parts of one file that were announced: on their way or here, until they have been read."""

from __future__ import annotations

import threading

from .fetchers import FETCHERS, PIECE, Fetch
from .transfer import Transfer

GAP = 16 * 1024  # fewer bytes between two ranges are fetched with them
_MOST_SPARE = 20
_spare: list[bytearray] = []  # buffers to use again: new memory costs a page fault for each 4 KiB


class Segment:
    """A range that is fetched by one request; `due` bytes of it are still to be read."""

    def __init__(self, start: int, stop: int) -> None:
        """Begin as a plan, which may grow until it is started."""
        self.start = start
        self.stop = stop
        self.due = stop - start
        self.readers = 0  # threads that copy from it now
        self.fetch: Fetch | None = None
        self._memory: bytearray | None = None

    @property
    def is_live(self) -> bool:
        """Does somebody still have to read it?"""
        return self.due > 0

    def begin(self, transfer: Transfer) -> Fetch:
        """Send the request, unless it was sent."""
        if self.fetch is None:
            self._memory = _take_buffer(self.stop - self.start)
            buffer = memoryview(self._memory)[: self.stop - self.start]
            self.fetch = Fetch(transfer, self.start, buffer)
            FETCHERS.submit(self.fetch)
        return self.fetch

    def let_go(self) -> None:
        """Give the memory to another segment: everything was read."""
        memory, self._memory, self.fetch = self._memory, None, None
        if memory is not None and len(memory) == PIECE and len(_spare) < _MOST_SPARE:
            _spare.append(memory)


class Segments:
    """The announced parts of one file, which do not overlap."""

    def __init__(self, transfer: Transfer) -> None:
        """Begin with none."""
        self._transfer = transfer
        self._lock = threading.Lock()
        self._live: list[Segment] = []
        self._growing: Segment | None = None

    def plan(self, start: int, stop: int) -> list[Segment]:
        """Announce that a range will be read once more; return the segments it lies in.

        The last of them may still grow: `start` starts it.
        """
        with self._lock:
            segments = []
            while start < stop:
                segment = self._covering(start)
                if segment is None:
                    segment = self._extend(start, min(stop, self._next_start(start, stop)))
                    position = segment.stop
                else:
                    position = min(stop, segment.stop)
                    segment.due += position - start
                segments.append(segment)
                start = position
            return segments

    def start(self, segment: Segment) -> None:
        """Send its request, unless it was sent."""
        with self._lock:
            segment.begin(self._transfer)

    def read(self, start: int, buffer: memoryview) -> int:
        """Copy what was announced of the bytes from `start` on; return how many that were."""
        with self._lock:
            segment = self._covering(start)
            if segment is None:
                return 0
            fetch = segment.begin(self._transfer)
            segment.readers += 1
        count = 0
        try:
            fetch.wait()
            offset = start - segment.start
            count = min(segment.stop - start, len(buffer))
            buffer[:count] = fetch.buffer[offset : offset + count]
        finally:
            with self._lock:
                self._leave(segment, count)
        return count

    def next_start(self, start: int, stop: int) -> int:
        """Return where the first segment in [start, stop) begins; `stop` if there is none."""
        with self._lock:
            return self._next_start(start, stop)

    def drop(self, segments: list[Segment] | None = None) -> None:
        """Let go of these segments, or of all; whoever waits for one is woken."""
        with self._lock:
            for segment in list(self._live if segments is None else segments):
                if segment in self._live:
                    self._live.remove(segment)
                    segment.due = 0
                    if segment.fetch is not None:
                        segment.fetch.cancel()

    def _leave(self, segment: Segment, count: int) -> None:
        """Note that bytes were read; the memory goes to another segment after the last reader."""
        segment.readers -= 1
        segment.due -= count
        if not segment.is_live:
            if segment in self._live:
                self._live.remove(segment)
            if not segment.readers and count:
                segment.let_go()

    def _covering(self, position: int) -> Segment | None:
        for segment in self._live:
            if segment.start <= position < segment.stop:
                return segment
        return None

    def _next_start(self, start: int, stop: int) -> int:
        return min((each.start for each in self._live if start < each.start < stop), default=stop)

    def _extend(self, start: int, stop: int) -> Segment:
        """Plan a range, or the beginning of one that is too long for a request."""
        growing = self._growing
        if (
            growing is not None
            and growing.fetch is None
            and growing.is_live
            and 0 <= start - growing.stop <= GAP
            and start - growing.start < PIECE
            and self._next_start(growing.stop - 1, start) == start
        ):
            stop = min(stop, growing.start + PIECE)
            growing.due += stop - start
            growing.stop = stop
        else:
            growing = Segment(start, min(stop, start + PIECE))
            self._live.append(growing)
        self._growing = growing
        if growing.stop - growing.start >= PIECE:
            growing.begin(self._transfer)
        return growing


def _take_buffer(size: int) -> bytearray:
    """Return memory of at least that size."""
    if size <= PIECE // 2:
        return bytearray(size)
    try:
        return _spare.pop()
    except IndexError:
        return bytearray(PIECE)


def free_buffers() -> None:
    """Free the memory that is kept for the next segment."""
    _spare.clear()
