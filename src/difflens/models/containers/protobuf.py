"""Protobuf messages, field by field, wherever they lie in a file of any size.

    message   field field field ...            no length, no magic, no end mark
    field     tag value                        tag: varint, number << 3 | wire type
    value     0 varint   1 eight bytes   2 length, then that many bytes   5 four bytes
              3 ... 4 a group: fields between a start and an end tag, obsolete
    varint    seven bits a byte, lowest first, the high bit says that more follow: at most ten

The file is seen through one window: what is not asked for is jumped over, never read.
A message is walked, not built: a model of 10 GB costs what its field heads cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from difflens.core.errors import INCOMPLETE, CorruptFile, LimitExceeded
from difflens.core.escape import visible
from difflens.core.protocols import ModelFile

VARINT, FIXED64, BYTES, GROUP, END, FIXED32 = range(6)

WINDOW = 1 << 16
LONGEST_TEXT = 1 << 20
MOST_SCATTERED = 1 << 16  # values of one list that may be written one by one
_HEAD = 20  # a tag and a length take no more
_LARGEST_NUMBER = (1 << 29) - 1


class Field(NamedTuple):
    """One field: its number and kind, its value where that is a number, and where it lies."""

    number: int
    wire: int
    value: int
    start: int
    stop: int


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint; return it and the place after it, or (0, -1) if there is none.

    >>> varint(bytes([0xAC, 0x02]), 0)
    (300, 2)
    """
    value = shift = 0
    for place in range(at, min(at + 10, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value, place + 1) if value < 1 << 64 else (0, -1)
        shift += 7
    return 0, -1


def signed(value: int) -> int:
    """Read a 64-bit value as the int64 it stands for.

    >>> signed(2**64 - 1)
    -1
    """
    return value - (1 << 64) if value >> 63 else value


class Wire:
    """The fields of a file's messages, seen through one window; for one thread."""

    def __init__(self, file: ModelFile) -> None:
        """Look at a file; nothing is read before somebody asks."""
        self.file = file
        self.where = visible(str(file.path))
        self._depth = file.limit("protobuf_depth")
        self._begin = 0
        self._window = b""

    def fields(self, start: int, stop: int) -> Iterator[Field]:
        """Yield the fields of the message at [start, stop); groups are passed over."""
        at = start
        groups: list[int] = []
        while at < stop:
            number, wire, value, begin, at = self._field(at, stop)
            if wire == GROUP:
                groups.append(number)
                if len(groups) > self._depth:
                    raise self.too_deep()
            elif wire == END:
                if not groups or groups.pop() != number:
                    raise self.corrupt(begin, f"group {number} ends where it did not begin")
            elif not groups:
                yield Field(number, wire, value, begin, at)
        if groups:
            raise self.corrupt(stop, f"group {groups[-1]} does not end")

    def _field(self, at: int, stop: int) -> tuple[int, int, int, int, int]:
        """Read one field: its number, wire type, value, where that begins and where it ends."""
        here = at - self._begin
        if here < 0 or here + _HEAD > len(self._window):
            here = self._move(at)
        window = self._window
        tag, here = (window[here], here + 1) if window[here] < 0x80 else varint(window, here)
        number, wire = tag >> 3, tag & 7
        if here < 0 or not 0 < number <= _LARGEST_NUMBER:
            raise self.corrupt(at, "there is no field tag")
        begin = end = self._begin + here
        value = 0
        if wire in (VARINT, BYTES):
            value, here = varint(window, here)
            if here < 0:
                reason = f"field {number} begins with a number that does not end within ten bytes"
                raise self.corrupt(begin, reason)
            end = self._begin + here
            if wire == BYTES:
                begin, end, value = end, end + value, 0
        elif wire in (FIXED64, FIXED32):
            end = begin + (8 if wire == FIXED64 else 4)
        elif wire not in (GROUP, END):
            raise self.corrupt(at, f"field {number} has wire type {wire}, there are 0 to 5")
        if end > stop:
            reason = f"field {number} ends at byte {end}, what holds it at {stop}"
            raise CorruptFile(self.where, reason, hint=INCOMPLETE)
        if wire in (FIXED64, FIXED32):
            value = int.from_bytes(self.piece(begin, end), "little")
        return number, wire, value, begin, end

    def _move(self, at: int) -> int:
        """Move the window so that it begins at a byte, and say where that byte is in it."""
        inside = self._begin <= at < self._end
        if not inside or self._end < self.file.size:
            self._window = self.file.read(at, min(at + WINDOW, self.file.size))
            self._begin = at
        return at - self._begin

    @property
    def _end(self) -> int:
        return self._begin + len(self._window)

    def piece(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop), which were checked to lie in the file."""
        if self._begin <= start and stop <= self._end:
            return self._window[start - self._begin : stop - self._begin]
        return self.file.read(start, stop)

    def text(self, field: Field, longest: int = LONGEST_TEXT) -> str:
        """Return a field's text; what is no UTF-8 is shown by its bytes."""
        self.want(field, BYTES)
        if field.stop - field.start > longest:
            size = field.stop - field.start
            reason = f"the name at byte {field.start} has {size} bytes, the limit is {longest}"
            raise LimitExceeded(self.where, reason)
        return self.piece(field.start, field.stop).decode("utf-8", "backslashreplace")

    def brief(self, field: Field, longest: int = 10_000) -> str:
        """Return a field's text, cut with a count where it is very long."""
        self.want(field, BYTES)
        stop = min(field.stop, field.start + longest)
        text = self.piece(field.start, stop).decode("utf-8", "backslashreplace")
        return f"{text}…(+{field.stop - stop} bytes)" if stop < field.stop else text

    def numbers(self, field: Field, most: int) -> Iterator[int]:
        """Yield a repeated integer's values, one or packed; at most so many are looked at."""
        if field.wire == VARINT:
            yield field.value
            return
        self.want(field, BYTES)
        at = field.start
        while at < field.stop and most > 0:
            data = self.piece(at, min(at + 10, field.stop))
            value, length = varint(data, 0)
            if length < 0:
                raise self.corrupt(at, "a packed number does not end")
            yield value
            at += length
            most -= 1

    def scattered(self, fields: list[Field], width: int, *, fixed: bool = False) -> bytes:
        """Gather values written one by one, as writers without packing do; few of them."""
        data, mask = bytearray(), (1 << 8 * width) - 1
        for each in fields:
            if each.wire != BYTES:
                self.want(each, (FIXED32 if width == 4 else FIXED64) if fixed else VARINT)
                data += (each.value & mask).to_bytes(width, "little")
            elif fixed:
                data += self.piece(each.start, min(each.stop, each.start + width * MOST_SCATTERED))
            else:
                for value in self.numbers(each, MOST_SCATTERED + 1):
                    data += (value & mask).to_bytes(width, "little")
            if len(data) > width * MOST_SCATTERED:
                raise self.too_scattered(each)
        return bytes(data)

    def too_scattered(self, field: Field) -> LimitExceeded:
        """Make the error for lists whose values are written one by one, too many of them."""
        reason = f"over {MOST_SCATTERED} values are written one by one or in pieces"
        return LimitExceeded(self.where, f"at byte {field.start} {reason}", hint="pack them")

    def want(self, field: Field, wire: int) -> None:
        """Raise unless the field is of the kind its message says."""
        if field.wire != wire:
            reason = f"field {field.number} has wire type {field.wire}, {wire} is wanted"
            raise self.corrupt(field.start, reason)

    def corrupt(self, at: int, what: str) -> CorruptFile:
        """Make the error that says what is wrong at a byte."""
        return CorruptFile(self.where, f"at byte {at} {what}")

    def too_deep(self) -> LimitExceeded:
        """Make the error for messages nested beyond the limit."""
        reason = f"messages are nested deeper than {self._depth}, the limit"
        hint = "raise it with --limit protobuf_depth=N"
        return LimitExceeded(self.where, reason, hint=hint)
