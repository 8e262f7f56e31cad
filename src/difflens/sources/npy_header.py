"""The header of a NumPy array: what it holds, checked before a byte of it is read.

byte 0    93 'NUMPY', then major and minor version
byte 8    n, the length of the header: 2 bytes in version 1, 4 in versions 2 and 3
then      n bytes: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and spaces
then      the numbers, one after another
"""

from __future__ import annotations

import re
from math import prod
from typing import Any, NamedTuple

from ..errors import CorruptFile, LimitExceeded
from ..escape import for_terminal
from ..protocols import ModelFile
from ..records import TensorInfo
from .containers import literals
from .containers.columns import BAND, PACKED_BAND, Columns
from .containers.encodings import Encoding, Straight, Swapped
from .containers.stream import Unpacked

MAGIC = b"\x93NUMPY"
_KEYS = {"descr", "fortran_order", "shape"}
_LARGEST = 2**63 - 1
_CUT = "the download may be incomplete"

_DTYPES = {
    "b1": "BOOL", "u1": "U8", "i1": "I8", "u2": "U16", "i2": "I16", "u4": "U32", "i4": "I32",
    "u8": "U64", "i8": "I64", "f2": "F16", "f4": "F32", "f8": "F64", "c8": "C64", "c16": "F64",
}  # fmt: skip
# ml_dtypes' own: NumPy has no name for them, and no other type is written with these.
_NAMED = {"<V2": ("BF16", 2), "<f1": ("F8_E5M2", 1)}
_DESCR = re.compile(r"([<>=|]?)([a-zA-Z])([0-9]*)(\[.*\])?")
_OPAQUE = {
    "V": "raw bytes", "S": "byte strings", "a": "byte strings", "U": "text", "M": "dates",
    "m": "time spans", "T": "text",
}  # fmt: skip
_LONG = {"f12", "f16", "c24", "c32"}


class Array(NamedTuple):
    """One array: how it looks, where its bytes are, and where they end in its file."""

    info: TensorInfo
    encoding: Encoding
    end: int


class Opaque(NamedTuple):
    """An array that is no tensor; `refused` where reading it would mean to unpickle."""

    what: str
    refused: bool = False


def read_array(file: ModelFile, name: str, where: str) -> Array | Opaque:
    """Read the header of one array; raise where it breaks the rules of its format."""
    about = f"array '{for_terminal(name)}'"
    header, begin = _header(file, about, where)
    descr, columns, shape = header["descr"], header["fortran_order"], header["shape"]
    if type(columns) is not bool:
        raise CorruptFile(where, f"{about} has fortran_order {columns!r}, True or False is wanted")
    _check_shape(shape, file.limit("rank"), about, where)
    kind = _kind(descr, about, where)
    if isinstance(kind, Opaque):
        return kind
    dtype, width, word, stored = kind
    if prod(filter(None, shape)) * width > _LARGEST:
        raise CorruptFile(where, f"{about}: its shape {list(shape)} overflows 63 bits")
    end = begin + prod(shape) * width
    if end > file.size:
        reason = f"{about} ends at byte {end}, the file has {file.size}"
        raise CorruptFile(where, reason, hint=_CUT)
    parts = (2,) if stored == "complex128" else ()
    info = TensorInfo(name, dtype, shape + parts, stored)
    encoding: Encoding = Straight(file, begin)
    if columns and sum(length > 1 for length in shape) > 1 and prod(shape):
        band = PACKED_BAND if isinstance(file, Unpacked) else BAND
        encoding = Columns(encoding, shape, width, band)
    if word > 1 and descr[0] == ">":
        encoding = Swapped(encoding, word)
    return Array(info, encoding, end)


def _header(file: ModelFile, about: str, where: str) -> tuple[dict[str, Any], int]:
    """Give the header as a map, and where the numbers begin."""
    size = file.size
    start = file.read(0, min(12, size))
    if not start.startswith(MAGIC) or len(start) < 10:
        raise CorruptFile(where, f"{about} begins with {start[:6].hex(' ')}, no NumPy array does")
    version = start[6], start[7]
    if version not in {(1, 0), (2, 0), (3, 0)}:
        said = f"{version[0]}.{version[1]}"
        raise CorruptFile(where, f"{about} is of version {said}, 1.0, 2.0 and 3.0 are known")
    begin = 10 if version[0] == 1 else 12
    length = int.from_bytes(start[8:begin], "little")
    if begin + length > size:
        reason = f"{about}: its header ends at byte {begin + length}, the file has {size}"
        raise CorruptFile(where, reason, hint=_CUT)
    limit = file.limit("npy_header")
    if length > limit:
        reason = f"{about}: header too large: {length} bytes, the limit is {limit}"
        raise LimitExceeded(where, reason, hint="raise it with --limit npy_header=N")
    raw = file.read(begin, begin + length)
    try:
        header = literals.parse(raw.decode("utf-8" if version[0] == 3 else "latin-1"))
    except ValueError as error:  # NoLiteral and UnicodeDecodeError are
        said = for_terminal(str(error), 80)
        raise CorruptFile(where, f"{about}: its header is no NumPy header: {said}") from error
    if type(header) is not dict or header.keys() != _KEYS:
        raise CorruptFile(where, f"{about}: its header must hold descr, fortran_order and shape")
    return header, begin + length


def _check_shape(shape: Any, rank: int, about: str, where: str) -> None:
    if type(shape) is not tuple:
        raise CorruptFile(where, f"{about} has shape {_brief(shape)}, a tuple is wanted")
    if len(shape) > rank:
        raise LimitExceeded(where, f"{about} has rank {len(shape)}, the limit is {rank}")
    for length in shape:
        if type(length) is not int or not 0 <= length <= _LARGEST:
            said = f"{about} has {_brief(length)} in its shape"
            raise CorruptFile(where, f"{said}, whole numbers from 0 on are wanted")


def _kind(descr: Any, about: str, where: str) -> Opaque | tuple[str, int, int, str | None]:
    """Give dtype, bytes of an element, bytes that are swapped together, and the stored name."""
    if isinstance(descr, list):
        refused = _holds_objects(descr)
        return Opaque("objects" if refused else "records of several fields", refused)
    if isinstance(descr, str) and descr in _NAMED:
        return (*_NAMED[descr], 0, descr)
    found = _DESCR.fullmatch(descr) if isinstance(descr, str) else None
    letter, width, unit = found.group(2, 3, 4) if found else ("", "", "")
    dtype = _DTYPES.get(letter + width)
    if dtype and not unit:
        size = int(width)
        word = size // 2 if letter == "c" else size
        return dtype, size, word, "complex128" if size == 16 else None
    if letter == "O":
        return Opaque("objects", refused=True)
    if letter + width in _LONG or letter in _OPAQUE:
        return Opaque(f"{_OPAQUE.get(letter, 'long doubles')} ({_brief(descr)})")
    raise CorruptFile(where, f"{about} has descr {_brief(descr)}, which is none of NumPy's")


def _holds_objects(descr: Any) -> bool:
    """Is there an object field anywhere in a structured type?"""
    if isinstance(descr, str):
        return descr.lstrip("<>=|")[:1] == "O"
    return isinstance(descr, list | tuple) and any(map(_holds_objects, descr))


def _brief(value: Any) -> str:
    return for_terminal(f"{value!r}", 80)
