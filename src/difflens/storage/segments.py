"""The parts of files that were announced: planned, on their way or here, until they have been read.

A window is what one series of tasks has announced. It starts requests in the order of the tasks,
as far as its budget of memory goes; who comes for a part that is not on its way starts it.
"""

from __future__ import annotations

import threading
from collections import deque

from .fetchers import FETCHERS, PIECE, Fetch
from .transfer import Transfer

GAP = 16 * 1024  # fewer bytes between two ranges are fetched with them

_LOCK = threading.RLock()  # of all bookkeeping here; nobody waits or copies while holding it


class Window:
    """The announced parts of one series: which are next, and how much memory they have."""

    def __init__(self, budget: int) -> None:
        """Begin with nothing announced."""
        self._budget = budget
        self._here = 0  # bytes of what is on its way, or here and not yet read
        self._next: deque[Segment] = deque()
        self._spare: list[bytearray] = []  # new memory would cost a page fault for each 4 KiB

    def queue(self, segment: Segment) -> None:
        """Start a segment as soon as there is memory for it."""
        self._next.append(segment)
        self._start_next()

    def allocate(self, size: int) -> memoryview:
        """Return memory for a segment."""
        self._here += size
        if size <= PIECE // 2:
            return memoryview(bytearray(size))
        memory = self._spare.pop() if self._spare else bytearray(PIECE)
        return memoryview(memory)[:size]

    def recycle(self, buffer: memoryview, *, reusable: bool) -> None:
        """Keep the memory of a segment for the next one."""
        self._here -= len(buffer)
        if reusable and isinstance(buffer.obj, bytearray) and len(buffer.obj) == PIECE:
            self._spare.append(buffer.obj)
        self._start_next()

    def _start_next(self) -> None:
        while self._next and self._here < self._budget:
            segment = self._next.popleft()
            if segment.due > 0:
                segment.start()


class Segment:
    """A range that is fetched by one request; `due` bytes of it are still to be read."""

    def __init__(self, segments: Segments, window: Window, begin: int, end: int) -> None:
        """Begin as a plan, which may grow until it is closed."""
        self.begin = begin
        self.end = end
        self.due = end - begin
        self.readers = 0  # threads that copy from it now
        self.may_grow = True
        self._segments = segments
        self._window = window
        self._fetch: Fetch | None = None

    def grow(self, start: int, end: int) -> None:
        """Plan a further range, and the few bytes before it, which nobody will read."""
        self.due += end - start
        self.end = end

    def close(self) -> None:
        """Let it grow no more: it is fetched in its turn."""
        with _LOCK:
            if self.may_grow:
                self.may_grow = False
                self._window.queue(self)

    def start(self) -> Fetch:
        """Send the request, unless it was sent."""
        if self._fetch is None:
            self.may_grow = False
            buffer = self._window.allocate(self.end - self.begin)
            self._fetch = Fetch(self._segments.transfer, self.begin, buffer)
            FETCHERS.submit(self._fetch)
        return self._fetch

    def drop(self) -> None:
        """Let go of it; whoever waits for it is woken."""
        with _LOCK:
            if self.due > 0:
                self.due = 0
                self._release()

    def leave(self, count: int) -> None:
        """Note that a thread has read some bytes; the last one gives the memory back."""
        with _LOCK:
            self.readers -= 1
            was_live = self.due > 0
            self.due -= count
            if self.due <= 0 and not self.readers and (was_live or self._fetch):
                self._release()

    def _release(self) -> None:
        self._segments.remove(self)
        self.may_grow = False
        fetch = self._fetch
        if fetch is None:
            return
        # A request that is still under way goes on writing into its memory.
        reusable = fetch.is_finished
        fetch.cancel()
        if not self.readers:
            self._fetch = None
            self._window.recycle(fetch.buffer, reusable=reusable)


class Segments:
    """The announced parts of one file, which do not overlap."""

    def __init__(self, transfer: Transfer) -> None:
        """Begin with none."""
        self.transfer = transfer
        self._live: list[Segment] = []
        self._growing: Segment | None = None

    def plan(self, window: Window, start: int, stop: int) -> list[Segment]:
        """Announce that a range will be read once more; return the segments it lies in."""
        segments = []
        with _LOCK:
            while start < stop:
                segment = self._covering(start)
                if segment is None:
                    segment = self._extend(window, start, self.next_start(start, stop))
                    position = segment.end
                else:
                    position = min(stop, segment.end)
                    segment.due += position - start
                segments.append(segment)
                start = position
        return segments

    def read(self, start: int, buffer: memoryview) -> int:
        """Copy what was announced of the bytes from `start` on; return how many that were."""
        with _LOCK:
            segment = self._covering(start)
            if segment is None:
                return 0
            fetch = segment.start()
            segment.readers += 1
        count = 0
        try:
            fetch.wait()
            offset = start - segment.begin
            count = min(segment.end - start, len(buffer))
            buffer[:count] = fetch.buffer[offset : offset + count]
        finally:
            segment.leave(count)
        return count

    def next_start(self, start: int, stop: int) -> int:
        """Return where the first segment in [start, stop) begins; `stop` if there is none."""
        with _LOCK:
            return min(
                (each.begin for each in self._live if start < each.begin < stop), default=stop
            )

    def drop(self) -> None:
        """Let go of all of them."""
        with _LOCK:
            for segment in list(self._live):
                segment.drop()

    def remove(self, segment: Segment) -> None:
        """Forget a segment that was read."""
        if segment in self._live:
            self._live.remove(segment)
        if self._growing is segment:  # it knows its window, which keeps memory
            self._growing = None

    def _covering(self, position: int) -> Segment | None:
        for segment in self._live:
            if segment.begin <= position < segment.end:
                return segment
        return None

    def _extend(self, window: Window, start: int, stop: int) -> Segment:
        """Plan a range, or the beginning of one that is too long for a request."""
        growing = self._growing
        if growing is None or not self._reaches(growing, start):
            if growing is not None:
                growing.close()
            growing = self._growing = Segment(self, window, start, min(stop, start + PIECE))
            self._live.append(growing)
        else:
            growing.grow(start, min(stop, growing.begin + PIECE))
        if growing.end - growing.begin >= PIECE:
            growing.close()
        return growing

    def _reaches(self, growing: Segment, start: int) -> bool:
        """May a segment grow up to this position, over nothing but a gap?"""
        return (
            growing.may_grow
            and growing.due > 0
            and 0 <= start - growing.end <= GAP
            and start - growing.begin < PIECE
            and self.next_start(growing.end - 1, start) == start
        )
