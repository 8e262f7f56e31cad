"""Zip archives, read strictly: where the two directories of a zip could disagree, they must not.

local header, name, extra, data [, descriptor]   once a member, the first at byte 0, no gaps
the directory: an entry a member                 what counts; must repeat the local headers
[zip64 end, its locator]                         where 16 or 32 bits do not hold a number
the end: count, size and place of the directory  then a comment, which may hide no other end

`zipfile` takes the directory's word alone, and looks for its end wherever it may be: two readers
then see two archives in one file.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct, iter_unpack
from typing import NamedTuple

from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import ModelFile
from difflens.storage.places import gather

from .inner_files import Inflated, Part
from .zip_directory import ENTRY, FULL32, find_directory

STORED, DEFLATED = 0, 8

_LOCAL = Struct("<4s5H3L2H")
_FIELD = Struct("<2H")
_HARMLESS = 0x2 | 0x4 | 0x8 | 0x800  # two of compression level, descriptor, UTF-8
_FLAGS = {0x1: "encrypted", 0x20: "a patch", 0x40: "encrypted", 0x2000: "encrypted"}
_DESCRIBED = 0x8
_ZIP64 = 1
_LINK = 0xA
_DESCRIPTOR = 24  # bytes behind the data of a member, at most
_LONGEST_EXTRA = 512  # bytes behind its name; nearly always fewer


class Member(NamedTuple):
    """One file in the archive: `stored` bytes at `offset` that unpack to `size`."""

    name: str
    offset: int
    size: int
    stored: int
    method: int
    crc: int


class _Entry(NamedTuple):
    """What the directory says of a member."""

    name: str
    raw: bytes
    flags: int
    method: int
    crc: int
    stored: int
    size: int
    header: int


def members(file: ModelFile) -> dict[str, Member]:
    """Return the members by name, in the order of their bytes; folders are left out."""
    where = visible(str(file.path))
    begin, size, count = find_directory(file, where)
    entries = list(_entries(file.read(begin, begin + size), count, where))
    gather(file, map(_around_header, entries))
    found: dict[str, Member] = {}
    end = 0
    for entry in sorted(entries, key=lambda each: each.header):
        member, end = _member(file, entry, end, begin, where)
        if entry.name in found:
            raise CorruptFile(where, f"the zip holds '{for_terminal(entry.name)}' twice")
        found[entry.name] = member
    if end != begin:
        raise CorruptFile(
            where, f"the zip's members end at byte {end}, its directory is at {begin}"
        )
    return {name: member for name, member in found.items() if not name.endswith("/")}


def _around_header(entry: _Entry) -> tuple[int, int]:
    """Return the bytes from the descriptor before a member to what is behind its local header."""
    end = entry.header + _LOCAL.size + len(entry.raw) + _LONGEST_EXTRA
    return max(0, entry.header - _DESCRIPTOR), end


def open_member(file: ModelFile, member: Member) -> ModelFile:
    """Return a member as a file; the archive stays its owner's to close."""
    if member.method == STORED:
        return Part(file, member.offset, member.size)
    most, ratio = file.limit("zip_bytes"), file.limit("zip_ratio")
    if member.size > most and member.size > ratio * member.stored:
        said = f"zip member '{for_terminal(member.name)}' unpacks from {member.stored} bytes"
        reason = f"{said} to {member.size}, the limit is {ratio} times"
        hint = "raise it with --limit zip_ratio=N if you trust the file"
        raise LimitExceeded(visible(str(file.path)), reason, hint=hint)
    packed = Part(file, member.offset, member.stored)
    return Inflated(packed, member.size, member.crc, f"zip member '{for_terminal(member.name)}'")


def verify(file: ModelFile, member: Member) -> None:
    """Read a member; raise unless it has the checksum that the directory states."""
    opened = open_member(file, member)
    step, crc = 1 << 20, 0
    buffer = memoryview(bytearray(min(step, member.size)))
    for start in range(0, member.size, step):
        view = buffer[: min(step, member.size - start)]
        opened.read_into(start, view)
        crc = zlib.crc32(view, crc)
    if crc != member.crc:
        said = f"zip member '{for_terminal(member.name)}' has checksum {crc:08x}"
        raise CorruptFile(visible(str(file.path)), f"{said}, its directory says {member.crc:08x}")


