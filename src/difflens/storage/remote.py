"""A model file elsewhere: its beginning comes with the request that opens it, the rest by range.

Every range is asked for in the version that was opened, and the answer's version is compared: a
file that changes is an error, never a mixture. That is why `confirm` has nothing left to ask.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from itertools import count
from weakref import finalize

from difflens.core.addresses import Address
from difflens.core.errors import ChangedWhileReading, MissingExtra, UnreadableFile
from difflens.core.escape import visible
from difflens.core.limits import limit_of
from difflens.core.once import Call, as_call

from .blocks import BLOCKS
from .fetchers import FETCHERS, Fetch, fetch_pieces
from .links import Route
from .segments import GAP, Segment, Segments, Window
from .stores import SECONDS, STORES, Entry
from .transfer import Transfer, Version

HEAD = 128 * 1024  # bytes that come with the first request: the header of most shards
BLOCK = 128 * 1024  # bytes that are asked for where a reader wants fewer
_LONGEST_BLOCK = 4 * 1024**2
_TAIL = 256 * 1024  # at the end of a zip, where its directory is
_SMALL = 64 * 1024
_MOST_PROBES = 64
_NUMBERS = count()


class RemoteFile:
    """A file that is read by range; a source plug-in gets one."""

    def __init__(
        self, path: Address, limits: Mapping[str, int] | None = None, known: Version | None = None
    ) -> None:
        """Open the file; one whose version is known is not asked for anything yet."""
        self.path = path
        self.limits = dict(limits or {})
        self._closed = False
        self._lock = threading.Lock()
        self._number = next(_NUMBERS)
        finalize(self, BLOCKS.drop, self._number)  # where nobody closes it
        self._stretch = range(HEAD)  # what was asked for last, where a reader wanted less
        self._transfer = Transfer(path, Route(lambda: STORES.store(path).link(path)), known)
        self.segments = Segments(self._transfer)
        if known is None:
            head = self._transfer.open(HEAD)
            BLOCKS.add(self._number, 0, head)
        self.size = self.identity.size

    @property
    def identity(self) -> Version:
        """What tells the content that was opened from another."""
        version = self._transfer.version
        if version is None:
            raise UnreadableFile(visible(str(self.path)), "it was never opened")
        return version

    @property
    def content_hash(self) -> str | None:
        """The SHA-256 of all its bytes, where the store knows it without reading them."""
        entry = _entry(self.path)
        return entry.sha256 if entry else None

    @cached_property
    def content_key(self) -> Hashable:
        """What only files with the same bytes have in common; None if nothing is sure."""
        known = self.content_hash if self.path.scheme == "hf" else None
        if known is not None:
            return known
        return (self.path, self.identity) if self.identity.is_exact else None

    def read(self, start: int, stop: int) -> bytes:
        """Read bytes [start, stop); for headers, whose size was checked before."""
        buffer = bytearray(stop - start)
        self.read_into(start, memoryview(buffer))
        return bytes(buffer)

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Fill the buffer from byte `start` on, from what is here already or on its way."""
        if self._closed:
            raise UnreadableFile(visible(str(self.path)), "it was read after it was closed")
        stop = start + len(buffer)
        if stop > self.size:
            what = f"it ends at byte {self.size}, byte {stop} is wanted"
            raise ChangedWhileReading(visible(str(self.path)), what)
        position = start
        while position < stop:
            rest = buffer[position - start :]
            done = self.segments.read(position, rest) or BLOCKS.read(self._number, position, rest)
            position += done or self._ask(position, rest)
        return len(buffer)

    def begin(self, start: int, stop: int) -> None:
        """Announce that these bytes will be read once: they are fetched from now on."""
        for segment in self.plan(Window(stop - start), start, stop):
            segment.close()

    def plan(self, window: Window, start: int, stop: int) -> list[Segment]:
        """Announce that these bytes will be read once; what is here already is not fetched."""
        return self.segments.plan(window, min(BLOCKS.end(self._number, start), stop), stop)

    def gather(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch small ranges that lie far apart, all at the same time, and keep them a while."""
        fetches = [
            Fetch(self._transfer, start, memoryview(bytearray(stop - start)))
            for start, stop in _joined(ranges, self.size)
            if not BLOCKS.holds(self._number, start, stop)
        ]
        for fetch in fetches:
            FETCHERS.submit(fetch)
        try:
            for fetch in fetches:
                fetch.wait()
                BLOCKS.add(self._number, fetch.start, bytes(fetch.buffer))
        finally:
            for fetch in fetches:
                fetch.cancel()

    def limit(self, name: str) -> int:
        """Return a limit by name, with the value of the user if there is one."""
        return limit_of(self.limits, name)

    def confirm(self) -> None:
        """Every range was compared when it came: there is nothing to ask."""

    def close(self) -> None:
        """Let go of everything; further reads are refused."""
        self._closed = True
        self.segments.drop()
        BLOCKS.drop(self._number)

    def __reduce__(self) -> Call:
        """Pickle where it is and which version, never what opens it; a process opens it once."""
        limits = tuple(sorted(self.limits.items()))
        return as_call(_open_again, self.path, limits, self.identity)

    def _ask(self, start: int, buffer: memoryview) -> int:
        """Ask for bytes that nobody announced; few of them come with their neighbours."""
        stop = self.segments.next_start(start, start + len(buffer))
        if stop - start > _SMALL:
            fetch_pieces(self._transfer, start, buffer[: stop - start])
            return stop - start
        with self._lock:  # threads that read neighbours wait for one request
            if done := BLOCKS.read(self._number, start, buffer):
                return done
            first, last = self._block(start)
            block = bytearray(last - first)
            self._transfer.read_into(first, memoryview(block))
            BLOCKS.add(self._number, first, bytes(block))
            return BLOCKS.read(self._number, start, buffer)

    def _block(self, start: int) -> tuple[int, int]:
        """Choose what to ask for: a reader that goes on and on gets more each time."""
        tail = max(self.size - _TAIL, 0)
        if start >= tail:
            return tail, self.size
        is_next = start == self._stretch.stop
        length = min(2 * len(self._stretch), _LONGEST_BLOCK) if is_next else BLOCK
        self._stretch = range(start, min(start + length, self.size))
        return start, self._stretch.stop


def _joined(ranges: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """Join ranges that lie near each other, and cut them at the end of the file."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        stop = min(end, size)
        if joined and start - joined[-1][1] <= GAP and stop - joined[-1][0] <= BLOCK:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        elif start < stop:
            joined.append((start, stop))
    return joined


def _open_again(
    path: Address, limits: tuple[tuple[str, int], ...], identity: Version
) -> RemoteFile:
    return RemoteFile(path, dict(limits), identity)


class Probes:
    """Files that were opened to see whether they exist: one who opens them next need not ask."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._files: OrderedDict[Address, tuple[float, RemoteFile | None]] = OrderedDict()

    def can_open(self, address: Address) -> bool:
        """Try to open a file, unless that was tried less than a minute ago."""
        with self._lock:
            since, file = self._files.get(address, (float("-inf"), None))
            if time.monotonic() - since < SECONDS:
                return file is not None
        try:
            file = RemoteFile(address)
        except (ChangedWhileReading, UnreadableFile):
            file = None
        with self._lock:
            self._files[address] = time.monotonic(), file
            while len(self._files) > _MOST_PROBES:
                self._files.popitem(last=False)
        return file is not None

    def claim(self, address: Address) -> RemoteFile | None:
        """Return a file that was opened less than a minute ago, to the first who asks."""
        with self._lock:
            since, file = self._files.pop(address, (0.0, None))
        return file if time.monotonic() - since < SECONDS else None

    def forget(self) -> None:
        """Forget all."""
        with self._lock:
            self._files.clear()


PROBES = Probes()


def open_file(address: Address, limits: Mapping[str, int] | None = None) -> RemoteFile:
    """Open a file; the first request brings its size, its version and its beginning."""
    file = PROBES.claim(address)
    if file is None:
        return RemoteFile(address, limits)
    file.limits = dict(limits or {})
    return file


def is_file(address: Address) -> bool:
    """Is it a file? False also if nobody knows."""
    try:
        entry = _entry(address)
    except MissingExtra:
        return False
    except UnreadableFile:  # who may read a file may not be allowed to list its folder
        return PROBES.can_open(address)
    return entry is not None and not entry.is_folder


def is_folder(address: Address) -> bool:
    """Is it a folder? False also if nobody knows."""
    known = STORES.known_entries(address.parent) if address.key else None
    if known is not None:
        return address.name in known and known[address.name].is_folder
    try:
        return bool(STORES.entries(address))
    except (MissingExtra, UnreadableFile):
        return False


def names(folder: Address) -> list[str]:
    """List the files and folders in a folder."""
    entries = STORES.entries(folder)
    if not entries:
        raise UnreadableFile(visible(str(folder)), "no such folder")
    return list(entries)


def _entry(address: Address) -> Entry | None:
    if not address.key:
        return None
    return STORES.entries(address.parent).get(address.name)
