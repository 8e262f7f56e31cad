"""GGUF, the format of llama.cpp, its quantised blocks decoded as they are read.

    byte 0   "GGUF", then the version, 1 to 3   numbers in the writer's byte order, little or big
    byte 8   how many tensors, how many keys    64 bits, in version 1 32, as all lengths below
             keys: name, type of the value (32 bits), value; an array is type, length, values
             tensors: name, rank (32 bits), dimensions fastest first, type (32 bits), offset (64)
             padding to a multiple of general.alignment, which is 32 where no key sets it
             the data: each tensor at its offset, padded

A model split into `name-00001-of-00003.gguf` and so on is opened by its first file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from math import prod

from difflens.core.addresses import Location
from difflens.core.errors import INCOMPLETE, CorruptFile
from difflens.core.escape import for_terminal, visible
from difflens.core.limits import LARGEST
from difflens.core.protocols import ModelFile, TensorSource
from difflens.core.records import TensorInfo

from ..containers.encodings import EncodedSource, Straight
from ..gguf.blocks import REFUSED, Blocks, BlockType, block_type
from ..gguf.header import Entry, Header, read_header
from . import source

_ALIGNMENT = 32
_LEAST_ALIGNMENT, _MOST_ALIGNMENT = 8, 1 << 30
_PART = re.compile(r"(.*)-([0-9]{5})-of-([0-9]{5})\.gguf", re.DOTALL)
_SPLIT = ("split.no", "split.count", "split.tensors.count")


def recognise(head: bytes, path: Location) -> bool:
    """Are these the first bytes of a GGUF file?"""
    del path
    return head.startswith(b"GGUF")


@source(recognise=recognise, suffixes=(".gguf",))
def gguf(file: ModelFile) -> TensorSource:
    """GGUF 1 to 3: llama.cpp's models; quantised blocks are decoded."""
    first = Gguf(file)
    return _together(first, file) if first.integer("split.count") > 1 else first


class Gguf(EncodedSource):
    """An open GGUF file."""

    def __init__(self, file: ModelFile) -> None:
        """Read and check the header; touch no tensor."""
        super().__init__(file, "gguf")
        self._where = visible(str(file.path))
        header = read_header(file)
        self._integers = header.integers
        self.metadata = header.metadata
        self._check_places(header.end, self._add_tensors(header))

    def integer(self, key: str) -> int:
        """Return the whole number a key holds, 0 if it holds none."""
        return self._integers.get(key, ("", 0))[1]

    def _alignment(self) -> int:
        if "general.alignment" not in self.metadata:
            return _ALIGNMENT
        kind, alignment = self._integers.get("general.alignment", ("no whole number", 0))
        if kind != "uint32":
            raise CorruptFile(self._where, f"general.alignment is {kind}, uint32 is wanted")
        if not _LEAST_ALIGNMENT <= alignment <= _MOST_ALIGNMENT or alignment & (alignment - 1):
            said = f"general.alignment is {alignment}, a power of two"
            raise CorruptFile(
                self._where, f"{said} from {_LEAST_ALIGNMENT} to {_MOST_ALIGNMENT} is wanted"
            )
        return alignment

    def _add_tensors(self, header: Header) -> list[tuple[int, int, str]]:
        """Check every entry by itself; return where each tensor begins and ends in the file."""
        alignment = self._alignment()
        data = _padded(header.end, alignment)
        places: list[tuple[int, int, str]] = []
        opaque: dict[str, list[str]] = {}
        for entry in header.entries:
            about = f"tensor '{for_terminal(entry.name, 80)}'"
            stored = block_type(entry.kind, big_endian=header.big_endian)
            fault = (
                "stands twice" if entry.name in self.tensors else _fault(entry, stored, alignment)
            )
            if fault or not stored:
                raise CorruptFile(self._where, f"{about} {fault}")
            info, size = _info(entry, stored)
            begin = data + entry.offset
            if begin + size > self.file.size and size:
                reason = f"{about} ends at byte {begin + size}, the file has {self.file.size}"
                raise CorruptFile(self._where, reason, hint=INCOMPLETE)
            blocks = Blocks(self.file, begin, entry.kind, header.big_endian)
            self.add(info, blocks if stored.decode else Straight(self.file, begin))
            places.append((begin, begin + size, entry.name))
            if stored.is_opaque:
                opaque.setdefault(stored.name, []).append(entry.name)
        order = "a big-endian file's " if header.big_endian else ""
        self.warnings += [_opaque(f"{order}{kind}", names) for kind, names in opaque.items()]
        return places

    def _check_places(self, end: int, places: list[tuple[int, int, str]]) -> None:
        """Refuse tensors that overlap and bytes behind the last; warn of holes."""
        alignment, holes = self._alignment(), 0
        before = "the header"
        for begin, stop, name in sorted(each for each in places if each[0] < each[1]):
            about = f"tensor '{for_terminal(name, 80)}' begins at byte {begin}"
            if begin < end:
                raise CorruptFile(self._where, f"{about}, {before} ends at {end}: an overlap")
            holes += begin - _padded(end, alignment)
            end, before = stop, f"tensor '{for_terminal(name, 80)}'"
        last = _padded(end, alignment)
        if self.file.size > last:
            reason = f"trailing bytes: the tensors end at byte {last}, the file has"
            raise CorruptFile(self._where, f"{reason} {self.file.size}")
        for begin, stop, name in places:
            if begin == stop and begin > last:
                about = f"tensor '{for_terminal(name, 80)}', which is empty, lies at byte {begin}"
                raise CorruptFile(self._where, f"{about}, the tensors end at {last}")
        if holes:
            self.warnings.append(f"{holes} bytes between the tensors belong to none of them")


