"""A file of GGUF or npz without its tensors, which lie in it as plain bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from difflens.core.dtypes import BITS
from difflens.core.errors import DifflensError
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo
from difflens.models.containers.encodings import EncodedSource, Straight
from difflens.models.formats import open_file

from .fields import Fields, number, text

FORMATS = ("gguf", "npz")
_MOST = 1 << 26  # bytes that are no tensor; all of them are in memory
_MOST_TENSORS, _MOST_RANK = 1_000_000, 64


class Frame(NamedTuple):
    """A file without its tensors: its format, its size, where tensors lie, what lies between."""

    form: str
    size: int
    tensors: tuple[tuple[TensorInfo, int], ...]
    others: bytes

    def to_bytes(self) -> bytes:
        """Write the frame."""
        parts = [number(FORMATS.index(self.form)), number(self.size), number(len(self.tensors))]
        dtypes = list(BITS)
        for info, at in self.tensors:
            parts += [text(info.name.encode("utf-8", "surrogatepass"))]
            parts += [number(dtypes.index(info.dtype)), number(len(info.shape))]
            parts += [*map(number, info.shape), number(at)]
        return b"".join(parts) + text(self.others)

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """Yield what is no tensor: its place in the file, its bytes."""
        used = 0
        for at, stop in _between(self.size, self.tensors):
            yield at, self.others[used : used + stop - at]
            used += stop - at

    def is_read_so(self, path: Path, limits: dict[str, int]) -> bool:
        """Does a file in fact have this format, and these tensors in these places?"""
        try:
            source = open_file(path, self.form, limits)
        except DifflensError:
            return False
        try:
            tensors = _places(source)
            return tensors is not None and dict(_by_name(tensors)) == dict(_by_name(self.tensors))
        finally:
            source.close()


def frame_of(source: TensorSource) -> Frame | None:
    """Return the frame of a model; None where its format is not written, or too much lies between.

    Not written: blocks that were decoded, compressed members, tensors that share their bytes.
    """
    tensors = _places(source)
    if tensors is None or not isinstance(source, EncodedSource):
        return None
    gaps = _between(source.file.size, tensors)
    if not gaps or sum(stop - start for start, stop in gaps) > _MOST:
        return None
    others = b"".join(source.file.read(start, stop) for start, stop in gaps)
    return Frame(source.format, source.file.size, tensors, others)


def _places(source: TensorSource) -> tuple[tuple[TensorInfo, int], ...] | None:
    if not isinstance(source, EncodedSource) or source.format not in FORMATS:
        return None
    tensors = []
    for name, info in source.tensors.items():
        encoding = source.encoding(name)
        if not isinstance(encoding, Straight) or info.stored:
            return None
        place = encoding.place()
        if place[0] is not source.file:
            return None
        tensors.append((TensorInfo(name, info.dtype, info.shape), place[1]))
    return tuple(tensors)


def _by_name(tensors: Iterable[tuple[TensorInfo, int]]) -> Iterator[tuple[str, object]]:
    return ((each[0].name, each) for each in tensors)


def _between(size: int, tensors: tuple[tuple[TensorInfo, int], ...]) -> list[tuple[int, int]]:
    """List the ranges of a file that are no tensor; nothing where tensors overlap."""
    gaps, end = [], 0
    for at, stop in sorted((at, at + info.size_bytes) for info, at in tensors):
        if at < end and stop > at:
            return []
        if at > end:
            gaps.append((end, at))
        end = max(end, stop)
    return [*gaps, (end, size)] if end <= size else []


def read_frame(fields: Fields) -> Frame:
    """Read a frame that nobody vouches for."""
    form = FORMATS[fields.number(len(FORMATS) - 1)]
    size, dtypes = fields.number(), list(BITS)
    tensors = []
    for _ in range(fields.number(_MOST_TENSORS)):
        try:
            name = fields.text().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise fields.damaged("a tensor has a name that is not UTF-8") from None
        dtype = dtypes[fields.number(len(dtypes) - 1)]
        shape = tuple(fields.number() for _ in range(fields.number(_MOST_RANK)))
        tensors.append((TensorInfo(name, dtype, shape), fields.number()))
    others, gaps = fields.text(), _between(size, tuple(tensors))
    twice = len({info.name for info, _ in tensors}) < len(tensors)
    if not gaps or twice or sum(stop - start for start, stop in gaps) != len(others):
        raise fields.damaged("its tensors do not fit its file")
    return Frame(form, size, tuple(tensors), others)
