"""Rows of an embedding that mean the same on both sides: picked out, and how far each moved.

Rows are read in the order they lie in, a block at a time; memory is that of two blocks and of
three numbers a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.protocols import Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 1 << 21  # elements of one side held at once


class RowMoves(NamedTuple):
    """Of each aligned row: ‖l‖², ‖r‖², ‖r - l‖² and ⟨l, r⟩; NaN if a value is not finite."""

    left: NDArray[Any]
    right: NDArray[Any]
    moved: NDArray[Any]
    dot: NDArray[Any]

    @property
    def relative_l2(self) -> NDArray[Any]:
        """‖r - l‖ / ‖l‖; NaN if the left row is all zeros."""
        return _ratio(self.moved, self.left)

    @property
    def cosine(self) -> NDArray[Any]:
        """⟨l, r⟩ / (‖l‖ ‖r‖); NaN if a row is all zeros."""
        import numpy as np

        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            size = np.sqrt(self.left) * np.sqrt(self.right)
            return np.where(size > 0, self.dot / size, np.nan)


def row_moves(
    left: Values, right: Values, left_rows: NDArray[Any], right_rows: NDArray[Any]
) -> RowMoves:
    """Say of each aligned pair of rows how far it moved."""
    import numpy as np

    step = max(1, _BLOCK // max(1, left.info.shape[1]))
    sums = np.empty((4, len(left_rows)))
    with np.errstate(invalid="ignore", over="ignore"):
        for first in range(0, len(left_rows), step):
            span = slice(first, first + step)
            one = picked_rows(left, left_rows[span]).astype(np.float64)
            other = picked_rows(right, right_rows[span]).astype(np.float64)
            for place, each in enumerate((one * one, other * other, (other - one) ** 2)):
                sums[place, span] = each.sum(axis=1)
            sums[3, span] = (one * other).sum(axis=1)
    return RowMoves(*sums)


def picked_rows(values: Values, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the chosen rows in the order asked for; neighbours are read together."""
    import numpy as np

    columns = values.info.shape[1]
    if not len(rows):
        return np.empty((0, columns), np.float32)
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    runs = np.split(rows, breaks)
    parts = [values.span(int(run[0]) * columns, (int(run[-1]) + 1) * columns) for run in runs]
    return np.concatenate(parts).reshape(len(rows), columns)


def row_squares(values: Values) -> NDArray[Any]:
    """Return ‖row‖² of every row."""
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):
        parts = [np.einsum("ij,ij->i", block, block, dtype=np.float64) for block in values.rows()]
    return np.concatenate([*parts, np.empty(0)])


def _ratio(above: NDArray[Any], below: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return np.where(below > 0, np.sqrt(above) / np.sqrt(below), np.nan)
