"""Tensors that are made of others as they are read: a strip at a time, the last few kept.

    made tensor   | strip 0       | strip 1       | strip 2 ..     some megabytes each
                  | row row row.. | row row row.. |                whole units, made together

Threads ask for a mebibyte at a time, each in its own place: a strip serves several of them.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..protocols import ModelFile, TensorSource
from ..records import TensorInfo

_THREADS = os.cpu_count() or 1
_KEPT = _THREADS + 2
_STRIP = min(1 << 20, max(1 << 18, (1 << 24) // _KEPT))  # elements: 64 MiB of F32 are kept in all
_AT_ONCE = min(_THREADS, 8)  # strips in the making, each several times its size
_WIDTH = 4


class Making(NamedTuple):
    """A tensor of F32 to be made: how it looks, and what gives elements [first, last) of it.

    `first` is a multiple of `unit`, as `last` is, or it is the end.
    """

    info: TensorInfo
    unit: int
    make: Callable[[int, int], Any]


class Made:
    """A source with some of its tensors made on the fly, or taken from another source."""

    def __init__(
        self,
        source: TensorSource,
        tensors: Mapping[str, TensorInfo],
        makings: Mapping[str, Making],
        elsewhere: Mapping[str, tuple[TensorSource, str]] | None = None,
    ) -> None:
        """Take over a source; what is in neither mapping is read from it as it stands."""
        self._source = source
        self._makings = makings
        self._elsewhere = elsewhere or {}
        self._strips = Kept(_KEPT)
        self.format = source.format
        self.metadata = source.metadata
        self.warnings = source.warnings
        self.tensors = tensors

    def __getattr__(self, name: str) -> Any:
        """Give what only some sources have: refused objects, aliases, checksums."""
        if name == "_source":  # not yet there: asking for it would come here again
            raise AttributeError(name)
        return getattr(self._source, name)

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor, made or stored."""
        making = self._makings.get(name)
        if making is None:
            source, name = self._elsewhere.get(name, (self._source, name))
            return source.read_into(name, start, stop, buffer)
        done = 0
        while start + done < stop:
            begin, strip = self._strip(making, (start + done) // _WIDTH)
            inside = start + done - begin * _WIDTH
            part = strip[inside : inside + stop - start - done]
            buffer[done : done + len(part)] = part
            done += len(part)
        return done

    def place(self, name: str) -> tuple[ModelFile, int] | None:
        """Say where a tensor lies as plain bytes; what is made lies nowhere."""
        if name in self._makings:
            return None
        source, name = self._elsewhere.get(name, (self._source, name))
        return source.place(name) if hasattr(source, "place") else None

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the files are not the ones that were opened."""
        self._source.confirm()

    def close(self) -> None:
        """Give the descriptors back."""
        self._source.close()

    def _strip(self, making: Making, element: int) -> tuple[int, memoryview]:
        """Give the strip that holds an element, and the element it begins with."""
        size = max(1, _STRIP // making.unit) * making.unit
        first = element - element % size

        def make() -> memoryview:
            import numpy as np

            with np.errstate(all="ignore"):  # a scale may be infinite: that is the file's affair
                numbers = making.make(first, min(first + size, making.info.count))
            flat: Any = np.ascontiguousarray(numbers, "<f4").reshape(-1)
            return memoryview(flat).cast("B")

        strip: memoryview = self._strips.get((making.info.name, first), make)
        return first, strip


class _Piece:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.content: Any = None


class Kept:
    """The pieces made last; two threads that want the same one make it once."""

    def __init__(self, most: int) -> None:
        """Keep that many."""
        self._most = most
        self._lock = threading.Lock()
        self._few = threading.Semaphore(_AT_ONCE)
        self._pieces: OrderedDict[tuple[Any, ...], _Piece] = OrderedDict()

    def get(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Give the piece of that key, made now where it is not kept."""
        with self._lock:
            piece = self._pieces.setdefault(key, _Piece())
            self._pieces.move_to_end(key)
            if len(self._pieces) > self._most:
                self._pieces.popitem(last=False)
        with piece.lock:
            if piece.content is None:
                with self._few:
                    piece.content = make()
            return piece.content
