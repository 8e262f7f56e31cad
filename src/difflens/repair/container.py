"""The patch as a file: a safetensors file of bytes, with an index of all chunks.

    index    U8  two lengths; compressed: digests, layouts, which tensor of the base each tensor
                 comes from, the length of its recipe and of every chunk; then the checksums of
                 the chunks
    small    U8  recipes and chunks of tensors that take less than 8 KiB, one after another
    NAME     U8  the recipe and the chunks of the tensor of that name

A name in the header takes some hundred bytes, more than the changes of a small tensor.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from difflens.core.whole_file import whole_file

from .fields import number, text
from .layout import Layout

FORMAT, VERSION = "difflens patch", "1"
SMALL_BYTES = 8192  # of which a name in the header takes about a hundredth
INDEX, SMALL = "index", "small"
REVERSIBLE, TARGET_LAYOUT, BASE_LAYOUT, STRONG, WITH_FILES = 1, 2, 4, 8, 16
_PIECE = 1 << 20


class Head(NamedTuple):
    """What a patch says of its two models.

    A layout is None where the base itself shows it: that of the base where the base is a
    safetensors model, that of the target where it is the same. `base` and `target` are digests of
    their tensors, empty where none were taken. `with_files` says that the files beside the weights
    are part of the layouts.
    """

    reversible: bool
    base: bytes
    target: bytes
    base_digest: bytes
    base_layout: Layout | None
    target_layout: Layout | None
    with_files: bool


class Entry(NamedTuple):
    """A tensor that the patch makes: 0 from nothing, 1 from its namesake, 2 + n from the n-th."""

    name: str
    origin: int
    recipe: int  # bytes of its recipe, which come before its chunks
    lengths: list[int]
    checks: list[int]

    @property
    def size(self) -> int:
        """The bytes of the recipe and of all chunks."""
        return self.recipe + sum(self.lengths)


class Spool:
    """Chunks in the order they were made, on disk until the header that comes first is known."""

    def __init__(self, file: BinaryIO) -> None:
        """Use an empty file."""
        self._file, self.size = file, 0

    def add(self, data: bytes) -> None:
        """Append the data of a chunk."""
        self._file.write(data)
        self.size += len(data)

    def pieces(self, start: int, stop: int) -> Iterator[bytes]:
        """Read a range, some at a time."""
        self._file.seek(start)
        while start < stop:
            piece = self._file.read(min(_PIECE, stop - start))
            start += len(piece)
            yield piece


def write(path: Path, head: Head, entries: list[Entry], spool: Spool) -> None:
    """Write a patch, completely or not at all."""
    index = _index(head, entries)
    ends, at = [], 0
    for entry in entries:
        at += entry.size
        ends.append(at)
    ranges = {
        entry.name: (end - entry.size, end)
        for entry, end in zip(entries, ends, strict=True)
        if entry.lengths
    }
    own = {name: each for name, each in ranges.items() if is_own(name, each[1] - each[0])}
    small = [each for name, each in ranges.items() if name not in own and each[0] < each[1]]
    sizes = {INDEX: len(index)}
    if small:
        sizes[SMALL] = sum(stop - start for start, stop in small)
    sizes |= {name: stop - start for name, (start, stop) in own.items()}
    with whole_file(path) as file:
        file.write(_header(sizes))
        file.write(index)
        for start, stop in (*small, *own.values()):
            for piece in spool.pieces(start, stop):
                file.write(piece)


def is_own(name: str, size: int) -> bool:
    """Are the chunks of a tensor listed under its own name?"""
    return size >= SMALL_BYTES and name not in (INDEX, SMALL, "__metadata__")


def _header(sizes: Mapping[str, int]) -> bytes:
    header: dict[str, object] = {"__metadata__": {"format": FORMAT, "version": VERSION}}
    end = 0
    for name, size in sizes.items():
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
        end += size
    data = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return struct.pack("<Q", len(data)) + data


def _index(head: Head, entries: Iterable[Entry]) -> bytes:
    entries = list(entries)
    flags = REVERSIBLE * head.reversible | TARGET_LAYOUT * (head.target_layout is not None)
    flags |= BASE_LAYOUT * (head.base_layout is not None) | STRONG * bool(head.base)
    flags |= WITH_FILES * head.with_files
    parts = [number(flags), head.base, head.target, head.base_digest]
    parts += [each.to_bytes() for each in (head.base_layout, head.target_layout) if each]
    parts += [number(len(entries)), b"".join(number(each.origin) for each in entries)]
    parts += [number(each.recipe) for each in entries]
    lengths = [length for each in entries for length in each.lengths]
    parts += [number(len(lengths)), b"".join(map(number, lengths))]
    plain = b"".join(parts)
    packed = zlib.compress(plain, 9)
    checks = [check for each in entries for check in each.checks]
    return text(packed) + number(len(plain)) + struct.pack(f"<{len(checks)}I", *checks)
