"""Threads that fetch: sixteen requests at a time, and none that keeps the program from ending."""

from __future__ import annotations

import threading
from queue import SimpleQueue

from .interruption import Interrupted
from .transfer import Transfer

PIECE = 8 * 1024**2  # bytes of one request: measured, see docs/decisions.md
AT_ONCE = 16


class Fetch:
    """A range on its way; it is done once, and waited for by anybody."""

    def __init__(self, transfer: Transfer, start: int, buffer: memoryview) -> None:
        """Say what is wanted, and where it goes."""
        self.transfer = transfer
        self.start = start
        self.buffer = buffer
        self.is_finished = False  # nothing is written into the buffer any more
        self._error: BaseException | None = None
        self._done = threading.Event()

    def run(self) -> None:
        """Fetch it, unless nobody wants it any more."""
        if self._done.is_set():
            return
        try:
            self.transfer.read_into(self.start, self.buffer)
        except BaseException as error:  # noqa: BLE001  it is raised where the bytes are read
            self._error = self._error or error
        self.is_finished = True
        self._done.set()

    def wait(self) -> None:
        """Wait until the bytes are here; raise what went wrong."""
        self._done.wait()
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        """Wake whoever waits, unless it is done."""
        if not self._done.is_set():
            self._error = Interrupted()
            self._done.set()


class Fetchers:
    """The threads, started when they are first needed."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Fetch] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._unfinished = 0

    def submit(self, fetch: Fetch) -> None:
        """Fetch it soon; what was submitted first goes first."""
        self._queue.put(fetch)
        with self._lock:
            self._unfinished += 1
            if len(self._threads) < min(self._unfinished, AT_ONCE):
                name = f"difflens-fetch-{len(self._threads)}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _work(self) -> None:
        while True:
            self._queue.get().run()
            with self._lock:
                self._unfinished -= 1


def fetch_pieces(transfer: Transfer, start: int, buffer: memoryview) -> None:
    """Fill a buffer; a large one by several requests at a time."""
    if len(buffer) <= 2 * PIECE:
        transfer.read_into(start, buffer)
        return
    fetches = [
        Fetch(transfer, start + offset, buffer[offset : offset + PIECE])
        for offset in range(0, len(buffer), PIECE)
    ]
    for fetch in fetches:
        FETCHERS.submit(fetch)
    try:
        for fetch in fetches:
            fetch.wait()
    finally:
        for fetch in fetches:
            fetch.cancel()


FETCHERS = Fetchers()
