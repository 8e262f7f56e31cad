"""HDF5: Keras `.h5` and `.weights.h5`, MATLAB 7.3 `.mat`, and any file of numeric datasets.

    byte 0 or 512, 1024, 2048 ...   signature, superblock: where the data end, where the root is
    anywhere                        groups: names and the addresses of their objects
                                    datasets: type, shape, where the values are
                                    values: in one piece, or in chunks that may be packed

What is in one piece is read here; HDF5's library reads the rest, in a process of its own, because
a damaged file may crash it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..dtypes import BITS
from ..errors import CorruptFile, LimitExceeded, UnknownName
from ..escape import for_terminal, visible
from ..protocols import ModelFile
from ..records import TensorInfo
from . import source
from .containers.stream import Unpacked
from .hdf5_client import Child
from .keras_config import look_through
from .refusals import looks_like
from .strict_json import LARGEST

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MATLAB = b"MATLAB 7.3 MAT-file"
_USER_BLOCKS = (512, 1024, 2048)
_MOST_HELD = 512 << 20
_LONGEST_TEXT, _NAMED = 1 << 16, 10
_CUT = "the download may be incomplete"


def recognise(head: bytes, _path: Path) -> bool:
    """Is the signature at the start, or behind a user block that is nothing else?"""
    if head.startswith(SIGNATURE):
        return True
    if not any(head.startswith(SIGNATURE, place) for place in _USER_BLOCKS):
        return False
    # A tar or a zip may hold an HDF5 file just there, and so may the data of a safetensors.
    block = looks_like(head[:256])
    other = looks_like(head) == "a tar archive" or head[4:9] == b"\0\0\0\0{"
    return block in (None, "text", "JSON text") and not other


@source(
    recognise=recognise,
    suffixes=(".h5", ".hdf5", ".weights.h5", ".mat"),
    child="difflens.sources.hdf5_child",
)
def hdf5(file: ModelFile) -> Hdf5:
    """HDF5: Keras .h5 and .weights.h5, MATLAB 7.3, any numeric datasets."""
    return Hdf5(file)


class _Place(NamedTuple):
    """Where a tensor's bytes are: in the file, or for the child to give."""

    number: int
    offset: int | None
    size: int


class Hdf5:
    """An open HDF5 file."""

    format = "hdf5"

    def __init__(self, file: ModelFile) -> None:
        """Have the child list the datasets; it lives on only if a tensor needs it."""
        self._file, self._where = file, visible(str(file.path))
        self._held = isinstance(file, Unpacked)
        _check_ends(file, self._where, self._held)
        self.warnings: list[str] = []
        self.aliases: dict[str, str] = {}
        self.metadata: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self._places: dict[str, _Place] = {}
        self._tensors: dict[str, TensorInfo] = {}
        self.tensors: Mapping[str, TensorInfo] = self._tensors
        matlab = file.size >= 512 and file.read(0, len(_MATLAB)) == _MATLAB
        self._child = Child(file, held=self._held, matlab=matlab)
        try:
            self._take_all()
        except BaseException:
            self._child.close()
            raise
        if all(place.offset is not None for place in self._places.values()):
            self._child.close()

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and say how many."""
        try:
            place = self._places[name]
        except KeyError:
            raise UnknownName("tensor", name, self.tensors) from None
        if not 0 <= start <= stop <= place.size or stop - start > len(buffer):
            wanted = f"[{start}, {stop}) of {place.size} bytes into a buffer of {len(buffer)}"
            raise ValueError(f"tensor {name!r}: cannot read {wanted}")
        if place.offset is not None:
            return self._file.read_into(place.offset + start, buffer[: stop - start])
        return self._child.read_into(place.number, start, stop, buffer)

    def place(self, name: str) -> tuple[ModelFile, int] | None:
        """Say in which file a tensor lies, and at which byte; None where the child must give it."""
        offset = self._places[name].offset
        return None if offset is None else (self._file, offset)

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the file is not the one that was opened."""
        self._file.confirm()

    def close(self) -> None:
        """End the child, give the descriptor back."""
        self._child.close()
        self._file.close()

    def _take_all(self) -> None:
        """Take what the child says; it is held to what a sound file could hold."""
        paths: dict[str, str] = {}
        ranges: list[tuple[int, int, str]] = []
        for said in self._child.listing():
            for entry in said.get("datasets", ()):
                name = self._named(entry["path"])
                paths[entry["path"]] = name
                ranges.extend(self._take(name, entry, len(self._places)))
            for path, first in said.get("aliases", ()):
                if first in paths:
                    self._add_alias(self._named(path), paths[first])
            if "end" in said:
                self._note(said)
        _check_overlap(ranges, self._where)

    def _named(self, path: str) -> str:
        """Give a dataset's name: its path with dots; slashes where that name is taken."""
        path = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        name = path.removeprefix("model_weights/").replace("/", ".")
        if name in self._tensors:
            name = path
        if name in self._tensors:
            raise CorruptFile(self._where, f"two datasets are called '{for_terminal(name)}'")
        return name

    def _take(self, name: str, entry: dict[str, Any], number: int) -> list[tuple[int, int, str]]:
        """Take one dataset; give its range in the file where it lies in one piece."""
        dtype, shape, offset = entry["dtype"], tuple(entry["shape"]), entry["offset"]
        about, rank = f"tensor '{for_terminal(name)}'", self._file.limit("rank")
        if len(shape) > rank:
            raise LimitExceeded(self._where, f"{about} has rank {len(shape)}, the limit is {rank}")
        numbers = (*shape, offset or 0)
        if dtype not in BITS or not all(type(n) is int and 0 <= n <= LARGEST for n in numbers):
            raise CorruptFile(
                self._where, f"{about}: the HDF5 process gave no dtype or shape of it"
            )
        info = TensorInfo(name, dtype, shape, entry["stored"])
        size = info.size_bytes
        if offset is not None and offset + size > self._file.size:
            reason = f"{about} ends at byte {offset + size}, the file has {self._file.size}"
            raise CorruptFile(self._where, reason, hint=_CUT)
        self._tensors[name] = info
        direct = entry["direct"] and offset is not None and not self._held
        self._places[name] = _Place(number, offset if direct else None, size)
        return [(offset, offset + size, name)] if offset is not None and size else []

    def _add_alias(self, name: str, first: str) -> None:
        info = self._tensors[first]
        self._tensors[name] = TensorInfo(name, info.dtype, info.shape, info.stored)
        self._places[name] = self._places[first]
        self.aliases[name] = first

    def _note(self, said: dict[str, Any]) -> None:
        """Keep what the file says of itself, and name what was left out."""
        for key, (text, length) in said["metadata"].items():
            self.texts[key] = text
            self.metadata[key] = shortened(text, length)
        count = said["left_out_count"]
        if count:
            named = [f"'{for_terminal(path)}' ({why})" for path, why in said["left_out"][:_NAMED]]
            more = f" and {count - len(named)} more" if count > len(named) else ""
            self.warnings.append(f"left out: {', '.join(named)}{more}")
        config = self.texts.get("model_config")
        self.refused = look_through(config, self.warnings) if config else []


