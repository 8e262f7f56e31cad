"""Distributed checkpoints of torch: a folder with a pickle about the tensors, and their pieces.

    .metadata           a pickle: for each tensor its dtype, size and pieces (offsets, sizes);
                        for each piece its file, and the range in it
    __0_0.distcp ...    pieces one after another, each a file of torch.save

A tensor is put together from its pieces as it is read; a piece is opened when it is first needed.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import NamedTuple

from ..dtypes import BITS
from ..errors import CorruptFile, UnknownName
from ..escape import for_terminal, visible
from ..protocols import ModelFile
from ..records import TensorInfo
from . import source
from .containers.part import Part
from .files import File
from .limits import DEFAULTS
from .pytorch import Archive
from .torch_dtypes import ENCODINGS
from .torch_names import refusal_warning
from .torch_pieces import Piece, Range, Whole, read_metadata
from .torch_source import TorchSource

METADATA = ".metadata"

_MARK = b"torch.distributed.checkpoint.metadata"
_LARGEST_VALUE = 1 << 16
_MOST_VALUES = 1000


def recognise(head: bytes, _path: Path) -> bool:
    """Is this the pickle about a distributed checkpoint?"""
    return head[:1] == b"\x80" and _MARK in head[:80]


@source(recognise=recognise)
def dcp(file: ModelFile) -> Checkpoint:
    """Distributed checkpoints of torch (DCP): a folder of .metadata and .distcp files."""
    return Checkpoint(file)


def open_dcp(folder: Path, limits: Mapping[str, int] | None = None) -> Checkpoint:
    """Open the distributed checkpoint a folder holds."""
    file = File(folder / METADATA, limits)
    try:
        return Checkpoint(file)
    except BaseException:
        file.close()
        raise


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
    size: int


class Checkpoint:
    """An open distributed checkpoint."""

    format = "dcp"

    def __init__(self, file: ModelFile) -> None:
        """Read `.metadata`; opens the files beside it, and no piece in them."""
        self._file = file
        self._where = visible(str(file.path))
        self._files: dict[str, File] = {}
        self._checked: set[tuple[str, Piece]] = set()
        self._opened: dict[Range, TorchSource] = {}
        self._lock = threading.Lock()
        self._layouts: dict[str, Layout] = {}
        self.tensors: dict[str, TensorInfo] = {}
        self.metadata: dict[str, str] = {}
        self.warnings: list[str] = []
        try:
            about = read_metadata(file)
            self.refused = about.refused
            for name, whole in about.tensors.items():
                self._take(name, whole)
            for name, place in about.values.items():
                self._take_value(name, place)
        except BaseException:
            self._close_files()
            raise
        self.refused = sorted(set(self.refused))
        self.warnings += refusal_warning(self.refused)

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and say how many."""
        try:
            layout = self._layouts[name]
        except KeyError:
            raise UnknownName("tensor", name, self.tensors) from None
        if not 0 <= start <= stop <= layout.size or stop - start > len(buffer):
            wanted = f"[{start}, {stop}) of {layout.size} bytes into a buffer of {len(buffer)}"
            raise ValueError(f"tensor {name!r}: cannot read {wanted}")
        done = start
        while done < stop:
            box, place, run = self._run(name, layout, done)
            length = min(run, stop - done)
            piece = self._piece(name, box.piece)
            view = buffer[done - start : done - start + length]
            piece.read_into("tensor", place, place + length, view)
            done += length
        return stop - start

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if a file is not the one that was opened."""
        self._file.confirm()
        for file in self._files.values():
            file.confirm()

    def close(self) -> None:
        """Give the descriptors back."""
        for piece in self._opened.values():
            piece.close()
        self._close_files()
        self._file.close()

    def _close_files(self) -> None:
        for file in self._files.values():
            file.close()

    def _take(self, name: str, whole: Whole) -> None:
        """Plan how a tensor will be put together."""
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
        self.tensors[name] = TensorInfo(name, encoding.dtype, shape, encoding.stored)
        self._layouts[name] = _layout(whole, wide * BITS[encoding.dtype] // 8)

    def _take_value(self, name: str, place: Range) -> None:
        """Show a value that is no tensor: objects of a few bytes, each a pickle of its own."""
        part = self._part(place)
        small = place.length <= _LARGEST_VALUE and len(self.metadata) < _MOST_VALUES
        if not small or place.packed:
            self.metadata[name] = f"{place.length} bytes"
            return
        value = Archive(part).open(self.format)
        self.refused += value.refused
        for key, text in value.metadata.items():
            self.metadata[name if key == "value" else f"{name}.{key}"] = text
        if value.tensors:
            self.metadata.setdefault(name, f"an object of {len(value.tensors)} tensors")

    def _part(self, place: Range) -> Part:
        """Give a range of a file of the folder, once it is known to be there."""
        if place.file not in self._files:
            self._files[place.file] = File(
                self._file.path.parent / place.file,
                {name: self._file.limit(name) for name in DEFAULTS},
            )
        file = self._files[place.file]
        if place.begin + place.length > file.size:
            said = f"a piece ends at byte {place.begin + place.length}"
            hint = "the download may be incomplete"
            raise CorruptFile(
                visible(str(file.path)), f"{said}, the file has {file.size}", hint=hint
            )
        return Part(file, place.begin, place.length)

    def _run(self, name: str, layout: Layout, place: int) -> tuple[Box, int, int]:
        """Find the piece that holds a byte, where in it, and how many follow there."""
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
        raise CorruptFile(self._where, f"no piece of '{for_terminal(name)}' holds byte {place}")

    def _piece(self, name: str, piece: Piece) -> TorchSource:
        """Open a piece, once, and hold it to what the metadata says of it."""
        with self._lock:
            opened = self._opened.get(piece.range)
            if opened is None:
                opened = Archive(self._part(piece.range)).open(self.format)
                self._opened[piece.range] = opened
            if (name, piece) not in self._checked:  # two pieces may claim one range
                self._check(name, piece, opened)
                self._checked.add((name, piece))
        return opened

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
    return Layout(shape, steps, starts, boxes, prod(shape))


def _widened(shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    return (*shape[:-1], shape[-1] * width) if shape else (width,)


def _steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(1, prod(shape[at + 1 :])) for at in range(len(shape)))


def _flat(index: tuple[int, ...], steps: tuple[int, ...]) -> int:
    return sum(i * step for i, step in zip(index, steps, strict=True))
