"""The data elements of a MATLAB 5 file: tags that say a type and a length, then the data.

long:   type (4 bytes), length (4 bytes), data, padded to 8 bytes
short:  length (2 bytes) above type (2 bytes) in one number, data in the next 4 bytes
types 1 to 7, 9, 12, 13 are numbers, 14 a matrix of elements, 15 one element packed with zlib
"""

from __future__ import annotations

from typing import NamedTuple

from difflens.core.errors import INCOMPLETE, CorruptFile, LimitExceeded
from difflens.core.protocols import ModelFile

from .containers.inner_files import Deflating, Part, Unpacked

MATRIX, COMPRESSED = 14, 15

# dtype and NumPy's name of the numbers an element may hold; 16 to 18 are UTF-8, 16 and 32.
NUMBERS = {
    1: ("I8", "i1"),
    2: ("U8", "u1"),
    3: ("I16", "i2"),
    4: ("U16", "u2"),
    5: ("I32", "i4"),
    6: ("U32", "u4"),
    7: ("F32", "f4"),
    9: ("F64", "f8"),
    12: ("I64", "i8"),
    13: ("U64", "u8"),
}
TEXT = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}


class Element(NamedTuple):
    """One element: its type, the place of its data, its length, and where the next begins."""

    kind: int
    start: int
    length: int
    next: int


class Elements:
    """The elements in a range of a file, taken one after another."""

    def __init__(self, file: ModelFile, start: int, stop: int, order: str, where: str) -> None:
        """Store a range that lies within the file; `order` is '<' or '>'."""
        self.file = file
        self.place = start
        self.stop = stop
        self.order = order
        self.where = where

    def next(self, what: str) -> Element:
        """Return the next element; raise where it does not fit."""
        start = self.place
        if start + 8 > self.stop:
            reason = f"{what} begins at byte {start}, what holds it ends at {self.stop}"
            raise CorruptFile(self.where, reason, hint=INCOMPLETE)
        tag = self.file.read(start, start + 8)
        kind, length = self._number(tag[:4]), self._number(tag[4:])
        if kind >> 16:
            kind, length = kind & 0xFFFF, kind >> 16
            found = Element(kind, start + 4, length, start + 8)
            if length > 4:
                raise CorruptFile(self.where, f"{what} is short and claims {length} bytes")
        else:
            end = start + 8 + length
            padded = end if kind == COMPRESSED else end + -length % 8
            found = Element(kind, start + 8, length, padded)
            if end > self.stop:
                reason = f"{what} ends at byte {end}, what holds it ends at {self.stop}"
                raise CorruptFile(self.where, reason, hint=INCOMPLETE)
        self.place = min(found.next, self.stop)
        return found

    def within(self, element: Element) -> Elements:
        """Return the elements a matrix is made of."""
        stop = element.start + element.length
        return Elements(self.file, element.start, stop, self.order, self.where)

    def bytes_of(self, element: Element) -> bytes:
        """Read the data of a small element."""
        return self.file.read(element.start, element.start + element.length)

    def numbers(self, element: Element, most: int, what: str) -> list[int]:
        """Read a few 4-byte numbers, signed."""
        if element.kind not in (5, 6) or element.length % 4 or element.length > 4 * most:
            said = f"type {element.kind} and {element.length} bytes"
            raise CorruptFile(self.where, f"{what} has {said}, up to {most} whole numbers fit")
        data = self.bytes_of(element)
        byteorder = "little" if self.order == "<" else "big"
        return [
            int.from_bytes(data[at : at + 4], byteorder, signed=True)  # type: ignore[arg-type]
            for at in range(0, len(data), 4)
        ]

    def unpacked(self, element: Element) -> Elements:
        """Return the one element that is packed in another."""
        packed = Part(self.file, element.start, element.length)
        about = f"the packed element at byte {element.start}"

        begin = Deflating(packed, 15, about)
        tag = begin().more(8)
        if len(tag) < 8:
            raise CorruptFile(self.where, f"{about} holds {len(tag)} bytes, a tag takes 8")
        size = 8 + self._number(tag[4:])
        most, ratio = self.file.limit("compressed_bytes"), self.file.limit("compressed_ratio")
        if size > most and size > ratio * element.length:
            reason = f"{about} unpacks from {element.length} bytes to {size}, the limit is {ratio}"
            hint = "raise it with --limit compressed_ratio=N if you trust the file"
            raise LimitExceeded(self.where, f"{reason} times", hint=hint)
        if self._number(tag[:4]) != MATRIX:
            raise CorruptFile(self.where, f"{about} holds no matrix")
        return Elements(Unpacked(packed, begin, size, about), 0, size, self.order, self.where)

    def _number(self, data: bytes) -> int:
        return int.from_bytes(data, "little" if self.order == "<" else "big")
