"""Distributed checkpoints of torch: a folder with a pickle about the tensors, and their pieces.

    .metadata           a pickle: for each tensor its dtype, size and pieces (offsets, sizes);
                        for each piece its file, and the range in it
    __0_0.distcp ...    pieces one after another, each a file of torch.save

A tensor is put together from its pieces as it is read; a piece is opened when it is first needed.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable
from itertools import dropwhile, islice
from math import prod
from typing import Any, NamedTuple

from difflens.core.addresses import Address, Location
from difflens.core.dtypes import BITS
from difflens.core.encodings import encoding_of, extents_of
from difflens.core.errors import INCOMPLETE, CorruptFile
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import Extent, ModelFile
from difflens.core.records import TensorInfo
from difflens.storage.places import gather

from ..containers.encodings import EncodedSource
from ..containers.inner_files import Part
from ..folders.listing import neighbour
from ..folders.together import open_together
from ..torch.pieces import About, Piece, Range, Whole, read_metadata
from ..torch.source import TorchSource, refusal_warning
from ..torch.tensors import ENCODINGS
from . import source
from .pytorch import Archive

_MARK = b"torch.distributed.checkpoint.metadata"
_LARGEST_VALUE = 1 << 16
_MOST_VALUES = 1000
_FRONT, _BACK = 4096, 66_000  # bytes of a piece: its pickle, and the directory of its zip
_PIECES_AT_ONCE = 64


def recognise(head: bytes, _path: Location) -> bool:
    """Is this the pickle about a distributed checkpoint?"""
    return head[:1] == b"\x80" and _MARK in head[:80]


@source(recognise=recognise)
def dcp(file: ModelFile) -> Checkpoint:
    """Distributed checkpoints of torch (DCP): a folder of .metadata and .distcp files."""
    return Checkpoint(file)


class Box(NamedTuple):
    """A piece in bytes: where it begins and ends in the tensor, and how its rows lie in it."""

    begin: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]  # from one index to the next, within the piece
    cut: int  # the last axis along which it is not the whole tensor
    piece: Piece


class Layout(NamedTuple):
    """A tensor in bytes: its last axis counts them."""

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    starts: list[int]
    boxes: list[Box]


class Assembled(NamedTuple):
    """The encoding of a tensor that lies in pieces, each in a torch archive of its own."""

    checkpoint: Checkpoint
    name: str
    layout: Layout

    def __reduce__(self) -> tuple[Any, ...]:
        """Look it up in another process, where the checkpoint is opened once."""
        return encoding_of, (self.checkpoint, self.name)

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Read, piece after piece, the runs that the range touches."""
        done = 0
        while done < len(buffer):
            box, place, run = self._run(start + done)
            length = min(run, len(buffer) - done)
            piece = self.checkpoint.piece(self.name, box.piece)
            piece.read_into("tensor", place, place + length, buffer[done : done + length])
            done += length
        return done

    def extents(self, start: int, stop: int) -> Iterable[Extent]:
        """Return the range of each piece that bytes [start, stop) touch, of remote files."""
        touched: dict[Piece, range] = {}
        if not self.checkpoint.is_remote:
            return
        while start < stop:
            box, place, run = self._run(start)
            length = min(run, stop - start)
            before = touched.get(box.piece, range(place, place))
            touched[box.piece] = range(before.start, max(before.stop, place + length))
            start += length
        for piece, span in touched.items():
            opened = self.checkpoint.piece(self.name, piece)
            yield from extents_of(opened.encoding("tensor"), span.start, span.stop)

    def _run(self, place: int) -> tuple[Box, int, int]:
        """Find the piece that holds a byte, where in it, and how many bytes follow there."""
        layout = self.layout
        index = tuple(
            place // step % length for step, length in zip(layout.steps, layout.shape, strict=True)
        )
        for at in range(bisect_right(layout.starts, place) - 1, -1, -1):
            box = layout.boxes[at]
            inner = [i - begin for i, begin in zip(index, box.begin, strict=True)]
            if all(0 <= i < size for i, size in zip(inner, box.sizes, strict=True)):
                local = sum(i * step for i, step in zip(inner, box.steps, strict=True))
                step = layout.steps[box.cut]
                run = (box.sizes[box.cut] - inner[box.cut]) * step - place % step
                return box, local, run
        where = visible(str(self.checkpoint.file.path))
        raise CorruptFile(where, f"no piece of '{for_terminal(self.name)}' holds byte {place}")


