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
from typing import Any, NamedTuple

from difflens.core.addresses import Location
from difflens.core.dtypes import BITS
from difflens.core.errors import INCOMPLETE, CorruptFile, DifflensError, LimitExceeded
from difflens.core.escape import for_terminal, visible
from difflens.core.limits import LARGEST
from difflens.core.once import make_once
from difflens.core.protocols import ModelFile
from difflens.core.records import TensorInfo

from .. import strict_json
from ..containers.encodings import EncodedSource, Straight
from ..containers.inner_files import Unpacked
from ..hdf5.client import Child
from ..refusals import looks_like
from . import source

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MATLAB = b"MATLAB 7.3 MAT-file"
_USER_BLOCKS = (512, 1024, 2048)
_MOST_HELD = 512 << 20
_LONGEST_TEXT, _NAMED = 1 << 16, 10


def recognise(head: bytes, _path: Location) -> bool:
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
    child="difflens.models.hdf5.hdf5_child",
)
def hdf5(file: ModelFile) -> Hdf5:
    """HDF5: Keras .h5 and .weights.h5, MATLAB 7.3, any numeric datasets."""
    return Hdf5(file)


class ChildValues(NamedTuple):
    """The encoding of a tensor that HDF5's library reads, in the child process."""

    child: Child
    number: int

    def __reduce__(self) -> tuple[Any, ...]:
        """Ask another child in another process."""
        return _values_in, (self.child.file, self.number)

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Have the child read the values."""
        return self.child.read_into(self.number, start, start + len(buffer), buffer)


def _values_in(file: ModelFile, number: int) -> ChildValues:
    return ChildValues(make_once(Hdf5, file).child, number)


class Hdf5(EncodedSource):
    """An open HDF5 file."""

    def __init__(self, file: ModelFile, form: str = "hdf5") -> None:
        """Have the child list the datasets; it lives on only if a tensor needs it."""
        super().__init__(file, form)
        self._where = visible(str(file.path))
        self._is_unpacked = isinstance(file, Unpacked)
        _check_ends(file, self._where, held=self._is_unpacked)
        self._metadata: dict[str, str] = {}
        self.metadata = self._metadata
        matlab = file.size >= 512 and file.read(0, len(_MATLAB)) == _MATLAB
        self.child = Child(file, held=self._is_unpacked, matlab=matlab)
        try:
            self._list_datasets()
        except BaseException:
            self.child.close()
            raise
        if not any(isinstance(each, ChildValues) for each in self.encodings.values()):
            self.child.close()

    def close(self) -> None:
        """End the child and close the files."""
        self.child.close()
        super().close()

    def _list_datasets(self) -> None:
        """Add the datasets that the child lists, checked against what a sound file could hold."""
        paths: dict[str, str] = {}
        ranges: list[tuple[int, int, str]] = []
        for part in self.child.listing():
            for entry in part.get("datasets", ()):
                name = self._named(entry["path"])
                paths[entry["path"]] = name
                ranges.extend(self._add_dataset(name, entry, len(self.tensors)))
            for path, first in part.get("aliases", ()):
                if first in paths:
                    self._add_alias(self._named(path), paths[first])
            if "end" in part:
                self._add_remarks(part)
        _check_overlap(ranges, self._where)

    def _named(self, path: str) -> str:
        """Return a dataset's name: its path with dots; slashes where that name is taken."""
        path = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        name = path.removeprefix("model_weights/").replace("/", ".")
        if name in self.tensors:
            name = path
        if name in self.tensors:
            raise CorruptFile(self._where, f"two datasets are called '{for_terminal(name)}'")
        return name

    def _add_dataset(
        self, name: str, entry: dict[str, Any], number: int
    ) -> list[tuple[int, int, str]]:
        """Add one dataset; return its range in the file if it lies in one piece."""
        dtype, shape, offset = entry["dtype"], tuple(entry["shape"]), entry["offset"]
        about, rank = f"tensor '{for_terminal(name)}'", self.file.limit("rank")
        if len(shape) > rank:
            raise LimitExceeded(self._where, f"{about} has rank {len(shape)}, the limit is {rank}")
        numbers = (*shape, offset or 0)
        if dtype not in BITS or not all(type(n) is int and 0 <= n <= LARGEST for n in numbers):
            raise CorruptFile(
                self._where, f"{about}: the HDF5 process gave no dtype or shape of it"
            )
        info = TensorInfo(name, dtype, shape, entry["stored"])
        size = info.size_bytes
        if offset is not None and offset + size > self.file.size:
            reason = f"{about} ends at byte {offset + size}, the file has {self.file.size}"
            raise CorruptFile(self._where, reason, hint=INCOMPLETE)
        if entry["direct"] and offset is not None and not self._is_unpacked:
            self.add(info, Straight(self.file, offset))
        else:
            self.add(info, ChildValues(self.child, number))
        return [(offset, offset + size, name)] if offset is not None and size else []

    def _add_alias(self, name: str, first: str) -> None:
        info = self.tensors[first]
        alias = TensorInfo(name, info.dtype, info.shape, info.stored)
        self.add(alias, self.encodings[first])
        self.aliases[name] = first

    def _add_remarks(self, end: dict[str, Any]) -> None:
        """Store what the file says of itself, and name what was left out."""
        for key, (text, length) in end["metadata"].items():
            self._metadata[key] = shortened(text, length)
        count = end["left_out_count"]
        if count:
            named = [f"'{for_terminal(path)}' ({why})" for path, why in end["left_out"][:_NAMED]]
            more = f" and {count - len(named)} more" if count > len(named) else ""
            self.warnings.append(f"left out: {', '.join(named)}{more}")
        config, length = end["metadata"].get("model_config", ("", 0))
        self.refused = list_code_layers(config, length, self.warnings) if config else []


