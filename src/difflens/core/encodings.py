"""The encoding of one tensor of any source: a record that reads it, here or in another process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .protocols import Encoding, Extent, TensorSource


class InSource(NamedTuple):
    """A tensor that only its source can read."""

    source: TensorSource
    name: str

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Have the source read it."""
        return self.source.read_into(self.name, start, start + len(buffer), buffer)


def encoding_of(source: TensorSource, name: str) -> Encoding:
    """Return how a tensor is stored."""
    # `isinstance` of a protocol takes 30 µs, and there may be a million tensors.
    if hasattr(source, "encoding"):
        encoding: Encoding = source.encoding(name)
        return encoding
    return InSource(source, name)


def extents_of(encoding: Encoding, start: int, stop: int) -> Iterable[Extent]:
    """Return the ranges of remote files that bytes [start, stop) are read from, where known."""
    if stop > start and hasattr(encoding, "extents"):
        extents: Iterable[Extent] = encoding.extents(start, stop)
        return extents
    return ()


def is_remote(source: TensorSource) -> bool:
    """Do its tensors lie elsewhere? They lie in one place, so that the first one tells."""
    for info in source.tensors.values():
        if info.size_bytes:
            return any(True for _ in extents_of(encoding_of(source, info.name), 0, 1))
    return False