def shortened(text: str, length: int) -> str:
    """Cut a very long text, and say by its length and hash which one it was."""
    if length <= _LONGEST_TEXT:
        return text
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{text[:_LONGEST_TEXT]}…(+{length - _LONGEST_TEXT} characters, sha256 {mark})"


def _check_ends(file: ModelFile, where: str, held: bool) -> None:
    """Refuse a file that is shorter or longer than its superblock says."""
    if held and file.size > _MOST_HELD:
        reason = f"packed HDF5 of {file.size} bytes, at most {_MOST_HELD} are unpacked in memory"
        raise LimitExceeded(where, reason, hint="unpack it first")
    head = file.read(0, min(4096, file.size))
    place = next((at for at in (0, *_USER_BLOCKS) if head.startswith(SIGNATURE, at)), None)
    if place is None or len(head) < place + 64:
        what = "no HDF5 signature at byte 0, 512, 1024 or 2048" if place is None else "too short"
        raise CorruptFile(where, f"{what}: the file has {file.size} bytes", hint=_CUT)
    version = head[place + 8]
    width = head[place + (13 if version < 2 else 9)]
    if version > 3 or width not in (2, 4, 8):
        reason = f"superblock of version {version} with addresses of {width} bytes"
        raise CorruptFile(where, f"{reason}, at most 3 and 8 are known")
    first = place + (24, 28, 12, 12)[version]
    base, end = (
        int.from_bytes(head[at : at + width], "little") for at in (first, first + 2 * width)
    )
    end += place - base  # a user block put before a finished file moves it
    if end > file.size:
        reason = f"the file ends at byte {file.size}, its superblock says {end}"
        raise CorruptFile(where, reason, hint=_CUT)
    if end < file.size:
        reason = f"trailing bytes: its superblock says it ends at byte {end}, it has {file.size}"
        raise CorruptFile(where, reason)


def _check_overlap(ranges: list[tuple[int, int, str]], where: str) -> None:
    """Refuse datasets that share bytes: HDF5 never writes them, and reading them never ends."""
    end, before = 0, ""
    for begin, stop, name in sorted(ranges):
        if begin < end:
            both = f"'{for_terminal(before)}' and '{for_terminal(name)}'"
            raise CorruptFile(where, f"tensors {both} overlap at byte {begin}")
        end, before = stop, name
