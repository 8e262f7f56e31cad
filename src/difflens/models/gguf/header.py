"""The header of a GGUF file: its keys and what it says of its tensors.

Every count and length is held against the bytes left before anything is read or made. Long arrays
(a tokenizer's words) are jumped over, never parsed, and shown as their length.
"""

from __future__ import annotations

import json
from struct import Struct, pack
from typing import NamedTuple

from difflens.core.errors import INCOMPLETE, CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import ModelFile

_TYPES = {
    0: ("uint8", "B"),
    1: ("int8", "b"),
    2: ("uint16", "H"),
    3: ("int16", "h"),
    4: ("uint32", "I"),
    5: ("int32", "i"),
    6: ("float32", "f"),
    7: ("bool", "B"),
    10: ("uint64", "Q"),
    11: ("int64", "q"),
    12: ("float64", "d"),
}
_STRING, _ARRAY = 8, 9
_VERSIONS = (1, 2, 3)
_LONGEST_NAME = 65_535  # bytes, of a key or of a tensor
_LONGEST_TEXT = 1 << 20  # bytes that are kept of a value
_SHORT_ARRAY, _SHORT_TEXT = 256, 8192  # elements and characters that are shown
_MOST_RANK = 4
_WINDOWS = 1 << 15, 1 << 22  # bytes read at once: at first, and at most


class Entry(NamedTuple):
    """What the header says of one tensor; dimensions fastest first, the offset from the data."""

    name: str
    dimensions: tuple[int, ...]
    kind: int
    offset: int


class Header(NamedTuple):
    """What a header holds; `integers` keeps the type and value of every key that is a whole number.

    It ends at byte `end`; `kept` are the strings of the one array that was asked for,
    or its bytes in one piece where it holds numbers.
    """

    big_endian: bool
    metadata: dict[str, str]
    integers: dict[str, tuple[str, int]]
    entries: list[Entry]
    end: int
    kept: tuple[bytes, ...] = ()


def read_header(file: ModelFile, keep: str = "") -> Header:
    """Read all keys and tensor entries; touch no tensor. `keep` names an array."""
    where = visible(str(file.path))
    if file.size < 8:
        reason = f"too short: the file has {file.size} bytes, its magic and version alone take 8"
        raise CorruptFile(where, reason, hint=INCOMPLETE)
    start = file.read(0, 8)
    if start[:4] != b"GGUF":
        raise CorruptFile(where, f"it begins with {start[:4].hex(' ')}, GGUF is wanted")
    big_endian = not any(start[4:6])  # no version is so high that its lower half were zeros
    version = int.from_bytes(start[4:], "big" if big_endian else "little")
    if version not in _VERSIONS:
        raise CorruptFile(where, f"GGUF version {version}, those from 1 to 3 are known")
    return _Reader(file, where, big_endian=big_endian, wide=version > 1).header(keep)


