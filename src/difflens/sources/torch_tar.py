"""The tar archives torch wrote in 2016: a few plain files, and nothing else is taken for one.

512 bytes of header (name, size in octal, checksum, kind), the file, zeros up to 512 again
at the end two blocks of zeros or more
"""

from __future__ import annotations

from ..errors import CorruptFile
from ..escape import for_terminal, visible
from ..protocols import ModelFile
from .containers.part import Part

EXTENDED = (b"x", b"g")  # headers that hold long names and times

_BLOCK = 512
_PLAIN = (b"0", b"\0")
_KINDS = {b"1": "a hard link", b"2": "a link", b"3": "a device", b"4": "a device", b"5": "a folder",
          b"6": "a pipe"}  # fmt: skip
_HARMLESS = frozenset({"mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment"})
_LARGEST_EXTENDED = 1 << 16
_CUT = "the download may be incomplete"


class TarMember(Part):
    """A file of the archive that knows where it begins."""

    def __init__(self, whole: ModelFile, start: int, size: int) -> None:
        """Take a range that was checked to lie within the file."""
        super().__init__(whole, start, size)
        self.start = start


def tar_members(file: ModelFile, names: tuple[str, ...]) -> dict[str, TarMember]:
    """Give the members by name; each must be a plain file of one of these names."""
    where = visible(str(file.path))
    found: dict[str, TarMember] = {}
    place = 0
    if file.size % _BLOCK:
        reason = f"a tar is made of blocks of {_BLOCK} bytes, the file has {file.size}"
        raise CorruptFile(where, reason, hint=_CUT)
    while True:
        if place + _BLOCK > file.size:
            raise CorruptFile(where, "the tar does not end", hint=_CUT)
        header = file.read(place, place + _BLOCK)
        if not any(header):
            break
        name, kind, size = _header(header, where)
        begin, place = place + _BLOCK, place + _BLOCK + -(-size // _BLOCK) * _BLOCK
        if place > file.size:
            reason = f"member '{for_terminal(name)}' ends at byte {place}, the file has {file.size}"
            raise CorruptFile(where, reason, hint=_CUT)
        if kind in EXTENDED:
            _check_extended(file, begin, size, where)
            continue
        _check_member(name, kind, names, where)
        if name in found:
            raise CorruptFile(where, f"the tar holds '{name}' twice")
        found[name] = TarMember(file, begin, size)
    _check_end(file, place, where)
    return found


def _header(header: bytes, where: str) -> tuple[str, bytes, int]:
    """Read a header whose checksum is right."""
    said = _octal(header[148:156], where)
    if said != sum(header[:148]) + 8 * 0x20 + sum(header[156:]):
        raise CorruptFile(where, "a header of the tar has another checksum than it says")
    prefix = header[345:500].rstrip(b"\0") if header[257:263] == b"ustar\0" else b""
    name = (prefix + b"/" if prefix else b"") + header[:100].rstrip(b"\0")
    return name.decode("latin-1"), header[156:157], _octal(header[124:136], where)


def _octal(field: bytes, where: str) -> int:
    if field[:1] == b"\x80":  # more than eight gigabytes
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ")
    if not digits or digits.strip(b"01234567"):
        raise CorruptFile(where, "a header of the tar holds a number that is none")
    return int(digits, 8)


def _check_member(name: str, kind: bytes, names: tuple[str, ...], where: str) -> None:
    if kind not in _PLAIN:
        what = _KINDS.get(kind, "no plain file")
        raise CorruptFile(where, f"member '{for_terminal(name)}' of the tar is {what}")
    if name not in names:
        reason = f"member '{for_terminal(name)}' of the tar is none of torch's: {', '.join(names)}"
        raise CorruptFile(where, reason)


def _check_extended(file: ModelFile, begin: int, size: int, where: str) -> None:
    """Look through an extended header: times are harmless, names and sizes are not."""
    if size > _LARGEST_EXTENDED:
        raise CorruptFile(where, f"an extended header of the tar has {size} bytes")
    rest = file.read(begin, begin + size)
    while rest:
        length, space, _ = rest.partition(b" ")
        end = int(length) if space and length.isdigit() and len(length) < 6 else 0
        key = rest[len(length) + 1 : end].partition(b"=")[0].decode("latin-1")
        if not len(length) + 2 < end <= len(rest) or key not in _HARMLESS:
            reason = f"an extended header of the tar sets '{for_terminal(key, 40)}'"
            raise CorruptFile(where, reason)
        rest = rest[end:]


def _check_end(file: ModelFile, place: int, where: str) -> None:
    """Hold that nothing but zeros follows the last member."""
    if place + 2 * _BLOCK > file.size:
        raise CorruptFile(where, "the tar does not end in two blocks of zeros", hint=_CUT)
    while place < file.size:
        stop = min(place + (1 << 16), file.size)
        if any(file.read(place, stop)):
            raise CorruptFile(where, f"trailing bytes follow the end of the tar at byte {place}")
        place = stop
