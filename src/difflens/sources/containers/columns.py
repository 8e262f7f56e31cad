"""Arrays kept column by column, given row by row.

    stored, shape (2, 3):   a d  b e  c f      the first index runs fastest
    given:                  a b c  d e f       the last index runs fastest

Rows are gathered a band at a time: each band takes one short strip of every column. A larger band
means fewer passes over the columns, so where the file has to be unpacked it is as large as may be.
"""

from __future__ import annotations

import threading
from math import prod

from .encodings import Encoding

BAND = 8 << 20
PACKED_BAND = 64 << 20  # each band of a packed array unpacks it once more
_KEPT_BANDS = 2
_PIECE = 4 << 20  # strips nearer to each other than this are read together, where most is wanted


class Columns:
    """An array whose first index runs fastest, as one whose last index does."""

    def __init__(
        self, stored: Encoding, shape: tuple[int, ...], width: int, band: int = BAND
    ) -> None:
        """Take a shape of two dimensions or more; `width` is the bytes of one element."""
        self._stored = stored
        self._width = width
        # Bands run along the first axis whose lines are short enough; the axes before it are fixed.
        self._axis = next(a for a in range(len(shape)) if prod(shape[a + 1 :]) * width <= band)
        self._trailing = shape[self._axis + 1 :]
        self._along = shape[self._axis]
        self._before = shape[: self._axis]
        self._stride = prod(self._before)
        self._line = prod(self._trailing) * width
        fitting = min(band // max(1, self._line), band // (self._stride * width))
        self._rows = max(1, min(self._along, fitting))
        self._lock = threading.Lock()
        self._bands: dict[tuple[int, int], bytes] = {}

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Fill the buffer with the plain bytes from `start` on."""
        done = 0
        while done < len(buffer):
            line, skipped = divmod(start + done, self._line)
            block, row = divmod(line, self._along)
            first = row - row % self._rows
            band = self._band(block, first)
            skipped += (row - first) * self._line
            part = memoryview(band)[skipped : skipped + len(buffer) - done]
            buffer[done : done + len(part)] = part
            done += len(part)
        return done

    def _band(self, block: int, first: int) -> bytes:
        key = block, first
        with self._lock:
            band = self._bands.pop(key, None) or self._gather(block, first)
            self._bands[key] = band
            if len(self._bands) > _KEPT_BANDS:
                del self._bands[next(iter(self._bands))]
            return band

    def _gather(self, block: int, first: int) -> bytes:
        """Read a strip of every column, and turn them into rows."""
        import numpy as np

        rows = min(self._rows, self._along - first)
        stride = self._stride
        offset = first * stride + self._fixed(block)
        columns = prod(self._trailing)
        span, apart = (rows - 1) * stride + 1, stride * self._along
        strips = np.empty((columns, rows, self._width), np.uint8)
        together = max(1, _PIECE // (apart * self._width)) if span * 8 >= apart else 1
        raw = np.empty(((together - 1) * apart + span) * self._width, np.uint8)
        for column in range(0, columns, together):
            some = min(together, columns - column)
            piece = raw[: ((some - 1) * apart + span) * self._width]
            place = (offset + column * apart) * self._width
            self._stored.read_into(place, memoryview(piece))
            numbers = piece.reshape(-1, self._width)
            for at in range(some):
                strips[column + at] = numbers[at * apart : at * apart + span : stride]
        reverse = strips.reshape(*self._trailing[::-1], rows, self._width)
        last = reverse.ndim - 1
        return reverse.transpose(*reversed(range(last)), last).tobytes()

    def _fixed(self, block: int) -> int:
        """Give the place, in elements, of the indices before the axis of the bands."""
        place, stride = 0, self._stride
        for length in reversed(self._before):
            block, index = divmod(block, length)
            stride //= length
            place += index * stride
        return place