class _Reader:
    """A place in the header, and the bytes around it."""

    def __init__(self, file: ModelFile, where: str, *, big_endian: bool, wide: bool) -> None:
        self._file = file
        self._where = where
        self._big_endian = big_endian
        self._order = ">" if big_endian else "<"
        self._length = "Q" if wide else "I"
        self._at = 8
        self._window, self._begin = b"", 0
        self._next_window = _WINDOWS[0]
        self._room = file.limit("json_header")

    def header(self, keep: str) -> Header:
        tensors, keys = self._numbers(2 * self._length, "the counts")
        width = Struct(f"<{self._length}").size
        self._fits(keys, width + 6, "keys")
        metadata: dict[str, str] = {}
        integers: dict[str, tuple[str, int]] = {}
        kept: tuple[bytes, ...] = ()
        for number in range(1, keys + 1):
            key = self._name(f"key {number} of {keys}")
            if key in metadata:
                raise self._corrupt(f"the key '{for_terminal(key, 80)}' stands twice")
            if key == keep:
                kept = self._read_array(f"key '{for_terminal(key, 80)}'")
            metadata[key], integer = self._value(f"key '{for_terminal(key, 80)}'")
            if integer:
                integers[key] = integer
        self._fits(tensors, 2 * width + 16, "tensors")
        entries = [self._entry(f"tensor {number} of {tensors}") for number in range(1, tensors + 1)]
        return Header(self._big_endian, metadata, integers, entries, self._at, kept)

    def _read_array(self, what: str) -> tuple[bytes, ...]:
        """Read an array whole, and go back to its beginning: its strings, or its bytes in one."""
        begin = self._at
        kind, inner, count = self._numbers(f"II{self._length}", what)
        if kind != _ARRAY or inner == _ARRAY:
            raise self._corrupt(f"{what} is no array of strings or numbers")
        if inner != _STRING:
            return self._kept_numbers(inner, count, begin, what)
        self._holds(count * Struct(f"<{self._length}").size, f"{what} is an array of {count}")
        strings, room = [], self._file.limit("evidence_bytes")
        for _ in range(count):
            strings.append(self._read(self._text_length(what), what))
            room -= len(strings[-1])
            if room < 0:
                reason = f"{what} takes more than {self._file.limit('evidence_bytes')} bytes"
                hint = "raise it with --limit evidence_bytes=N"
                raise LimitExceeded(self._where, reason, hint=hint)
        self._at = begin
        self._window, self._begin = b"", begin
        return tuple(strings)

    def _kept_numbers(self, inner: int, count: int, begin: int, what: str) -> tuple[bytes, ...]:
        name, code = self._type(inner, what)
        size = count * Struct(f"<{code}").size
        self._holds(size, f"{what} is an array of {count} {name}, {size} bytes")
        if size > self._file.limit("evidence_bytes"):
            reason = f"{what} takes more than {self._file.limit('evidence_bytes')} bytes"
            hint = "raise it with --limit evidence_bytes=N"
            raise LimitExceeded(self._where, reason, hint=hint)
        data = self._file.read(self._at, self._at + size)
        self._at = begin
        return (data,)

    def _entry(self, what: str) -> Entry:
        name = self._name(what)
        what = f"tensor '{for_terminal(name, 80)}'"
        (rank,) = self._numbers("I", what)
        if not 1 <= rank <= _MOST_RANK:
            raise self._corrupt(f"{what} has {rank} dimensions, 1 to {_MOST_RANK} are possible")
        *dimensions, kind, offset = self._numbers(f"{rank * self._length}IQ", what)
        return Entry(name, tuple(dimensions), kind, offset)

    def _name(self, what: str) -> str:
        length = self._text_length(what)
        if not 0 < length <= _LONGEST_NAME:
            reason = f"{what} has a name of {length} bytes, 1 to {_LONGEST_NAME} are possible"
            raise self._corrupt(reason)
        data = self._read(length, what)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            shown = for_terminal(data.decode("utf-8", "backslashreplace"), 80)
            raise self._corrupt(f"{what} is called '{shown}', which is not UTF-8") from error

    def _value(self, what: str) -> tuple[str, tuple[str, int] | None]:
        """Return a value as text, and type and value where it is a whole number."""
        (kind,) = self._numbers("I", what)
        if kind == _STRING:
            return self._text(what), None
        if kind == _ARRAY:
            return self._array(what), None
        name, code = self._type(kind, what)
        (value,) = self._numbers(code, what)
        return self._shown(name, value, what), (name, value) if type(value) is int else None

    def _array(self, what: str) -> str:
        kind, count = self._numbers(f"I{self._length}", what)
        if kind == _ARRAY:
            raise self._corrupt(f"{what} is an array of arrays")
        if kind == _STRING:
            return self._strings(count, what)
        name, code = self._type(kind, what)
        size = count * Struct(f"<{code}").size
        self._holds(size, f"{what} is an array of {count} {name}, {size} bytes")
        if count > _SHORT_ARRAY:
            self._at += size
            return f"[{count} {name}]"
        values = self._numbers(f"{count}{code}", what)
        return f"[{', '.join(self._shown(name, value, what) for value in values)}]"

    def _strings(self, count: int, what: str) -> str:
        length = Struct(self._order + self._length)
        size = count * length.size
        self._holds(size, f"{what} is an array of {count} strings, {size} bytes at least")
        if count <= _SHORT_ARRAY:
            texts = [self._text(what) for _ in range(count)]
            shown = json.dumps(texts, ensure_ascii=False)
            return shown if len(shown) <= _SHORT_TEXT else f"[{count} strings]"
        left = count
        while left:
            window, place = self._around(length.size, what)
            last, unpack, width = len(window) - length.size, length.unpack_from, length.size
            while left and place <= last:
                place += width + unpack(window, place)[0]
                left -= 1
            self._at = self._begin + place
            self._holds(0, f"string {count - left} of {what} ends at byte {self._at}")
        return f"[{count} strings]"

    def _text(self, what: str) -> str:
        """Return a text, cut where it is very long; what is no UTF-8 is written as codes."""
        length = self._text_length(what)
        kept = min(length, _LONGEST_TEXT)
        self._room -= kept
        if self._room < 0:
            limit = self._file.limit("json_header")
            reason = f"metadata too large: its texts take more than the limit of {limit} bytes"
            raise LimitExceeded(self._where, reason, hint="raise it with --limit json_header=N")
        text = self._read(kept, what).decode("utf-8", "backslashreplace")
        self._at += length - kept
        return f"{text}…(+{length - kept} bytes)" if length > kept else text

    def _text_length(self, what: str) -> int:
        (length,) = self._numbers(self._length, what)
        self._holds(length, f"{what} has a text of {length} bytes")
        return int(length)

    def _type(self, kind: int, what: str) -> tuple[str, str]:
        if kind not in _TYPES:
            raise self._corrupt(f"{what} has values of type {kind}, those from 0 to 12 are known")
        return _TYPES[kind]

    def _shown(self, name: str, value: float, what: str) -> str:
        if name == "float32":
            return _shortest(value)
        if name != "bool":
            return repr(value)
        if value > 1:
            raise self._corrupt(f"{what} is a bool of {value}, 0 or 1 is wanted")
        return "true" if value else "false"

    def _numbers(self, codes: str, what: str) -> tuple[int, ...]:
        numbers = Struct(self._order + codes)
        window, place = self._around(numbers.size, what)
        self._at += numbers.size
        return numbers.unpack_from(window, place)

    def _read(self, count: int, what: str) -> bytes:
        window, place = self._around(count, what)
        self._at += count
        return window[place : place + count]

    def _around(self, count: int, what: str) -> tuple[bytes, int]:
        """Return bytes of the file, and where in them the next `count` lie."""
        self._holds(count, f"{what} needs {count} bytes")
        place = self._at - self._begin
        if place + count > len(self._window):
            size = max(count, self._next_window)
            self._window = self._file.read(self._at, min(self._at + size, self._file.size))
            self._begin, place = self._at, 0
            self._next_window = min(2 * self._next_window, _WINDOWS[1])
        return self._window, place

    def _fits(self, count: int, smallest: int, what: str) -> None:
        """Refuse a count that the rest of the file cannot hold, before anything is made for it."""
        left = self._file.size - self._at
        if count * smallest > left:
            reason = f"it counts {count} {what}, the {left} bytes left hold {left // smallest}"
            raise self._corrupt(f"{reason} at most", INCOMPLETE)

    def _holds(self, count: int, what: str) -> None:
        left = self._file.size - self._at
        if count > left:
            place = f"{left} are left" if left >= 0 else f"the file has {self._file.size}"
            raise self._corrupt(f"{what}, {place}", INCOMPLETE)

    def _corrupt(self, reason: str, hint: str = "") -> CorruptFile:
        return CorruptFile(self._where, reason, hint=hint)


def _shortest(value: float) -> str:
    """Write a 32-bit float with the fewest digits that identify it.

    >>> _shortest(9.999999747378752e-06)
    '1e-05'
    """
    for digits in (6, 7, 8, 9):
        short = float(f"{value:.{digits}g}")
        if pack("<f", short) == pack("<f", value):
            break
    return repr(short)
