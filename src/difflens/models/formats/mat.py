"""MATLAB files of version 5 to 7: variables, each a matrix of elements, often packed with zlib.

byte 0      116 bytes of text that begin with "MATLAB 5.0 MAT-file"
byte 116    where the subsystem's data is; byte 124 version, byte 126 "IM", or "MI" if big-endian
byte 128    elements, one a variable: a matrix, or a matrix that is packed
a matrix    flags and class, dimensions, name, then what its class has: numbers (column by column),
            cells, or fields of a struct, which are matrices again
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from difflens.core.addresses import Location
from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal, visible
from difflens.core.limits import LARGEST
from difflens.core.protocols import ModelFile
from difflens.core.records import TensorInfo

from ..containers.columns import BAND, PACKED_BAND, Columns
from ..containers.encodings import EncodedSource, Encoding, Straight, Swapped
from ..containers.inner_files import Unpacked
from ..matlab import COMPRESSED, MATRIX, NUMBERS, TEXT, Element, Elements
from . import source

_CELL, _STRUCT, _OBJECT, _CHAR = 1, 2, 3, 4
_CLASSES = {
    6: ("F64", "f8"),
    7: ("F32", "f4"),
    8: ("I8", "i1"),
    9: ("U8", "u1"),
    10: ("I16", "i2"),
    11: ("U16", "u2"),
    12: ("I32", "i4"),
    13: ("U32", "u4"),
    14: ("I64", "i8"),
    15: ("U64", "u8"),
}
_OPAQUE = {3: "an object", 5: "sparse", 16: "a function", 17: "an object"}
_COMPLEX, _LOGICAL = 0x800, 0x200
_DEEPEST = 32
_LONGEST_TEXT = 1 << 16


def recognise(head: bytes, path: Location) -> bool:
    """Are these the first bytes of a MATLAB 5 file? Version 7.3 is HDF5."""
    del path
    return head.startswith(b"MATLAB 5.0 MAT-file") and head[126:128] in (b"IM", b"MI")


@source(recognise=recognise, suffixes=(".mat",))
def mat(file: ModelFile) -> EncodedSource:
    """MATLAB 5 to 7: variables, structs and cells, packed or not."""
    return _Mat(file)


class _Matrix(NamedTuple):
    """What every matrix says first."""

    kind: int
    flags: int
    shape: tuple[int, ...]
    name: str


class _Mat(EncodedSource):
    """An open MATLAB file."""

    def __init__(self, file: ModelFile) -> None:
        """Walk over the elements; touch no number."""
        super().__init__(file, "mat")
        self._where = visible(str(file.path))
        self._opaque: list[str] = []
        self._texts: dict[str, str] = {}
        self.metadata = self._texts
        head = file.read(0, min(128, file.size))
        order = {b"IM": "<", b"MI": ">"}.get(head[126:128])
        version = head[124:126] if order == "<" else head[125:123:-1]
        if not order or version != b"\x00\x01" or not head.startswith(b"MATLAB"):
            raise CorruptFile(self._where, "it does not begin as a MATLAB 5 file does")
        elements = Elements(file, 128, file.size, order, self._where)
        while elements.place < file.size:
            self._variable(elements, elements.next("a variable"))
        self.warn("no tensors, left out", self._opaque)

    def _variable(self, elements: Elements, element: Element) -> None:
        if element.kind == COMPRESSED:
            elements = elements.unpacked(element)
            element = elements.next("a variable")
            self.opened.append(elements.file)
        if element.kind != MATRIX:
            said = f"a variable at byte {element.start} has type {element.kind}"
            raise CorruptFile(self._where, f"{said}, a matrix is wanted")
        if elements.place != elements.stop and elements.file is not self.file:
            raise CorruptFile(self._where, "a packed element holds more than one matrix")
        self._add_matrix(elements.within(element), "", 0)
        if elements.file is not self.file:
            elements.file.close()  # it has begun to unpack; it begins again when it is read

    def _add_matrix(self, elements: Elements, name: str, depth: int) -> None:
        """Add what a matrix holds under a name; its own where it has one."""
        if depth > _DEEPEST:
            reason = f"'{for_terminal(name)}' is nested more than {_DEEPEST} deep"
            raise LimitExceeded(self._where, reason)
        matrix = self._matrix(elements)
        name = name or matrix.name
        if matrix.kind in _OPAQUE or not name:
            self._opaque.append(f"{name or '(no name)'}: {_OPAQUE.get(matrix.kind, 'an object')}")
            return
        if matrix.kind in (_CELL, _STRUCT):
            self._parts(elements, matrix, name, depth)
        elif matrix.kind == _CHAR:
            self._text(elements, matrix, name)
        elif matrix.kind in _CLASSES:
            self._numbers(elements, matrix, name)
        else:
            about = f"'{for_terminal(name)}' is of class {matrix.kind}"
            raise CorruptFile(self._where, f"{about}, which is none of MATLAB's")
        if elements.place != elements.stop:
            left = elements.stop - elements.place
            raise CorruptFile(self._where, f"'{for_terminal(name)}' is followed by {left} bytes")

    def _matrix(self, elements: Elements) -> _Matrix:
        flags = elements.numbers(elements.next("the flags"), 2, "the flags of a matrix")
        if len(flags) != 2:
            raise CorruptFile(self._where, "the flags of a matrix have no two numbers")
        kind = flags[0] & 0xFF
        if kind == 17:  # an object's dimensions are written in another way
            return _Matrix(kind, 0, (), "")
        rank = self.file.limit("rank")
        shape = elements.numbers(elements.next("the dimensions"), rank, "the dimensions")
        if any(length < 0 for length in shape):
            raise CorruptFile(self._where, f"a matrix has a dimension below zero: {shape}")
        named = elements.next("the name of a matrix")
        raw = elements.bytes_of(named) if named.length < 4096 else b""
        if named.kind not in TEXT or named.length >= 4096:
            raise CorruptFile(self._where, "the name of a matrix is no text of MATLAB's")
        return _Matrix(kind, flags[0] & 0xFF00, tuple(shape), raw.decode("utf-8", "replace"))

    def _parts(self, elements: Elements, matrix: _Matrix, name: str, depth: int) -> None:
        """Add the cells, or the fields of every struct."""
        fields = self._fields(elements) if matrix.kind == _STRUCT else [""]
        count = prod(matrix.shape)
        if count * len(fields) * 8 > elements.stop - elements.place:
            said = f"'{for_terminal(name)}' has {count} elements of {len(fields)} fields"
            reason = f"{said}, {elements.stop - elements.place} bytes are left"
            raise CorruptFile(self._where, reason)
        for index in range(count):
            prefix = f"{name}.{index}" if matrix.kind == _CELL or count > 1 else name
            for field in fields:
                element = elements.next(f"a part of '{for_terminal(name)}'")
                if element.kind != MATRIX:
                    reason = f"a part of '{for_terminal(name)}' has type {element.kind}"
                    raise CorruptFile(self._where, f"{reason}, a matrix is wanted")
                if element.length:  # none stands for an empty one
                    inner = f"{prefix}.{field}" if field else prefix
                    self._add_matrix(elements.within(element), inner, depth + 1)

    def _fields(self, elements: Elements) -> list[str]:
        (width,) = elements.numbers(elements.next("a width"), 1, "the width of names") or [0]
        names = elements.next("the names of fields")
        if not 0 < width <= 4096 or names.length % width or names.length > 1 << 24:
            reason = f"names of fields take {names.length} bytes, {width} each"
            raise CorruptFile(self._where, reason)
        raw = elements.bytes_of(names)
        fields = [
            raw[at : at + width].split(b"\0")[0].decode("utf-8", "replace")
            for at in range(0, len(raw), width)
        ]
        if len({*fields}) != len(fields) or "" in fields:
            raise CorruptFile(self._where, "a struct has two fields of one name, or one of none")
        return fields

    def _text(self, elements: Elements, matrix: _Matrix, name: str) -> None:
        element = elements.next(f"the text '{for_terminal(name)}'")
        encoding = TEXT.get(element.kind)
        if encoding is None:
            raise CorruptFile(self._where, f"'{for_terminal(name)}' is text of type {element.kind}")
        if element.length > _LONGEST_TEXT:
            self._opaque.append(f"{name}: text of {element.length} bytes")
            return
        if encoding[-2:] in ("16", "32"):
            encoding += "-le" if elements.order == "<" else "-be"
        text = elements.bytes_of(element).decode(encoding, "replace")
        rows = matrix.shape[0] if matrix.shape else 0
        lines = [text[row::rows].rstrip() for row in range(rows)] if rows > 1 else [text]
        self._claim(name, name in self._texts)
        self._texts[name] = "\n".join(lines)

    def _numbers(self, elements: Elements, matrix: _Matrix, name: str) -> None:
        dtype, given = _CLASSES[matrix.kind]
        stored = None
        parts = [self._part(elements, matrix, name)]
        if matrix.flags & _COMPLEX:
            parts.append(self._part(elements, matrix, name))
        encodings: list[Encoding] = []
        for kept, (mark, encoding) in parts:
            stored = mark if mark != dtype else stored
            encodings.append(Cast(encoding, kept, f"<{given}") if mark != dtype else encoding)
        shape = matrix.shape
        encoding, *imaginary = encodings
        if imaginary:
            width = int(given[1])
            encoding = Woven(encoding, imaginary[0], width)
            if dtype == "F32":
                dtype = "C64"
            else:
                shape, stored = (*shape, 2), "complex128" if dtype == "F64" else f"complex {dtype}"
        elif matrix.flags & _LOGICAL and dtype == "U8":
            dtype = "BOOL"
        self._claim(name, name in self.tensors)
        self.add(TensorInfo(name, dtype, shape, stored), encoding)

    def _part(
        self, elements: Elements, matrix: _Matrix, name: str
    ) -> tuple[str, tuple[str, Encoding]]:
        """Return how the numbers of one part are kept, row by row."""
        about = f"'{for_terminal(name)}'"
        element = elements.next(f"the numbers of {about}")
        if element.kind not in NUMBERS:
            raise CorruptFile(self._where, f"{about} has numbers of type {element.kind}")
        dtype, kept = NUMBERS[element.kind]
        if not is_exact(kept, _CLASSES[matrix.kind][1]):
            wanted = _CLASSES[matrix.kind][0]
            raise CorruptFile(self._where, f"{about} is {wanted} kept as {dtype}, which loses bits")
        width = int(kept[1])
        shape: tuple[int, ...] = matrix.shape
        if prod(filter(None, shape)) * 16 > LARGEST:
            raise CorruptFile(self._where, f"{about}: its shape {list(shape)} overflows 63 bits")
        if prod(shape) * width != element.length:
            said = f"{about}: shape {list(shape)} takes {prod(shape) * width} bytes"
            raise CorruptFile(self._where, f"{said}, its numbers have {element.length}")
        encoding: Encoding = Straight(elements.file, element.start)
        if sum(length > 1 for length in shape) > 1 and all(shape):
            band = PACKED_BAND if isinstance(elements.file, Unpacked) else BAND
            encoding = Columns(encoding, shape, width, band)
        if elements.order == ">" and width > 1:
            encoding = Swapped(encoding, width)
        return f"<{kept}", (dtype, encoding)

    def _claim(self, name: str, taken: bool) -> None:
        if taken:
            raise CorruptFile(self._where, f"it holds two variables called '{for_terminal(name)}'")


_PIECE = 1 << 18  # elements converted at a time


def is_exact(kept: str, given: str) -> bool:
    """Does every number of the one type have its like in the other?

    >>> is_exact("u1", "f8"), is_exact("f8", "f4"), is_exact("i2", "u4")
    (True, False, False)
    """
    if kept == given:
        return True
    (kind, width), (wanted, room) = ((each[0], int(each[1])) for each in (kept, given))
    if kind == "f" or (kind == "i" and wanted == "u"):
        return kind == wanted and width < room
    # MATLAB itself keeps doubles that are whole as 8-byte integers: they came from doubles.
    return width < room or given == "f8" or (kind == wanted and width <= room)


class Cast(NamedTuple):
    """Numbers that are stored in one type and read as another; both by NumPy's names."""

    stored: Encoding
    kept: str
    given: str

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Convert the numbers the range touches."""
        import numpy as np

        narrow, wide = np.dtype(self.kept), np.dtype(self.given)
        done = 0
        while done < len(buffer):
            first, skipped = divmod(start + done, wide.itemsize)
            last = min(-(-(start + len(buffer)) // wide.itemsize), first + _PIECE)
            numbers = bytearray((last - first) * narrow.itemsize)
            self.stored.read_into(first * narrow.itemsize, memoryview(numbers))
            data = np.frombuffer(numbers, narrow).astype(wide).tobytes()[skipped:]
            part = data[: len(buffer) - done]
            buffer[done : done + len(part)] = part
            done += len(part)
        return done


class Woven(NamedTuple):
    """Complex numbers: a real part and an imaginary part of `width` bytes in turn."""

    real: Encoding
    imaginary: Encoding
    width: int

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Weave the parts of the numbers the range touches."""
        import numpy as np

        done, both = 0, 2 * self.width
        while done < len(buffer):
            first, skipped = divmod(start + done, both)
            last = min(-(-(start + len(buffer)) // both), first + _PIECE)
            woven = np.empty((last - first, 2, self.width), np.uint8)
            for which, part in enumerate((self.real, self.imaginary)):
                numbers = bytearray((last - first) * self.width)
                part.read_into(first * self.width, memoryview(numbers))
                woven[:, which] = np.frombuffer(numbers, np.uint8).reshape(-1, self.width)
            data = woven.tobytes()[skipped : skipped + len(buffer) - done]
            buffer[done : done + len(data)] = data
            done += len(data)
        return done
