"""Hybrids: the bad model with some pieces of the good one, as arrays or as files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple, Protocol

from difflens.core.buffers import ThreadBuffers
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo

from ..chunks import chunks_of, read_range, read_whole
from .changes import Change, Changes
from .pieces import Piece, Selection

_AT_ONCE = 1 << 18  # bytes that are put together at a time

_buffers = ThreadBuffers()


class Hybrid(NamedTuple):
    """What a check gets, and whether it was made from nothing but the two models."""

    model: Any
    is_fresh: bool


class Maker(Protocol):
    """What makes hybrids: several threads may ask it at once, up to the number it was made for."""

    @contextmanager
    def hybrid(self, selection: Selection, *, fresh: bool) -> Iterator[Hybrid]:
        """Yield the bad model with these pieces of the good one."""

    def close(self) -> None:
        """Remove what was written."""


class Models(NamedTuple):
    """The two models, and what differs between them."""

    good: TensorSource
    bad: TensorSource
    changes: Changes

    def length(self, name: str, axis: int) -> int:
        """Return the length of an axis of a tensor."""
        info = self.changes[name].bad
        return info.shape[axis] if info and info.shape else 1

    def infos(self, selection: Selection) -> dict[str, TensorInfo]:
        """List the tensors of a hybrid, in the order of the bad model."""
        put_back = {piece.name for piece in selection}
        infos: dict[str, TensorInfo] = {}
        by_bad = {each.bad.name: each for each in self.changes.values() if each.bad}
        for name, info in self.bad.tensors.items():
            change = by_bad.get(name)
            if change is None or change.name not in put_back:
                infos[name] = info
            elif change.good is not None:  # under the name that the bad model has for it
                infos[name] = TensorInfo(name, change.good.dtype, change.good.shape)
        for name, change in self.changes.items():
            if change.bad is None and change.good is not None and name in put_back:
                infos[change.good.name] = change.good
        return infos

    def read(self, change: Change | None, name: str, piece: Piece | None) -> Iterator[memoryview]:
        """Yield the bytes of one tensor of a hybrid, in order; each is good until the next."""
        if change is None or piece is None:
            yield from read_whole(self.bad, self.bad.tensors[name], _buffers)
        elif piece.axis is None and change.good:
            yield from read_whole(self.good, change.good, _buffers)
        elif change.good and change.bad:
            for start, stop in chunks_of(change.bad):
                view = _buffers.get("bad", stop - start)
                data = read_range(self.bad, change.bad.name, start, stop, view)
                self.overlay(change, piece, start, stop, data)
                yield data

    def overlay(
        self, change: Change, piece: Piece, start: int, stop: int, data: memoryview
    ) -> None:
        """Put the rows or columns of the good tensor that lie in bytes [start, stop) into them."""
        import numpy as np

        if change.good is None or change.bad is None or piece.axis is None:
            return
        shape = change.bad.shape
        unit = change.bad.size_bytes // prod(shape[: piece.axis + 1])
        chosen = np.zeros(shape[piece.axis], bool)
        for first, last in piece.spans:
            chosen[first:last] = True
        view = _buffers.get("good", stop - start)
        read = read_range(self.good, change.good.name, start, stop, view)
        theirs = np.frombuffer(read, np.uint8)
        ours = np.frombuffer(data, np.uint8)
        for first in range(start, stop, _AT_ONCE):
            last = min(first + _AT_ONCE, stop)
            mask = chosen[np.arange(first, last) // unit % len(chosen)]
            part = slice(first - start, last - start)
            ours[part][mask] = theirs[part][mask]


class HybridSource:
    """A hybrid that is read like any other model."""

    format = "safetensors"

    def __init__(self, models: Models, selection: Selection) -> None:
        """Read nothing yet."""
        self._models = models
        self._pieces = {piece.name: piece for piece in selection}
        self._by_bad = {each.bad.name: each for each in models.changes.values() if each.bad}
        self.tensors = models.infos(selection)
        self.metadata = models.bad.metadata
        self.warnings: list[str] = []

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and return how many."""
        change = self._by_bad.get(name) or self._models.changes.get(name)
        piece = self._pieces.get(change.name) if change else None
        if change is None or piece is None:
            return self._models.bad.read_into(name, start, stop, buffer)
        if piece.axis is None and change.good:
            return self._models.good.read_into(change.good.name, start, stop, buffer)
        size = self._models.bad.read_into(name, start, stop, buffer)
        self._models.overlay(change, piece, start, stop, buffer)
        return size

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if a file is not the one that was opened."""
        self._models.good.confirm()
        self._models.bad.confirm()

    def close(self) -> None:
        """Do nothing: the models belong to who opened them."""