def _entries(directory: bytes, count: int, where: str) -> Iterator[_Entry]:
    """Yield the directory's entries; they must fill it."""
    place = 0
    for _ in range(count):
        stop = place + ENTRY.size
        if stop > len(directory) or directory[place : place + 4] != b"PK\x01\x02":
            raise CorruptFile(where, f"the zip counts {count} members, its directory holds fewer")
        fields = ENTRY.unpack_from(directory, place)
        lengths = fields[10:13]
        name_end = stop + lengths[0]
        extra = directory[name_end : name_end + lengths[1]]
        yield _entry(fields, directory[stop:name_end], extra, where)
        place = stop + sum(lengths)
    if place != len(directory):
        reason = f"the zip's {count} entries take {place} bytes, its directory has {len(directory)}"
        raise CorruptFile(where, reason)


def _entry(fields: tuple[int, ...], raw: bytes, extra: bytes, where: str) -> _Entry:
    _, maker, _, flags, method, _, _, crc, stored, size, _, _, _, disk, _, outer, header = fields
    name = _name(raw, flags, where)
    about = f"zip member '{for_terminal(name)}'"
    for flag, meaning in _FLAGS.items():
        if flags & flag:
            raise CorruptFile(where, f"{about} is {meaning} (flag 0x{flag:x}), which is not read")
    if flags & ~_HARMLESS:
        raise CorruptFile(where, f"{about} has flags 0x{flags:x} that no reader knows")
    if method not in (STORED, DEFLATED):
        raise CorruptFile(
            where, f"{about} is packed by method {method}, stored and deflate are read"
        )
    size, stored, header = _long(extra, (size, stored, header), about, where)
    if maker >> 8 == 3 and outer >> 28 == _LINK:
        raise CorruptFile(where, f"{about} is a link, which is not followed")
    if disk:
        raise CorruptFile(where, f"{about} is on disk {disk} of several")
    if method == STORED and size != stored:
        raise CorruptFile(where, f"{about} is stored as {stored} bytes, its size is {size}")
    if name.endswith("/") and size:
        raise CorruptFile(where, f"{about} is a folder of {size} bytes")
    return _Entry(name, raw, flags, method, crc, stored, size, header)


def _name(raw: bytes, flags: int, where: str) -> str:
    """Decode a name that could stand in no other place than under the archive."""
    try:
        name = raw.decode("utf-8" if flags & 0x800 else "cp437")
    except UnicodeDecodeError as error:
        shown = for_terminal(raw.decode("latin-1"))
        raise CorruptFile(where, f"the name '{shown}' in the zip is no UTF-8") from error
    if not name or name[0] == "/" or "\\" in name or "\0" in name or ".." in name.split("/"):
        reason = f"the name '{for_terminal(name)}' in the zip leads out of it or nowhere"
        raise CorruptFile(where, reason)
    return name


def _long(extra: bytes, short: tuple[int, ...], about: str, where: str) -> tuple[int, ...]:
    """Replace the numbers that 32 bits did not hold by those of the zip64 field."""
    wide = _zip64(extra, about, where)
    wanted = short.count(FULL32)
    if len(wide) == wanted:
        rest = iter(wide)
        return tuple(next(rest) if number == FULL32 else number for number in short)
    if len(wide) < wanted:
        raise CorruptFile(where, f"{about} needs {wanted} zip64 numbers, it has {len(wide)}")
    whole = tuple(zip(short, wide, strict=False))
    if any(number not in (long, FULL32) for number, long in whole):
        raise CorruptFile(where, f"{about} has zip64 numbers that contradict its own")
    return wide[: len(short)] + short[len(wide) :]


