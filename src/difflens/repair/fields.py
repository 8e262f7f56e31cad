"""Numbers and byte strings one after another: how the index of a patch is written."""

from __future__ import annotations

from difflens.core.errors import CorruptFile
from difflens.core.limits import LARGEST


def number(value: int) -> bytes:
    r"""Write a number, seven bits to a byte.

    >>> number(300)
    b'\xac\x02'
    """
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(value: bytes) -> bytes:
    """Write a byte string with its length before it."""
    return number(len(value)) + value


class Fields:
    """Reads what `number` and `text` wrote; `CorruptFile` where the bytes end early."""

    def __init__(self, data: bytes, where: str) -> None:
        """Begin with the first byte; `where` names the file in errors."""
        self._data, self._at, self._where = data, 0, where

    def number(self, limit: int = LARGEST) -> int:
        """Read a number up to the limit."""
        value = shift = 0
        while True:
            byte = self.data(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
            if shift > 63:
                raise self.damaged("a number does not end")
        if value > limit:
            raise self.damaged(f"the number {value} is larger than {limit}")
        return value

    def data(self, count: int) -> bytes:
        """Read so many bytes."""
        if count > len(self._data) - self._at:
            raise self.damaged("it ends early")
        self._at += count
        return self._data[self._at - count : self._at]

    def text(self) -> bytes:
        """Read a byte string."""
        return self.data(self.number())

    def peek(self) -> bytes:
        """Return what was not read."""
        return self._data[self._at :]

    def left(self) -> int:
        """Return how many bytes were not read."""
        return len(self._data) - self._at

    def damaged(self, reason: str) -> CorruptFile:
        """Make the error for a damaged index."""
        return CorruptFile(self._where, f"the index of the patch is damaged: {reason}")
