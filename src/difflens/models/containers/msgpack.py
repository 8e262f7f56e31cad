"""MessagePack, walked without loading it: large values stay in the file, as places.

80-8f, de, df   maps          90-9f, dc, dd   lists         a0-bf, d9-db   texts
00-7f, cc-cf    whole numbers above zero      e0-ff, d0-d3  below zero too
c0 c2 c3        nothing, no, yes              ca cb         floats
c4-c6           bytes                         d4-d8, c7-c9  extensions: a type, then bytes
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal
from difflens.core.protocols import ModelFile

_PAGE = 1 << 16
_DEEPEST = 64
_LONGEST_TEXT = 1 << 16
_SIMPLE: dict[int, Any] = {0xC0: None, 0xC2: False, 0xC3: True}
_SCALARS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
# What a length is counted in, and how many bytes it takes.
_LENGTHS = {
    0xC4: ("bytes", 1),
    0xC5: ("bytes", 2),
    0xC6: ("bytes", 4),
    0xC7: ("extension", 1),
    0xC8: ("extension", 2),
    0xC9: ("extension", 4),
    0xD9: ("text", 1),
    0xDA: ("text", 2),
    0xDB: ("text", 4),
    0xDC: ("list", 2),
    0xDD: ("list", 4),
    0xDE: ("map", 2),
    0xDF: ("map", 4),
}


class Blob(NamedTuple):
    """Bytes that stay in the file; `code` is the type of an extension, or None."""

    start: int
    length: int
    code: int | None = None


class Scanner:
    """Walks over a range of a file; texts, numbers, maps and lists are made, bytes are not."""

    def __init__(
        self, file: ModelFile, where: str, start: int = 0, stop: int | None = None
    ) -> None:
        """Store a range that lies within the file."""
        self.place = start
        self.stop = file.size if stop is None else stop
        self.where = where
        self._file = file
        self._page = b""
        self._page_start = start
        self._left = self._most = file.limit("pickle_nodes")

    def value(self, make: Callable[[Blob], Any] = lambda blob: blob, depth: int = 0) -> Any:
        """Return the next value; `make` sees every run of bytes and every extension."""
        self._left -= 1
        if self._left < 0:
            reason = f"it holds more than {self._most} values"
            raise LimitExceeded(self.where, reason, hint="raise it with --limit pickle_nodes=N")
        first = self._read(1)[0]
        if first < 0x80 or first >= 0xE0:
            return first if first < 0x80 else first - 256
        if first in _SIMPLE:
            return _SIMPLE[first]
        if first in _SCALARS:
            form = _SCALARS[first]
            return struct.unpack(form, self._read(struct.calcsize(form)))[0]
        kind, length = self._length(first)
        if kind in {"map", "list"}:
            return self._many(kind, length, make, depth)
        code = int.from_bytes(self._read(1), signed=True) if kind == "extension" else None
        if length > self.stop - self.place:
            self.fail(f"{kind} of {length} bytes, {self.stop - self.place} are left")
        if kind == "text" and length <= _LONGEST_TEXT:
            return self._text(length)
        blob = Blob(self.place, length, code)
        self.place += length
        return make(blob)

    def fail(self, what: str) -> NoReturn:
        """Raise, naming the place."""
        raise CorruptFile(self.where, f"at byte {self.place}: {what}")

    def _length(self, first: int) -> tuple[str, int]:
        """Return what a value is that has a length, and that length."""
        if first < 0x90:
            return "map", first & 0xF
        if first < 0xA0:
            return "list", first & 0xF
        if first < 0xC0:
            return "text", first & 0x1F
        if 0xD4 <= first <= 0xD8:
            return "extension", 1 << (first - 0xD4)
        if first not in _LENGTHS:
            self.fail(f"byte {first:02x} begins no value")
        kind, width = _LENGTHS[first]
        return kind, int.from_bytes(self._read(width), "big")

    def _many(self, kind: str, length: int, make: Callable[[Blob], Any], depth: int) -> Any:
        if depth >= _DEEPEST:
            raise LimitExceeded(self.where, f"it is nested more than {_DEEPEST} deep")
        if length * (2 if kind == "map" else 1) > self.stop - self.place:
            self.fail(f"a {kind} of {length}, {self.stop - self.place} bytes are left")
        if kind == "list":
            return [self.value(make, depth + 1) for _ in range(length)]
        found: dict[str, Any] = {}
        for _ in range(length):
            key = self.value(make, depth + 1)
            if not isinstance(key, str | int):
                self.fail("a key that is neither text nor a whole number")
            if str(key) in found:
                self.fail(f"the key '{for_terminal(str(key))}' stands twice")
            found[str(key)] = self.value(make, depth + 1)
        return found

    def _text(self, length: int) -> str:
        try:
            return self._read(length).decode()
        except UnicodeDecodeError:
            self.fail("a text that is no UTF-8")

    def _read(self, size: int) -> bytes:
        if size > self.stop - self.place:
            self.fail(f"{size} bytes are wanted, the file ends")
        begin = self.place - self._page_start
        if begin + size > len(self._page):
            self._page_start = self.place
            self._page = self._file.read(self.place, min(self.place + _PAGE, self.stop))
            begin = 0
        self.place += size
        return self._page[begin : begin + size]
