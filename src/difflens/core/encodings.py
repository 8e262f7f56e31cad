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


_NONE = object()


def has_same_bytes(left: object, right: object) -> bool:
    """Do two encodings surely yield the same bytes? By what is known of their files; none is read.

    They do if they are of one kind, at one place of files with one content. False says nothing.
    """
    if left is right or type(left) is not type(right):
        return left is right
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(has_same_bytes, left, right))
    key = getattr(left, "content_key", _NONE)
    if key is not _NONE:
        return key is not None and bool(key == getattr(right, "content_key", None))
    if hasattr(left, "__dataclass_fields__"):
        return has_same_bytes(tuple(vars(left).items()), tuple(vars(right).items()))
    if hasattr(left, "read_into"):  # a file in a file, or a source: what would make it again
        return has_same_bytes(left.__reduce__(), right.__reduce__())
    return bool(left == right)


def is_remote(source: TensorSource) -> bool:
    """Do its tensors lie elsewhere? They lie in one place, so that the first one tells."""
    for info in source.tensors.values():
        if info.size_bytes:
            return any(True for _ in extents_of(encoding_of(source, info.name), 0, 1))
    return False