def _padded(place: int, alignment: int) -> int:
    return place + -place % alignment


def _fault(entry: Entry, stored: BlockType | None, alignment: int) -> str:
    """Say what is wrong with an entry; nothing if nothing is."""
    if not stored:
        unknown = f"{entry.kind}, which is none of GGUF's"
        return f"has type {REFUSED.get(entry.kind, unknown)}"
    row = entry.dimensions[0]
    if row % stored.elements:
        return f"has rows of {row} elements, no multiple of the {stored.elements} of {stored.name}"
    # Readers multiply before they see the zero, so a shape without elements may overflow as well.
    if prod(filter(None, entry.dimensions)) * 8 > LARGEST:
        return f"has dimensions {list(entry.dimensions)}, which overflow 63 bits"
    if entry.offset % alignment:
        return f"lies at offset {entry.offset}, no multiple of the alignment {alignment}"
    return ""


def _info(entry: Entry, stored: BlockType) -> tuple[TensorInfo, int]:
    """Return the tensor in C order, and the bytes it takes in the file."""
    row, *others = entry.dimensions
    size = prod(entry.dimensions) // stored.elements * stored.size
    if stored.is_opaque:
        row = row // stored.elements * stored.size
    shape = (*reversed(others), row)
    return TensorInfo(entry.name, stored.dtype, shape, stored.stored), size


def _opaque(kind: str, names: list[str]) -> str:
    from ..folders.listing import listed

    return f"{kind} blocks cannot be decoded, they are compared as bytes: {listed(names)}"


def _together(first: Gguf, file: ModelFile) -> TensorSource:
    """Open the other files of a split model beside its first one."""
    from difflens.storage.places import is_file

    from ..folders.listing import limits_of, listed
    from ..folders.shards import Sharded
    from ..folders.together import open_together

    where, count = visible(str(file.path)), first.integer("split.count")
    found = _PART.fullmatch(file.path.name)
    if not found or int(found[3]) != count:
        wanted = f"-00001-of-{count:05}.gguf"
        reason = f"it is one of {count} files, and its name does not end in '{wanted}'"
        raise CorruptFile(where, reason, hint="give the files the names they were made with")
    names = [f"{found[1]}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    missing = [name for name in names if not is_file(file.path.with_name(name))]
    if missing:
        reason = f"it is one of {count} files, these are not there: {listed(missing)}"
        raise CorruptFile(where, reason, hint=INCOMPLETE)
    if file.path.name != names[0]:
        reason = f"it is part {int(found[2])} of {count} of a model"
        raise CorruptFile(where, reason, hint=f"name the first part: {for_terminal(names[0])}")
    limits = limits_of(file)
    others = open_together(
        lambda path: _open_part(path, limits), [file.path.with_name(name) for name in names[1:]]
    )
    parts = dict(zip(names, [first, *others], strict=True))
    with ExitStack() as opened:
        for each in others:
            opened.callback(each.close)
        for number, (name, part) in enumerate(parts.items()):
            _check_part(part, number, count, f"'{for_terminal(name, 80)}'", where)
        model = Sharded(where, parts)
        _check_total(first.integer("split.tensors.count"), len(model.tensors), where)
        opened.pop_all()
    return model


def _open_part(path: Location, limits: Mapping[str, int]) -> Gguf:
    from difflens.storage.places import open_file

    file = open_file(path, limits)
    try:
        return Gguf(file)
    except BaseException:
        file.close()
        raise


def _check_part(part: Gguf, number: int, count: int, name: str, where: str) -> None:
    """Check a part against its name, and remove the metadata that differ between parts."""
    said = part.integer("split.no"), part.integer("split.count")
    if said != (number, count):
        reason = f"{name} calls itself part {said[0] + 1} of {said[1]}, {number + 1} of {count}"
        raise CorruptFile(where, f"{reason} is wanted")
    part.metadata = {key: value for key, value in part.metadata.items() if key not in _SPLIT}


def _check_total(said: int, found: int, where: str) -> None:
    if said and said != found:
        raise CorruptFile(where, f"its parts hold {found} tensors, split.tensors.count is {said}")
