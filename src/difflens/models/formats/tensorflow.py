"""TensorFlow checkpoints: an index, and shards of raw bytes beside it.

    PREFIX.index                 a sorted table (containers/sstable.py)
        ""                       BundleHeaderProto: 1 num_shards  2 endianness, 1 is big
        name                     BundleEntryProto: 1 dtype  2 shape  3 shard_id  4 offset  5 size
                                 6 crc32c, masked  7 slices, where the values are under other keys
    PREFIX.data-00000-of-00001   the values, wherever the index says

Names are the keys. Keys of an object graph lose the ending all of them have; they are not
replaced by the variables' own names, which count up in a process and differ between two runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from difflens.core.addresses import Location
from difflens.core.crc32c import crc32c, masked
from difflens.core.errors import INCOMPLETE, CorruptFile, UnreadableFile
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import ModelFile
from difflens.core.records import TensorInfo

from ..containers.encodings import EncodedSource, Encoding, Inline, Straight, Swapped
from ..containers.inner_files import BytesPart
from ..containers.protobuf import BYTES, FIXED32, VARINT, Field, Wire, signed, varint
from ..containers.sstable import Table
from ..folders.listing import listed, neighbour
from ..tensorflow.tensors import (
    TYPES,
    Find,
    Misfit,
    Type,
    seen_shape,
    shape_of,
    size_of,
    stacked,
    type_name,
)
from . import source

ENDING = "/.ATTRIBUTES/VARIABLE_VALUE"
_KEPT_FOR_TENSORFLOW = ("_CHECKPOINTABLE_OBJECT_GRAPH",)
_CONFIGURATION = "/.ATTRIBUTES/OBJECT_CONFIG_JSON"
_MOST_SHARDS = 100_000
_PIECE = 8 << 20


def recognise(head: bytes, path: Location) -> bool:
    """Do these bytes begin with the first entry of a checkpoint's index, its header?"""
    del path
    size, at = varint(head, 0)
    if size and at > 0 and len(head) > at and not head[at] & 3:  # packed: a literal comes first
        head = head[at + 1 + max(0, (head[at] >> 2) - 59) :]
    if head[:2] != b"\0\0" or len(head) < 3 or not 2 <= head[2] < 64:
        return False
    wanted, at = {1: VARINT, 2: VARINT, 3: BYTES}, 3
    seen: list[int] = []
    stop = 3 + head[2]
    while at < min(stop, len(head)):
        number, wire = head[at] >> 3, head[at] & 7
        value, at = varint(head, at + 1)
        if at < 0 or wanted.get(number) != wire or (seen and number <= seen[-1]):
            return False
        seen.append(number)
        at += value if wire == BYTES else 0
    return at == stop and seen[:1] == [1] and seen[-1:] == [3]


@source(recognise=recognise, suffixes=(".index",))
def tensorflow(file: ModelFile) -> Checkpoint:
    """TensorFlow checkpoints: PREFIX.index with its PREFIX.data-* shards."""
    return Checkpoint(file)


@dataclass
class Entry:
    """What the index says of one tensor."""

    dtype: int = 0
    shape: tuple[int, ...] | None = ()
    shard: int = 0
    offset: int = 0
    size: int = 0
    checksum: int | None = None
    slices: list[list[tuple[int, int]]] = field(default_factory=list)