def shortened(text: str, length: int) -> str:
    """Cut a very long text, and say by its length and hash which one it was."""
    if length <= _LONGEST_TEXT:
        return text
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{text[:_LONGEST_TEXT]}…(+{length - _LONGEST_TEXT} characters, sha256 {mark})"


def _check_ends(file: ModelFile, where: str, *, held: bool) -> None:
    """Refuse a file that is shorter or longer than its superblock says."""
    if held and file.size > _MOST_HELD:
        reason = f"packed HDF5 of {file.size} bytes, at most {_MOST_HELD} are unpacked in memory"
        raise LimitExceeded(where, reason, hint="unpack it first")
    head = file.read(0, min(4096, file.size))
    place = next((at for at in (0, *_USER_BLOCKS) if head.startswith(SIGNATURE, at)), None)
    if place is None or len(head) < place + 64:
        what = "no HDF5 signature at byte 0, 512, 1024 or 2048" if place is None else "too short"
        raise CorruptFile(where, f"{what}: the file has {file.size} bytes", hint=INCOMPLETE)
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
        raise CorruptFile(where, reason, hint=INCOMPLETE)
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


# A Keras config is text. Layers that would run code or open files are named, never made or run.

LARGEST_CONFIG = 1 << 20  # bytes of a config that are looked through
_DEEPEST = 256
_CODE = {"Lambda", "__lambda__"}
_FOLDERS = {"TFSMLayer"}
_LOOKUPS = {"StringLookup", "IntegerLookup", "TextVectorization"}


def list_code_layers(text: str, length: int, warnings: list[str]) -> list[str]:
    """Name the layers that would run code or open files, each kind once.

    `length` is that of the complete config, of which `text` may be the beginning.
    """
    if length >= LARGEST_CONFIG:
        warnings.append("the Keras config is too long to look through for code")
        return []
    try:
        data = text.encode("utf-8", "surrogatepass")
        config = strict_json.parse(data, "the Keras config", depth=_DEEPEST, floats=True)
    except DifflensError as error:
        warnings.append(f"the Keras config was not looked through for code: {error.reason}")
        return []
    kinds: dict[str, None] = {}
    stack = [config]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            kind = _danger_of(node)
            if kind:
                kinds[kind] = None
        stack.extend(node.values() if isinstance(node, dict) else node)
        stack = [each for each in stack if isinstance(each, dict | list)]
    return sorted(kinds)


def _danger_of(node: dict[str, Any]) -> str | None:
    """Say what this part of a config would do."""
    name, config = node.get("class_name"), node.get("config")
    if not isinstance(name, str):
        return None
    if name in _CODE:
        return "Lambda layer with code"
    if name in _FOLDERS:
        return f"{name} with a folder of code"
    if name in _LOOKUPS and isinstance(config, dict) and isinstance(config.get("vocabulary"), str):
        return f"{name} with a vocabulary file"
    return None
