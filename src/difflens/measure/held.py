"""Tensors from far away, in memory while several measures read them: each byte is fetched once.

What is too large for that is read through a window, again by each measure: a request for every
step would take as long as the way to the server and back.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from difflens.core.encodings import extents_of
from difflens.core.protocols import Encoding, Extent

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


class Kept:
    """The bytes of tensors that were asked for last, while there is room for them."""

    def __init__(self, limit: int = LIMIT) -> None:
        """Begin with none."""
        self.limit = limit
        self._lock = threading.Lock()
        self._tensors: OrderedDict[Hashable, _Slot] = OrderedDict()
        self._size = 0

    def fits(self, size: int) -> bool:
        """Is it small enough to be kept beside another?"""
        return size <= self.limit // 2

    def get(self, key: Hashable, encoding: Encoding, size: int) -> InHand:
        """Return the bytes of the tensor with that key; read them if they are not here."""
        with self._lock:
            slot = self._tensors.pop(key, None) or _Slot(size)
            self._size += 0 if slot.is_counted else size
            slot.is_counted = True
            self._tensors[key] = slot
            while self._size > self.limit and len(self._tensors) > 1:
                _, dropped = self._tensors.popitem(last=False)
                self._size -= dropped.size
        with slot.lock:
            if slot.content is None:
                slot.content = InHand(encoding, size)
            return slot.content


class _Slot:
    def __init__(self, size: int) -> None:
        self.size = size
        self.lock = threading.Lock()
        self.is_counted = False
        self.content: InHand | None = None


class KeptEncoding(NamedTuple):
    """A tensor that is read from what is kept; it is announced as a whole, with its beginning."""

    key: Hashable
    encoding: Encoding
    size: int
    kept: Kept

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Copy some of its bytes."""
        return self.kept.get(self.key, self.encoding, self.size).read_into(start, buffer)

    def extents(self, start: int, stop: int) -> Iterable[Extent]:
        """Return all its ranges with the first: they are read together."""
        del stop
        return extents_of(self.encoding, 0, self.size) if start == 0 else ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Send only how the tensor is stored: what is kept stays here."""
        return _itself, (self.encoding,)


def _itself(encoding: Encoding) -> Encoding:
    return encoding


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