class Checkpoint(EncodedSource):
    """An open checkpoint: the index was read, the shards are open."""

    def __init__(self, file: ModelFile) -> None:
        """Read the index, block by block, and check that the shards are large enough."""
        super().__init__(file, "tensorflow")
        self._where = visible(str(file.path))
        self._files: dict[int, ModelFile] = {}
        self._entries: dict[bytes, Entry] = {}
        try:
            self._shards, self._is_big = self._read_index()
            self._add_entries()
        except BaseException:
            self.close()
            raise

    def verify(self) -> None:
        """Read every tensor once and raise unless its checksum is the one the index keeps."""
        for key, entry in self._entries.items():
            if entry.checksum is None or entry.slices or entry.dtype not in TYPES:
                continue
            found, at, end = 0, entry.offset, entry.offset + entry.size
            while at < end:
                data = self._shard(entry.shard).read(at, min(at + _PIECE, end))
                found = crc32c(data, found)
                at += len(data)
            if masked(found) != entry.checksum:
                said = f"tensor '{_shown(key)}' has the checksum {masked(found):08x}"
                reason = f"{said}, {entry.checksum:08x} is kept"
                raise CorruptFile(self._where, reason, hint="the file is damaged: fetch it again")

    def _read_index(self) -> tuple[int, bool]:
        """Read every entry; the first one is the header."""
        shards, is_big = 0, False
        for key, value in Table(self.file).entries():
            wire = Wire(BytesPart(self.file, value))
            if key:
                self._entries[key] = _entry(wire)
                continue
            for each in wire.fields(0, len(value)):
                if each.number == 1:
                    shards = each.value
                elif each.number == 2:
                    is_big = each.value == 1
        if not 0 < shards <= _MOST_SHARDS:
            reason = f"its header names {shards} shards, 1 to {_MOST_SHARDS} are known"
            raise CorruptFile(self._where, reason)
        return shards, is_big

    def _add_entries(self) -> None:
        """Make a tensor of every entry that can be read; the others are named once."""
        unread: list[str] = []
        names = {key: key.decode("utf-8", "backslashreplace") for key in self._entries}
        plain = set(names.values())
        for key, entry in self._entries.items():
            name = names[key]
            if key[:1] == b"\0" or name in _KEPT_FOR_TENSORFLOW or name.endswith(_CONFIGURATION):
                continue  # a slice of another entry, or what is no value
            if name.endswith(ENDING) and name.removesuffix(ENDING) not in plain:
                name = name.removesuffix(ENDING)
            kind = TYPES.get(entry.dtype)
            values = self._encoding(key, entry, kind) if kind else None
            if kind is None or values is None:
                unread.append(f"{name} ({type_name(entry.dtype) if not kind else 'its slices'})")
                continue
            shape = seen_shape(entry.shape or (), kind)
            self.add(TensorInfo(name, kind.dtype, shape, kind.stored), values)
        if unread:
            self.warnings.append(f"not read, because of what they hold: {listed(unread)}")

    def _encoding(self, key: bytes, entry: Entry, kind: Type) -> Encoding | None:
        """Return the way a tensor's bytes are kept; None if its slices lie in some odd way."""
        about = f"tensor '{_shown(key)}'"
        size = size_of(entry.shape, kind, about, self._where)
        if not entry.slices:
            return self._straight(entry, kind, size, about)
        try:
            find = self._slice(kind, about)
            return stacked(key, entry.slices, entry.shape or (), kind.width, find)
        except Misfit as error:
            raise CorruptFile(self._where, f"{about}: {error}") from error

    def _slice(self, kind: Type, about: str) -> Find:
        def slice_at(key: bytes, shape: tuple[int, ...]) -> Encoding:
            entry = self._entries.get(key)
            if entry is None or entry.shape != shape or TYPES.get(entry.dtype) != kind:
                raise CorruptFile(self._where, f"{about}: one of its slices is not in the index")
            return self._straight(entry, kind, size_of(shape, kind, about, self._where), about)

        return slice_at

    def _straight(self, entry: Entry, kind: Type, size: int, about: str) -> Encoding:
        if entry.size != size:
            said = f"{about}: {kind.stored or kind.dtype} {list(entry.shape or ())} takes {size}"
            raise CorruptFile(self._where, f"{said} bytes, the index says {entry.size}")
        if not size:
            return Inline(b"")
        file = self._shard(entry.shard)
        if entry.offset < 0 or entry.offset + size > file.size:
            said = f"{about} ends at byte {entry.offset + size} of '{for_terminal(file.path.name)}'"
            raise CorruptFile(self._where, f"{said}, which has {file.size}", hint=INCOMPLETE)
        stored = Straight(file, entry.offset)
        width = {"C64": 4}.get(kind.dtype, min(kind.width, 8))
        return Swapped(stored, width) if self._is_big and width > 1 else stored

    def _shard(self, number: int) -> ModelFile:
        if number not in self._files:
            if not 0 <= number < self._shards:
                reason = f"a tensor is in shard {number}, there are {self._shards}"
                raise CorruptFile(self._where, reason)
            prefix = self.file.path.name.removesuffix(".index")
            name = f"{prefix}.data-{number:05d}-of-{self._shards:05d}"
            try:
                self._files[number] = neighbour(self.file, name)
            except UnreadableFile as error:
                reason = f"shard '{for_terminal(name)}' cannot be read: {error.reason}"
                raise CorruptFile(
                    self._where, reason, hint="it belongs beside the index"
                ) from error
            self.opened.append(self._files[number])
        return self._files[number]


def _entry(wire: Wire) -> Entry:
    """Read a BundleEntryProto."""
    entry = Entry()
    numbers = {1: "dtype", 3: "shard", 4: "offset", 5: "size"}
    for each in wire.fields(0, wire.file.size):
        if each.number in numbers:
            wire.want(each, VARINT)
            setattr(entry, numbers[each.number], signed(each.value))
        elif each.number == 2:
            entry.shape = shape_of(wire, each)
        elif each.number == 6:
            wire.want(each, FIXED32)
            entry.checksum = each.value
        elif each.number == 7:
            entry.slices.append(_extents(wire, each))
    return entry


def _extents(wire: Wire, found: Field) -> list[tuple[int, int]]:
    """Read a TensorSliceProto: start and length along each axis, length -1 for all of it."""
    wire.want(found, BYTES)
    extents = []
    for each in wire.fields(found.start, found.stop):
        wire.want(each, BYTES)
        start, length = 0, -1
        for part in wire.fields(each.start, each.stop):
            if part.number == 1:
                start = signed(part.value)
            elif part.number == 2:
                length = signed(part.value)
        extents.append((start, length))
    return extents


def _shown(key: bytes) -> str:
    return for_terminal(key.decode("utf-8", "backslashreplace"))