def _zip64(extra: bytes, about: str, where: str) -> tuple[int, ...]:
    """Return the numbers of the one zip64 field there may be."""
    found: list[tuple[int, ...]] = []
    place = 0
    while place + 4 <= len(extra):
        kind, length = _FIELD.unpack_from(extra, place)
        place += 4
        if place + length > len(extra):
            raise CorruptFile(where, f"{about} has an extra field that runs past its end")
        if kind == _ZIP64:
            body = extra[place : place + length // 8 * 8]
            found.append(tuple(number for (number,) in iter_unpack("<Q", body)))
        place += length
    if len(found) > 1:
        raise CorruptFile(where, f"{about} has two zip64 fields that contradict each other")
    return found[0] if found else ()


def _member(file: ModelFile, entry: _Entry, begin: int, end: int, where: str) -> tuple[Member, int]:
    """Check that the local header repeats the directory; return the member and its end."""
    about = f"zip member '{for_terminal(entry.name)}'"
    place = entry.header
    if place < begin:
        raise CorruptFile(where, f"{about} at byte {place} overlaps another that ends at {begin}")
    if place > begin:
        what = f"{about} is at byte {place}, bytes from {begin} on belong to no member"
        raise CorruptFile(where, what)
    if place + _LOCAL.size > end:
        raise CorruptFile(where, f"{about} begins at byte {place}, the members end at {end}")
    fields = _LOCAL.unpack(file.read(place, place + _LOCAL.size))
    signature, _, flags, method, _, _, crc, stored, size, name_length, extra_length = fields
    if signature != b"PK\x03\x04":
        raise CorruptFile(where, f"{about} has no local header at byte {place}")
    start = place + _LOCAL.size
    data = start + name_length + extra_length
    stop = data + entry.stored
    if stop > end:
        raise CorruptFile(where, f"{about} ends at byte {stop}, the directory begins at {end}")
    names = file.read(start, data)
    if names[:name_length] != entry.raw or (flags, method) != (entry.flags, entry.method):
        raise CorruptFile(where, f"{about} has another name, method or flags in its local header")
    member = Member(entry.name, data, entry.size, entry.stored, entry.method, entry.crc)
    local = _local(names[name_length:], (size, stored), entry, about, where)
    described = bool(flags & _DESCRIBED)
    known = (entry.size, entry.stored, entry.crc)
    if (*local, crc) != known and not (described and (*local, crc) == (0, 0, 0)):
        said = "{} bytes, {} stored, checksum {:08x}".format
        what = f"its local header says {said(*local, crc)}, the directory says {said(*known)}"
        raise CorruptFile(where, f"{about}: {what}")
    return member, _described(file, member, end, where) if described else stop


def _local(
    extra: bytes, short: tuple[int, int], entry: _Entry, about: str, where: str
) -> tuple[int, ...]:
    """Return size and stored size as the local header has them."""
    if FULL32 in short:
        return _long(extra, short, about, where)
    # torch writes a zip64 field here beside sizes that need none: no reader looks into it.
    if not {*_zip64(extra, about, where)} <= {0, entry.size, entry.stored, entry.header}:
        raise CorruptFile(where, f"{about} has zip64 numbers that contradict the directory")
    return short


def _described(file: ModelFile, member: Member, end: int, where: str) -> int:
    """Return the end of the descriptor behind the data, in whichever of its four forms."""
    place = member.offset + member.stored
    found = file.read(place, min(place + 24, end))
    for form in ("<3L", "<L2Q"):
        if max(member.stored, member.size) > FULL32 and form == "<3L":
            continue
        plain = Struct(form).pack(member.crc, member.stored, member.size)
        for wanted in (b"PK\x07\x08" + plain, plain):
            if found.startswith(wanted) and _begins(file, place + len(wanted), end):
                return place + len(wanted)
    if not member.size and not member.stored and _begins(file, place, end):
        return place  # torch writes none behind a member that is empty
    said = f"zip member '{for_terminal(member.name)}'"
    raise CorruptFile(where, f"{said}: the descriptor behind its data contradicts the directory")


def _begins(file: ModelFile, place: int, end: int) -> bool:
    """Does a member or the directory begin here? The forms of a descriptor may begin alike."""
    return place == end or (place + 4 <= end and file.read(place, place + 4) == b"PK\x03\x04")
