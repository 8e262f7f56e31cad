"""Hybrids as files: a scratch copy of the bad model, in which only what differs is rewritten.

    SCRATCH/0/model.safetensors        one copy for each check that runs at the same time
    SCRATCH/1/tuned/config.json -> ... what does not change is a symbolic link
    SCRATCH/1/tuned/model-00002...     a shard with changes is a copy of its own

A hybrid in another layout than that of the bad model (tensors added, removed, recast; a format
that is not safetensors) is written anew as one safetensors file.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from difflens.core.encodings import encoding_of
from difflens.core.errors import OutputError
from difflens.core.records import TensorInfo
from difflens.models.folders.listing import describe_folder_files, model_folder
from difflens.models.formats.safetensors import Safetensors

from .hybrids import Hybrid, Models
from .pieces import NOTHING, Piece, Selection

_Stamp = tuple[int, int, int]
_MARK = ".difflens-blame"  # a file in a folder that may be emptied


class Files:
    """Makes hybrids as files below a folder, which it owns."""

    def __init__(self, models: Models, good: Path, bad: Path, folder: Path, jobs: int) -> None:
        """Write nothing yet; the folder may be left over from a run that was killed."""
        self._models, self._good, self._bad, self._folder = models, good, bad, folder
        self._places = _places(models)
        plain = (each.is_plain for each in models.changes.values() if not each.is_file)
        self.in_place = bool(self._places) and all(plain)
        self._everything = frozenset(Piece(name) for name in models.changes)
        self._free: list[_Slot] = []
        self._lock = threading.Semaphore(jobs)
        self._numbers = count()
        _claim(folder)

    @contextmanager
    def hybrid(self, selection: Selection, *, fresh: bool) -> Iterator[Hybrid]:
        """Yield the path of a hybrid; of the two models themselves, their own paths."""
        if self.in_place and selection in (NOTHING, self._everything):
            yield Hybrid(str(self._good if selection else self._bad), is_fresh=True)
            return
        with self._lock:
            is_new = fresh or not self._free
            slot = self._new_slot() if is_new else self._free.pop()
            try:
                with _as_output(slot.path):
                    slot.change_to(selection)
                yield Hybrid(str(slot.path), is_new)
                intact = slot.is_intact()
            except BaseException:
                slot.remove()
                raise
            if fresh or not intact:
                slot.remove()
            else:
                self._free.append(slot)

    def close(self) -> None:
        """Remove all hybrids."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _new_slot(self) -> _Slot:
        folder = self._folder / str(next(self._numbers))
        return _Slot(self._models, self._bad, folder, self._places if self.in_place else None)


def _claim(folder: Path) -> None:
    """Make an empty folder; one that a killed run left is emptied, any other is refused."""
    if folder.exists() and not (folder / _MARK).exists():
        raise OutputError("it exists, and hybrids would be written there", where=str(folder))
    shutil.rmtree(folder, ignore_errors=True)
    with _as_output(folder):
        folder.mkdir(parents=True)
        (folder / _MARK).touch()


Places = dict[str, tuple[Path, int]]


def _places(models: Models) -> Places:
    """Find the file and the offset of each tensor that differs; none unless all have one."""
    shards = getattr(models.bad, "shards", {"": models.bad})
    if not all(isinstance(each, Safetensors) for each in shards.values()):
        return {}
    places: Places = {}
    for change in models.changes.values():
        if change.is_plain and change.bad:
            encoding: Any = encoding_of(models.bad, change.bad.name)
            file, offset = encoding.place()
            places[change.name] = (Path(file.path), offset)
    return places


