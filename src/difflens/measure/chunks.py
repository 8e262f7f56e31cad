"""One chunk of a pair: read step by step into reused buffers, and scanned.

Chunks are counted in elements from the tensor's start, so the result does not
depend on threads, shards or what else is in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from difflens.core.buffers import ThreadBuffers
from difflens.core.dtypes import bits
from difflens.core.encodings import encoding_of, extents_of
from difflens.core.errors import ChangedWhileReading, UnreadableFile
from difflens.core.protocols import Encoding, Extent, HasDescriptor, TensorSource
from difflens.core.records import TensorInfo

from .kernel import same_bytes, scan, scan_files
from .kernel.layout import STATE

CHUNK = 1 << 22  # elements one task takes: some ten milliseconds
STEP = 1 << 18  # elements read at a time where Python reads
_FEW = 1 << 13  # elements below which reading in Python costs less than asking where they lie

_buffers = ThreadBuffers()


class Side(NamedTuple):
    """One tensor: how its bytes are stored, and what its header says."""

    encoding: Encoding
    info: TensorInfo

    @classmethod
    def of(cls, source: TensorSource, info: TensorInfo) -> Side:
        """Look up how the source stores it."""
        return cls(encoding_of(source, info.name), info)

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Return the bytes that hold elements [start, stop): the first, and the one behind."""
        width = bits(self.info.dtype)
        return start * width // 8, -(-stop * width // 8)

    def size_of(self, start: int, stop: int) -> int:
        """Count the bytes of elements [start, stop)."""
        return (stop - start) * bits(self.info.dtype) // 8


class Place(NamedTuple):
    """Where a tensor's elements lie as plain bytes."""

    file: HasDescriptor
    offset: int
    info: TensorInfo


class Chunk(NamedTuple):
    """Elements [start, stop) of a pair; `right` is None if one side is described alone.

    `always` asks for statistics even where both sides hold the same bytes. `once` asks for them
    as well, beside the comparison: for bytes from far away, which should not be read again.
    """

    left: Side
    right: Side | None
    start: int
    stop: int
    epsilon: float
    always: bool
    once: bool = False

    @property
    def size_bytes(self) -> int:
        """How many bytes it takes on both sides."""
        size = self.left.size_of(self.start, self.stop)
        return size + (self.right.size_of(self.start, self.stop) if self.right else 0)

    def extents(self) -> Iterator[Extent]:
        """Yield the ranges of remote files that it is read from."""
        for side in (self.left, self.right):
            if side:
                first, last = side.span(self.start, self.stop)
                yield from extents_of(side.encoding, first, last)


class SameBytes(bytes):
    """The state of a chunk whose bytes are the same on both sides."""


State = bytes | None  # None: the same bytes on both sides, and no statistics


def scan_chunk(chunk: Chunk) -> State:
    """Fill a state; None if both sides hold the same bytes and nobody asked for more."""
    if chunk.once:
        return _scan_once(chunk)
    state = bytearray(STATE.size)
    left, right = chunk.left, chunk.right or chunk.left
    looking = not chunk.always and left.info.dtype == right.info.dtype
    if chunk.right and chunk.stop - chunk.start > _FEW:
        places = _place(left, chunk.start), _place(right, chunk.start)
        if places[0] and places[1]:
            return _scan_places(chunk, places[0], places[1], looking=looking)
    start = chunk.start
    while start < chunk.stop:
        stop = min(start + STEP, chunk.stop)
        left_bytes = read(left, start, stop, 0)
        right_bytes = read(right, start, stop, 1) if chunk.right else left_bytes
        if looking:
            if same_bytes(left_bytes, right_bytes):
                start = stop
                continue
            looking = False
            if start > chunk.start:  # what came before was equal, but its statistics are wanted now
                start = chunk.start
                continue
        scan(left_bytes, right_bytes, left.info.dtype, right.info.dtype, chunk.epsilon, state)
        start = stop
    return None if looking else bytes(state)


def _scan_once(chunk: Chunk) -> State:
    """Compare and scan each byte as it comes."""
    state = bytearray(STATE.size)
    left, right = chunk.left, chunk.right or chunk.left
    same = chunk.right is not None and left.info.dtype == right.info.dtype
    for start in range(chunk.start, chunk.stop, STEP):
        stop = min(start + STEP, chunk.stop)
        left_bytes = read(left, start, stop, 0)
        right_bytes = read(right, start, stop, 1) if chunk.right else left_bytes
        same = same and same_bytes(left_bytes, right_bytes)
        scan(left_bytes, right_bytes, left.info.dtype, right.info.dtype, chunk.epsilon, state)
    return SameBytes(state) if same and not chunk.always else bytes(state)


def _place(side: Side, start: int) -> Place | None:
    """Say where the elements lie as plain bytes in a file, if they do."""
    # `isinstance` of the protocols takes 30 µs, and this is asked twice for every chunk.
    place = side.encoding.place() if hasattr(side.encoding, "place") else None
    if place is None or not hasattr(place[0], "hold"):
        return None
    file, offset = place
    return Place(file, offset + start * bits(side.info.dtype) // 8, side.info)


def _scan_places(chunk: Chunk, left: Place, right: Place, *, looking: bool) -> bytes | None:
    """Let the kernel read and scan by itself: it takes smaller steps than Python can afford."""
    state = bytearray(STATE.size)
    holds = left.file.hold(), right.file.hold()
    parts = 2 if left.info.dtype == "C64" else 1
    try:
        same = scan_files(
            (holds[0].number, left.offset, left.info.dtype),
            (holds[1].number, right.offset, right.info.dtype),
            (chunk.stop - chunk.start) * parts,
            chunk.epsilon,
            looking,
            state,
        )
    except EOFError:
        _find_fault(chunk)
        raise
    except OSError as error:
        _find_fault(chunk)
        where = f"{left.file.path} or {right.file.path}"
        raise UnreadableFile(where, (error.strerror or str(error)).lower()) from error
    return None if same else bytes(state)


def _find_fault(chunk: Chunk) -> None:
    """Read the chunk the slow way: whichever file is at fault is named by its source."""
    for which, side in enumerate((chunk.left, chunk.right or chunk.left)):
        for start in range(chunk.start, chunk.stop, STEP):
            read(side, start, min(start + STEP, chunk.stop), which)


def same_chunk(chunk: Chunk) -> bool:
    """Are the bytes of this chunk equal? For what cannot be decoded."""
    right = chunk.right or chunk.left
    return all(
        same_bytes(
            read(chunk.left, start, min(start + STEP, chunk.stop), 0),
            read(right, start, min(start + STEP, chunk.stop), 1),
        )
        for start in range(chunk.start, chunk.stop, STEP)
    )


def steps(side: Side) -> Iterator[memoryview]:
    """Yield a tensor's bytes, a step at a time; each view is good until the next one."""
    for start in range(0, side.info.count, STEP):
        yield read(side, start, min(start + STEP, side.info.count), 0)


def read(side: Side, start: int, stop: int, which: int) -> memoryview:
    """Return the bytes of elements [start, stop), good until this thread reads again."""
    first, last = side.span(start, stop)
    view = _buffers.get(which, last - first, STEP * 8)
    got = side.encoding.read_into(first, view)
    if got != last - first:
        raise ChangedWhileReading(side.info.name, f"{last - first} bytes expected, {got} came")
    return view
