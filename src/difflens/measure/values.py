"""One tensor's numbers, decoded as they are asked for: what whole-tensor measures read.

Pieces are float32 (float64 for F64 and wide integers), little by little, so that memory stays
bounded; `array` alone holds a whole tensor, and refuses one that is larger than `LARGEST`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from difflens.core.dtypes import OPAQUE
from difflens.core.errors import DifflensError, TooLarge

from .chunks import STEP, Side, read

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = 1 << 30  # bytes, decoded, that one tensor may take in memory at once
_WIDE = frozenset({"F64", "I64", "U64", "I32", "U32"})  # float32 would round them


class Values:
    """A tensor of one side: its header, and its numbers on demand."""

    def __init__(self, side: Side) -> None:
        """Keep where it is; nothing is read."""
        self._side = side
        self.info = side.info

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.info.shape

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """Its shape as a matrix: the first dimension against all others."""
        rows = self.info.shape[0] if self.info.shape else 1
        return rows, self.info.count // rows if rows else 0

    def pieces(self, elements: int = STEP) -> Iterator[NDArray[Any]]:
        """Yield its numbers in order, some at a time, flat."""
        for start in range(0, self.info.count, elements):
            yield self.span(start, min(start + elements, self.info.count))

    def rows(self, elements: int = STEP, lent: int | None = None) -> Iterator[NDArray[Any]]:
        """Yield whole rows of its matrix, as many at a time as hold about that many elements.

        With `lent`, 0 or 1, they may lie in that buffer of the thread: its next rows replace them.
        """
        rows, columns = self.matrix_shape
        step = max(1, elements // max(1, columns))
        for first in range(0, rows, step):
            last = min(first + step, rows)
            flat = self._lent(lent, first * columns, last * columns)
            yield flat.reshape(last - first, columns)

    def some_rows(self, chosen: Sequence[int]) -> NDArray[Any]:
        """Return the chosen rows of its matrix, in the order asked for."""
        import numpy as np

        _, columns = self.matrix_shape
        self._bounded(len(chosen) * columns)
        picked = [self.span(row * columns, (row + 1) * columns) for row in chosen]
        return np.stack(picked) if picked else np.empty((0, columns), np.float32)

    def array(self) -> NDArray[Any]:
        """Return the whole tensor in its own shape."""
        import numpy as np

        self._bounded(self.info.count)
        whole = np.empty(self.info.count, _type(self.info.dtype))
        start = 0
        for piece in self.pieces():
            whole[start : start + piece.size] = piece
            start += piece.size
        return whole.reshape(self.info.shape)

    def span(self, start: int, stop: int, buffer: int = 0) -> NDArray[Any]:
        """Return elements [start, stop), flat, as an array of their own.

        They are read through that one of the thread's two buffers.
        """
        import numpy as np

        even = start - start % 2  # two F4 share a byte
        parts = [
            _decoded(read(self._side, first, min(first + STEP, stop), buffer), self.info.dtype)
            for first in range(even, stop, STEP)
        ]
        whole = np.concatenate(parts) if len(parts) != 1 else parts[0]
        return whole[start - even : stop - even]

    def _lent(self, buffer: int | None, start: int, stop: int) -> NDArray[Any]:
        import numpy as np

        if buffer is None or self.info.dtype != "F32" or not 0 < stop - start <= STEP:
            return self.span(start, stop, buffer or 0)
        return np.frombuffer(read(self._side, start, stop, buffer), "<f4")

    def _bounded(self, elements: int) -> None:
        import numpy as np

        size = elements * np.dtype(_type(self.info.dtype)).itemsize
        if size > LARGEST:
            raise TooLarge(self.info.name, size, LARGEST)


def _type(dtype: str) -> str:
    return "f8" if dtype in _WIDE else "f4"


def _decoded(buffer: memoryview, dtype: str) -> NDArray[Any]:
    """Turn encoded bytes into numbers of their own, which outlive the buffer."""
    import numpy as np

    if dtype == "F32":
        return np.frombuffer(buffer, "<f4").astype(np.float32)
    if dtype == "F16":
        return np.frombuffer(buffer, "<f2").astype(np.float32)
    if dtype == "BF16":  # the upper half of a float32
        return (np.frombuffer(buffer, "<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype in OPAQUE or dtype == "C64":
        raise DifflensError(f"{dtype} has no single number an element")
    from .kernel.reference import decode

    return decode(buffer, dtype).astype(_type(dtype), copy=False)