class _Slot:
    """One scratch copy, and which pieces of the good model it holds now."""

    def __init__(self, models: Models, bad: Path, folder: Path, places: Places | None) -> None:
        self._models, self._places, self._folder = models, places, folder
        name = bad.name if places is not None or bad.is_dir() else f"{bad.stem}.safetensors"
        self.path = folder / name
        self._held: dict[str, Piece] = {}
        self._stamps: dict[Path, _Stamp] = {}
        with _as_output(folder):
            root = self.path if bad.is_dir() else folder
            root.mkdir(parents=True)
            self._root = root
            self._link(model_folder(bad) if bad.is_dir() else bad.parent, bad)

    def _link(self, source: Path, bad: Path) -> None:
        """Link what does not change, copy the files that will be edited."""
        homes = {path.name: path for path, _ in (self._places or {}).values()}
        if not bad.is_dir():
            names = [*describe_folder_files(source), *homes]
        elif self._places is None:
            names = list(describe_folder_files(source))
        else:
            names = os.listdir(source)  # noqa: PTH208  names alone
        for name in names:
            target = self._root / name
            if name in homes:
                shutil.copyfile(homes[name], target)
                self._stamps[target] = _stamp(target)
            else:
                target.symlink_to((source / name).resolve())

    def change_to(self, selection: Selection) -> None:
        """Rewrite what the selection puts back or takes out, and nothing else."""
        wanted = {piece.name: piece for piece in selection}
        differing = [
            name for name in self._models.changes if wanted.get(name) != self._held.get(name)
        ]
        for name in differing:
            if self._models.changes[name].is_file:
                self._relink(name, use_good=name in wanted)
        if self._places is None:
            self._write_all(selection, wanted)
        else:
            self._rewrite(differing, wanted)
        self._held = wanted

    def _relink(self, name: str, *, use_good: bool) -> None:
        change = self._models.changes[name]
        target = self._root / name.removeprefix("file ")
        target.unlink(missing_ok=True)
        path = change.files[0 if use_good else 1]
        if path is not None:
            target.symlink_to(path.resolve())

    def _rewrite(self, names: list[str], wanted: dict[str, Piece]) -> None:
        """Write tensors in place, into files that nobody else has a link to."""
        files: dict[Path, int] = {}
        try:
            for name in names:
                change = self._models.changes[name]
                if change.is_file or change.bad is None or self._places is None:
                    continue
                home, offset = self._places[name]
                target = self._root / home.name
                if target not in files:
                    files[target] = _opened_alone(target)
                for data in self._models.read(change, change.bad.name, wanted.get(name)):
                    _write(files[target], data, offset)
                    offset += len(data)
        finally:
            for number in files.values():
                os.close(number)
        for target in files:
            self._stamps[target] = _stamp(target)

    def _write_all(self, selection: Selection, wanted: dict[str, Piece]) -> None:
        """Write the whole hybrid as one safetensors file."""
        infos = self._models.infos(selection)
        by_name = {each.bad.name: each for each in self._models.changes.values() if each.bad}
        target = self.path if self._root == self._folder else self._root / "model.safetensors"
        target.unlink(missing_ok=True)
        header = _header(infos, dict(self._models.bad.metadata))
        with target.open("wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            for name in infos:
                change = by_name.get(name) or self._models.changes.get(name)
                piece = wanted.get(change.name) if change else None
                for data in self._models.read(change, name, piece):
                    file.write(data)
        self._stamps = {target: _stamp(target)}

    def is_intact(self) -> bool:
        """Are the files as they were written? A check may have changed them."""
        try:
            return all(_stamp(path) == stamp for path, stamp in self._stamps.items())
        except OSError:
            return False

    def remove(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _opened_alone(path: Path) -> int:
    """Open a file to be edited; where a check has linked it, a copy takes its place."""
    if path.stat().st_nlink > 1 or path.is_symlink():
        copy = path.with_name(f".{path.name}.copy")
        shutil.copyfile(path, copy)
        copy.replace(path)
    return os.open(path, os.O_RDWR)


def _write(file: int, data: memoryview, offset: int) -> None:
    while data:
        done = os.pwrite(file, data, offset)
        data, offset = data[done:], offset + done


def _stamp(path: Path) -> _Stamp:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _header(infos: dict[str, TensorInfo], metadata: dict[str, str]) -> bytes:
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    end = 0
    for name, info in infos.items():
        begin, end = end, end + info.size_bytes
        header[name] = {"dtype": info.dtype, "shape": info.shape, "data_offsets": [begin, end]}
    data = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return data + b" " * (-len(data) % 8)


@contextmanager
def _as_output(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError((error.strerror or str(error)).lower(), where=str(path)) from error
