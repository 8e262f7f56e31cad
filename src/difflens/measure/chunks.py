"""One chunk of a pair: read step by step into reused buffers, and scanned.

Chunks are counted in elements from the tensor's start, so the result does not
depend on threads, shards or what else is in the file.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

from ..dtypes import bits
from ..errors import ChangedWhileReading
from ..kernel import same_bytes, scan
from ..kernel.layout import STATE
from ..protocols import TensorSource
from ..records import TensorInfo

CHUNK = 1 << 22  # elements one task takes: some ten milliseconds
STEP = 1 << 18  # elements read at a time: what stays in the processor's own cache

_buffers = threading.local()


class Side(NamedTuple):
    """One tensor and where its bytes are."""

    source: TensorSource
    info: TensorInfo


class Chunk(NamedTuple):
    """Elements [start, stop) of a pair; `right` is None where one side is described alone.

    `always` asks for statistics even where both sides hold the same bytes.
    """

    left: Side
    right: Side | None
    start: int
    stop: int
    epsilon: float
    always: bool


def scan_chunk(chunk: Chunk) -> bytes | None:
    """Fill a state; None where both sides hold the same bytes and nobody asked for more."""
    state = bytearray(STATE.size)
    left, right = chunk.left, chunk.right or chunk.left
    looking = not chunk.always and left.info.dtype == right.info.dtype
    start = chunk.start
    while start < chunk.stop:
        stop = min(start + STEP, chunk.stop)
        left_bytes = _read(left, start, stop, 0)
        right_bytes = _read(right, start, stop, 1) if chunk.right else left_bytes
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


def same_chunk(chunk: Chunk) -> bool:
    """Are the bytes of this chunk equal? For what cannot be decoded."""
    right = chunk.right or chunk.left
    return all(
        same_bytes(
            _read(chunk.left, start, min(start + STEP, chunk.stop), 0),
            _read(right, start, min(start + STEP, chunk.stop), 1),
        )
        for start in range(chunk.start, chunk.stop, STEP)
    )


def steps(side: Side) -> Iterator[memoryview]:
    """Yield a tensor's bytes, a step at a time; each view is good until the next one."""
    for start in range(0, side.info.count, STEP):
        yield _read(side, start, min(start + STEP, side.info.count), 0)


def _read(side: Side, start: int, stop: int, which: int) -> memoryview:
    width = bits(side.info.dtype)
    first, last = start * width // 8, -(-stop * width // 8)
    view = _buffer(which)[: last - first]
    got = side.source.read_into(side.info.name, first, last, view)
    if got != last - first:
        raise ChangedWhileReading(side.info.name, f"{last - first} bytes expected, {got} came")
    return view


def _buffer(which: int) -> memoryview:
    try:
        return _buffers.pair[which]  # type: ignore[no-any-return]
    except AttributeError:
        size = STEP * 8
        _buffers.pair = (memoryview(bytearray(size)), memoryview(bytearray(size)))
        return _buffers.pair[which]  # type: ignore[no-any-return]
