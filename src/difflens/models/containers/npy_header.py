"""The header of a NumPy array, checked before a byte of the array is read.

byte 0    93 'NUMPY', then major and minor version
byte 8    n, the length of the header: 2 bytes in version 1, 4 in versions 2 and 3
then      n bytes: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and spaces
then      the numbers, one after another
"""

from __future__ import annotations

import re
from math import prod
from typing import Any, NamedTuple, NoReturn

from difflens.core.errors import INCOMPLETE, CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal
from difflens.core.limits import LARGEST
from difflens.core.protocols import ModelFile
from difflens.core.records import TensorInfo

from .columns import BAND, PACKED_BAND, Columns
from .encodings import Encoding, Straight, Swapped
from .inner_files import Unpacked

MAGIC = b"\x93NUMPY"
_KEYS = {"descr", "fortran_order", "shape"}

_DTYPES = {
    "b1": "BOOL", "u1": "U8", "i1": "I8", "u2": "U16", "i2": "I16", "u4": "U32", "i4": "I32",
    "u8": "U64", "i8": "I64", "f2": "F16", "f4": "F32", "f8": "F64", "c8": "C64", "c16": "F64",
}  # fmt: skip
# ml_dtypes' own: NumPy has no name for them, and no other type is written with these.
_NAMED = {"<V2": ("BF16", 2), "<f1": ("F8_E5M2", 1)}
_DESCR = re.compile(r"([<>=|]?)([a-zA-Z])([0-9]*)(\[.*\])?")
_OPAQUE = {
    "V": "raw bytes",
    "S": "byte strings",
    "a": "byte strings",
    "U": "text",
    "M": "dates",
    "m": "time spans",
    "T": "text",
}
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
    if prod(filter(None, shape)) * width > LARGEST:
        raise CorruptFile(where, f"{about}: its shape {list(shape)} overflows 63 bits")
    end = begin + prod(shape) * width
    if end > file.size:
        reason = f"{about} ends at byte {end}, the file has {file.size}"
        raise CorruptFile(where, reason, hint=INCOMPLETE)
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
    """Return the header as a map, and where the numbers begin."""
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
        raise CorruptFile(where, reason, hint=INCOMPLETE)
    limit = file.limit("npy_header")
    if length > limit:
        reason = f"{about}: header too large: {length} bytes, the limit is {limit}"
        raise LimitExceeded(where, reason, hint="raise it with --limit npy_header=N")
    raw = file.read(begin, begin + length)
    try:
        header = parse(raw.decode("utf-8" if version[0] == 3 else "latin-1"))
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
        if type(length) is not int or not 0 <= length <= LARGEST:
            said = f"{about} has {_brief(length)} in its shape"
            raise CorruptFile(where, f"{said}: sizes are integers of at least 0")


def _kind(descr: Any, about: str, where: str) -> Opaque | tuple[str, int, int, str | None]:
    """Return dtype, bytes of an element, bytes that are swapped together, and the stored name."""
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


_TOKEN = re.compile(
    r"\s*(?:(?P<text>'[^'\\\n\0]*'|\"[^\"\\\n\0]*\")|(?P<number>-?[0-9]{1,20})L?(?![\w.])"
    r"|(?P<word>True|False|None)(?!\w)|(?P<mark>[\[\](){}:,]))"
)
_WORDS = {"True": True, "False": False, "None": None}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_DEEPEST = 16


class NoLiteral(ValueError):
    """The text is something else; says at which character."""


def parse(text: str) -> Any:
    """Return texts, whole numbers, True, False, None, tuples, lists and maps; a key stands once.

    >>> parse("{'descr': '<f4', 'shape': (3, 4), }")
    {'descr': '<f4', 'shape': (3, 4)}
    """
    parser = _Parser(text)
    value = parser.value(0)
    if text[parser.place :].strip():
        parser.fail("something follows")
    return value


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def fail(self, what: str) -> NoReturn:
        raise NoLiteral(f"{what} at character {self.place}")

    def next(self) -> tuple[str, str]:
        found = _TOKEN.match(self.text, self.place)
        if not found:
            self.fail("neither text nor number nor bracket")
        self.place = found.end()
        return found.lastgroup or "", found[found.lastgroup or 0]

    def is_next(self, mark: str) -> bool:
        """Is this mark the next one? Then it is passed."""
        found = _TOKEN.match(self.text, self.place)
        if not found or found["mark"] != mark:
            return False
        self.place = found.end()
        return True

    def value(self, depth: int) -> Any:
        kind, word = self.next()
        if kind == "text":
            return word[1:-1]
        if kind == "number":
            return int(word)
        if kind == "word":
            return _WORDS[word]
        if word not in _CLOSING:
            self.fail(f"a stray {word!r}")
        if depth >= _DEEPEST:
            self.fail(f"nested more than {_DEEPEST} deep")
        return self.map(depth + 1) if word == "{" else self.row(word, depth + 1)

    def row(self, opening: str, depth: int) -> Any:
        items: list[Any] = []
        comma = False
        while not self.is_next(_CLOSING[opening]):
            if items and not comma:
                self.fail("a missing comma")
            items.append(self.value(depth))
            comma = self.is_next(",")
        if opening == "[":
            return items
        # One value in parentheses is that value; a tuple of one has a comma.
        return items[0] if len(items) == 1 and not comma else tuple(items)

    def map(self, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        comma = True
        while not self.is_next("}"):
            key = self.value(depth) if comma else self.fail("a missing comma")
            if not isinstance(key, str) or key in items or not self.is_next(":"):
                self.fail("no key, or one that stands twice,")
            items[key] = self.value(depth)
            comma = self.is_next(",")
        return items
