"""The end of a zip archive: where its directory is, once all that says so agrees."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from difflens.core.errors import INCOMPLETE, CorruptFile, LimitExceeded
from difflens.core.protocols import ModelFile

ENTRY = Struct("<4s6H3L5H2L")
FULL16, FULL32 = 0xFFFF, 0xFFFFFFFF  # "see the zip64 field"

_END = Struct("<4s4H2LH")
_END64 = Struct("<4sQ2H2L4Q")
_LOCATOR = Struct("<4sLQL")
_SIGNATURE = b"PK\x05\x06"
_LARGEST = 256 * 1024**2


class Directory(NamedTuple):
    """Where the directory is, and how many members it lists."""

    begin: int
    size: int
    members: int


class _End(NamedTuple):
    """The numbers of an end, short or long."""

    disk: int
    first_disk: int
    here: int
    members: int
    size: int
    begin: int


def find_directory(file: ModelFile, where: str) -> Directory:
    """Return the directory's place, once both ends of the archive agree about it."""
    stop, end = _end(file, where)
    if stop >= _LOCATOR.size:
        locator = file.read(stop - _LOCATOR.size, stop)
        if locator.startswith(b"PK\x06\x07"):
            stop, end = _long_end(file, locator, stop - _LOCATOR.size, end, where)
        elif FULL32 in (end.size, end.begin) or FULL16 in (end.here, end.members):
            raise CorruptFile(where, "the zip's end points to a zip64 end, there is none")
    if end.disk or end.first_disk or end.here != end.members:
        raise CorruptFile(where, "the zip is a part of several, or its counts of members disagree")
    if end.begin + end.size != stop:
        reason = f"the zip's directory ends at byte {end.begin + end.size}, its end is at {stop}"
        raise CorruptFile(where, reason, hint=INCOMPLETE)
    if end.members * ENTRY.size > end.size:
        reason = f"the zip counts {end.members} members in a directory of {end.size} bytes"
        raise CorruptFile(where, reason)
    limit = file.limit("zip_members")
    if end.members > limit:
        reason = f"the zip holds {end.members} members, the limit is {limit}"
        raise LimitExceeded(where, reason, hint="raise it with --limit zip_members=N")
    if end.size > _LARGEST:
        reason = f"the zip's directory has {end.size} bytes, the limit is {_LARGEST}"
        raise LimitExceeded(where, reason)
    return Directory(end.begin, end.size, end.members)


def _end(file: ModelFile, where: str) -> tuple[int, _End]:
    """Find the one end of the archive, whose comment reaches to the end of the file."""
    first = max(0, file.size - _END.size - FULL16)
    tail = file.read(first, file.size)
    found, place = [], tail.find(_SIGNATURE)
    while 0 <= place <= len(tail) - _END.size:
        _, *numbers, comment = _END.unpack_from(tail, place)
        if place + _END.size + comment == len(tail):
            found.append((place, _End(*numbers)))
        place = tail.find(_SIGNATURE, place + 1)
    if not found:
        raise CorruptFile(
            where, "the zip has no end, its directory cannot be found", hint=INCOMPLETE
        )
    place, end = found[0]
    if _SIGNATURE in tail[place + 4 :]:
        raise CorruptFile(where, "the zip's comment hides a second end: two archives in one file")
    return first + place, end


def _long_end(
    file: ModelFile, locator: bytes, stop: int, short: _End, where: str
) -> tuple[int, _End]:
    """Read the zip64 end; each field of the short end must repeat it or refer to it."""
    _, disk, place, disks = _LOCATOR.unpack(locator)
    if disk or disks > 1 or place + _END64.size > stop:
        raise CorruptFile(where, f"the zip64 end is said to be at byte {place}, it ends at {stop}")
    signature, length, _, _, *numbers = _END64.unpack(file.read(place, place + _END64.size))
    if signature != b"PK\x06\x06" or place + 12 + length != stop:
        raise CorruptFile(where, f"there is no zip64 end at byte {place} that reaches to {stop}")
    full = (FULL16, FULL16, FULL16, FULL16, FULL32, FULL32)
    for number, long, most in zip(short, numbers, full, strict=True):
        if number not in (long, most):
            raise CorruptFile(where, f"the zip's end says {number}, its zip64 end says {long}")
    return place, _End(*numbers)
