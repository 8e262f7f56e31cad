"""Arrays that are stored column by column, read row by row.

    stored, shape (2, 3):   a d  b e  c f      the first index runs fastest
    given:                  a b c  d e f       the last index runs fastest

Rows are gathered a band at a time: each band takes one short strip of every column. A larger band
means fewer passes over the columns, so where the file has to be unpacked it is as large as may be.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any

from difflens.core.encodings import extents_of
from difflens.core.once import Call, as_call
from difflens.core.protocols import Encoding, Extent

from .blocks import BLOCKS, Turns

if TYPE_CHECKING:
    from numpy.typing import NDArray

BAND = 16 << 20
PACKED_BAND = 32 << 20  # each band of a packed array unpacks it once more
_PIECE = 4 << 20  # bytes of several columns that are read together
_CALL = 8192  # reading so many bytes that nobody wants costs as much as another call
_NUMBERS = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}


class Columns:
    """An array whose first index runs fastest, as one whose last index does."""

    def __init__(
        self, stored: Encoding, shape: tuple[int, ...], width: int, band: int = BAND
    ) -> None:
        """Plan the bands of a shape with two or more axes; `width` is the size of an element."""
        self._stored = stored
        self._width = width
        self._made_of = stored, shape, width, band
        # Bands run along the first axis whose lines are short enough; the axes before it are fixed.
        self._axis = next(a for a in range(len(shape)) if prod(shape[a + 1 :]) * width <= band)
        self._trailing = shape[self._axis + 1 :]
        self._along = shape[self._axis]
        self._before = shape[: self._axis]
        self._stride = prod(self._before)
        self._line = prod(self._trailing) * width
        fitting = min(band // max(1, self._line), band // (self._stride * width))
        self._rows = max(1, min(self._along, fitting))
        self._turns = Turns(self._window)
        self._serial = BLOCKS.serial()

    def __reduce__(self) -> Call:
        """Make it once in another process."""
        return as_call(Columns, *self._made_of)

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

    def extents(self, start: int, stop: int) -> Iterable[Extent]:
        """Announce all of it with its beginning, if it is one band, which is read at once."""
        del stop
        is_one = not self._before and self._rows == self._along
        return extents_of(self._stored, 0, self._along * self._line) if is_one and not start else ()

    def _band(self, block: int, first: int) -> bytes:
        place = block * -(-self._along // self._rows) + first // self._rows
        self._turns.at(place)
        band = BLOCKS.get(self._serial, place)
        if band is not None:
            return band
        with self._turns.lock:
            self._turns.wait(place)
            band = BLOCKS.get(self._serial, place)
            if band is None:
                band = self._gather(block, first)
                BLOCKS.put(self._serial, place, band)
            return band

    def _window(self) -> int:
        """Say how many bands apart threads may read: two where there is room, else one."""
        return int(BLOCKS.share() >= 2 * self._rows * self._line)

    def _gather(self, block: int, first: int) -> bytes:
        """Read a strip of every column, and turn them into rows."""
        import numpy as np

        rows = min(self._rows, self._along - first)
        strips = np.empty((prod(self._trailing), rows), _NUMBERS[self._width])
        offset = first * self._stride + self._fixed(block)
        span, apart = (rows - 1) * self._stride + 1, self._stride * self._along
        if (apart - span) * self._width > _CALL:
            raw = np.empty(span, strips.dtype)
            for column, strip in enumerate(strips):
                piece = strip if span == rows else raw
                self._read(offset + column * apart, piece)
                if piece is raw:
                    strip[:] = raw[:: self._stride]
        else:
            together = max(1, _PIECE // (apart * self._width))
            raw = np.empty((together, apart), strips.dtype)
            for column in range(0, len(strips), together):
                some = min(together, len(strips) - column)
                last = (some - 1) * apart + span
                self._read(offset + column * apart, raw.reshape(-1)[:last])
                strips[column : column + some] = raw[:some, : span : self._stride]
        return strips.reshape(*self._trailing[::-1], rows).T.tobytes()

    def _read(self, place: int, numbers: NDArray[Any]) -> None:
        view: Any = numbers.view("u1")
        self._stored.read_into(place * self._width, memoryview(view))

    def _fixed(self, block: int) -> int:
        """Return the place, in elements, of the indices before the axis of the bands."""
        place, stride = 0, self._stride
        for length in reversed(self._before):
            block, index = divmod(block, length)
            stride //= length
            place += index * stride
        return place
