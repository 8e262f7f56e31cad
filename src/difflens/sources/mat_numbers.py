"""How MATLAB keeps numbers: in the narrowest type that holds them, complex ones in two parts."""

from __future__ import annotations

from typing import NamedTuple

from .containers.encodings import Encoding

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
    """Numbers kept in one type, given in another; both are NumPy's names."""

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