class Checkpoint(EncodedSource):
    """An open distributed checkpoint."""

    def __init__(self, file: ModelFile) -> None:
        """Read `.metadata`; opens the files beside it, and no piece in them."""
        super().__init__(file, "dcp")
        self._where = visible(str(file.path))
        self._values: dict[str, str] = {}
        self.metadata = self._values
        self._files: dict[str, ModelFile] = {}
        self._checked: set[tuple[str, Piece]] = set()
        self._pieces: dict[Range, TorchSource] = {}
        self._ranges: list[Range] = []  # of all pieces, as they lie in their files
        self._gathered: set[Range] = set()
        self._lock = threading.Lock()
        try:
            about = read_metadata(file)
            self.refused = about.refused
            self._open_files(about)
            for name, whole in about.tensors.items():
                self._plan(name, whole)
            for name, place in about.values.items():
                self._show_value(name, place)
        except BaseException:
            self.close()
            raise
        self.refused = sorted(set(self.refused))
        self.warnings += refusal_warning(self.refused)

    def _open_files(self, about: About) -> None:
        """Open every file that a piece or a value lies in."""
        pieces = {piece.range for whole in about.tensors.values() for piece in whole.pieces}
        self._ranges = sorted(pieces)
        names = sorted({each.file for each in (*pieces, *about.values.values())})
        folder = self.file.path.parent
        files = open_together(
            lambda path: neighbour(self.file, path.name), [folder / name for name in names]
        )
        self._files = dict(zip(names, files, strict=True))
        self.opened += files

    def piece(self, name: str, piece: Piece) -> TorchSource:
        """Open a piece of a tensor, once, and check it against the metadata."""
        with self._lock:
            opened = self._pieces.get(piece.range)
            if opened is None:
                self._gather_from(piece.range)
                opened = Archive(self._part(piece.range)).open(self.format)
                self._pieces[piece.range] = opened
                self.opened.append(opened)
            if (name, piece) not in self._checked:  # two pieces may claim one range
                self._check(name, piece, opened)
                self._checked.add((name, piece))
        return opened

    @property
    def is_remote(self) -> bool:
        """Does it lie elsewhere, where every request takes long?"""
        return isinstance(self.file.path, Address)

    def _gather_from(self, place: Range) -> None:
        """Fetch what opening this piece and the next ones reads: beginnings and ends."""
        if not self.is_remote or place in self._gathered:
            return
        following = (each for each in self._ranges if each.file == place.file)
        some = list(islice(dropwhile(lambda each: each != place, following), _PIECES_AT_ONCE))
        self._gathered.update(some)
        ends = (
            span
            for each in some
            for span in (
                (each.begin, each.begin + min(each.length, _FRONT)),
                (each.begin + max(0, each.length - _BACK), each.begin + each.length),
            )
        )
        gather(self._files[place.file], ends)

    def _plan(self, name: str, whole: Whole) -> None:
        """Plan how a tensor is assembled from its pieces."""
        encoding = ENCODINGS.get(whole.dtype or "")
        kind = f"{for_terminal(whole.dtype or 'nameless', 40)} tensor"
        if encoding is None or encoding.dtype == "F4" or whole.dtype in ("qint8", "quint8"):
            self.warnings.append(f"{for_terminal(name)}: a {kind} was left out")
            return
        if any(piece.range.packed for piece in whole.pieces):
            self.warnings.append(f"{for_terminal(name)}: a packed {kind} was left out")
            return
        for piece in whole.pieces:
            self._part(piece.range)
        wide = encoding.wide
        shape = (*whole.shape, wide) if wide > 1 else whole.shape
        info = TensorInfo(name, encoding.dtype, shape, encoding.stored)
        self.add(info, Assembled(self, name, _layout(whole, wide * BITS[encoding.dtype] // 8)))

    def _show_value(self, name: str, place: Range) -> None:
        """Show a value that is no tensor: objects of a few bytes, each a pickle of its own."""
        part = self._part(place)
        small = place.length <= _LARGEST_VALUE and len(self._values) < _MOST_VALUES
        if not small or place.packed:
            self._values[name] = f"{place.length} bytes"
            return
        value = Archive(part).open(self.format)
        self.refused += value.refused
        for key, text in value.metadata.items():
            self._values[name if key == "value" else f"{name}.{key}"] = text
        if value.tensors:
            self._values.setdefault(name, f"an object of {len(value.tensors)} tensors")

    def _part(self, place: Range) -> Part:
        """Return a range of a file of the folder, once it is known to be there."""
        file = self._files[place.file]
        if place.begin + place.length > file.size:
            said = f"a piece ends at byte {place.begin + place.length}"
            raise CorruptFile(
                visible(str(file.path)), f"{said}, the file has {file.size}", hint=INCOMPLETE
            )
        return Part(file, place.begin, place.length)

    def _check(self, name: str, piece: Piece, opened: TorchSource) -> None:
        info = opened.tensors.get("tensor")
        whole = self.tensors[name]
        wanted = (*piece.sizes, *whole.shape[len(piece.sizes) :])
        if info is None or (info.dtype, info.shape) != (whole.dtype, wanted):
            found = f"{info.dtype} {list(info.shape)}" if info else "no tensor"
            said = f"a piece of '{for_terminal(name)}' is {found}"
            raise CorruptFile(self._where, f"{said}, {whole.dtype} {list(wanted)} is wanted")


def _layout(whole: Whole, width: int) -> Layout:
    """Count a tensor and its pieces in bytes, along the last axis."""
    shape = _widened(whole.shape, width)
    steps = _steps(shape)
    boxes = []
    for piece in whole.pieces:
        sizes = _widened(piece.sizes, width)
        begin = tuple(
            offset * (width if at == len(piece.offsets) - 1 else 1)
            for at, offset in enumerate(piece.offsets)
        ) or (0,)
        cut = max((at for at in range(len(shape)) if sizes[at] != shape[at]), default=0)
        boxes.append(Box(begin, sizes, _steps(sizes), cut, piece))
    boxes.sort(key=lambda box: _flat(box.begin, steps))
    starts = [_flat(box.begin, steps) for box in boxes]
    return Layout(shape, steps, starts, boxes)


def _widened(shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    return (*shape[:-1], shape[-1] * width) if shape else (width,)


def _steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(1, prod(shape[at + 1 :])) for at in range(len(shape)))


def _flat(index: tuple[int, ...], steps: tuple[int, ...]) -> int:
    return sum(i * step for i, step in zip(index, steps, strict=True))
