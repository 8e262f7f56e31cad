"""Tensors from far away, in memory while several measures read them: each byte is fetched once.

What is too large for that is read through a window, again by each measure: a request for every
step would take as long as the way to the server and back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from difflens.core.protocols import Encoding

from .chunks import Side
from .resources import LIMIT, MemoryLimit

_WINDOW = 32 << 20

held = MemoryLimit(LIMIT)  # beside that of the measures, which are taken while this is held


class InHand:
    """The bytes of a tensor, in memory."""

    def __init__(self, encoding: Encoding, size: int) -> None:
        """Read them all."""
        self._data = memoryview(bytearray(size))
        encoding.read_into(0, self._data)

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Copy some of them."""
        buffer[:] = self._data[start : start + len(buffer)]
        return len(buffer)


class Windowed:
    """The bytes of a large tensor, of which the last ones read are in memory."""

    def __init__(self, encoding: Encoding, size: int) -> None:
        """Read none yet."""
        self._encoding, self._size = encoding, size
        self._lock = threading.Lock()
        self._begin, self._window = 0, memoryview(b"")

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Copy from the window; move it where the range is not in it."""
        done = 0
        with self._lock:
            while done < len(buffer):
                at = start + done
                if not self._begin <= at < self._begin + len(self._window):
                    window = memoryview(bytearray(min(_WINDOW, self._size - at)))
                    self._encoding.read_into(at, window)
                    self._begin, self._window = at, window
                part = self._window[at - self._begin :][: len(buffer) - done]
                buffer[done : done + len(part)] = part
                done += len(part)
        return done


def size_of(*sides: Side | None) -> int:
    """Count the bytes of some sides."""
    return sum(side.info.size_bytes for side in sides if side)


@contextmanager
def hold_sides(left: Side | None, right: Side | None) -> Iterator[tuple[Side | None, Side | None]]:
    """Hold both sides in memory if they are small enough, and look through windows if not."""
    size = size_of(left, right)
    if size > LIMIT:
        yield _as(Windowed, left), _as(Windowed, right)
        return
    with held(size):
        yield _as(InHand, left), _as(InHand, right)


def _as(kind: type[InHand | Windowed], side: Side | None) -> Side | None:
    return side and side._replace(encoding=kind(side.encoding, side.info.size_bytes))
