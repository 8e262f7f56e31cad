"""Where in a matrix the change sits: norms of its rows and columns, and of both sides'."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, Self

from difflens.core.record import Record
from difflens.core.records import Delta

from .chunks import STEP
from .gram import finite
from .matrices import has_moved, has_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

_TOP = 0.01  # part of the entries whose share of ‖d‖² is reported
_BUCKETS = 1 << 16  # of |d|: the upper half of a float32


class Norms(Record, frozen=True):
    """Rows (first dimension) and columns (all others): zero ones, changed ones, energies of d.

    d = right - left over elements finite on both sides. `top_row_share` is the part of ‖d‖² in the
    row that moved most, `row_gini` 0 if all rows moved alike and near 1 where one did,
    `energy_top1` the part of ‖d‖² in the 1 % of the entries that moved most. Magnitudes are
    resolved to 0.8 %, and so is it where entries of the threshold's size share it. A duplicated
    row holds the same numbers as an earlier one and is not all zeros.
    Memory: 20 MB and eight numbers a row and a column.
    """

    rows: int
    columns: int
    left_zero_rows: int
    right_zero_rows: int
    newly_zero_rows: int
    left_zero_columns: int
    right_zero_columns: int
    newly_zero_columns: int
    left_duplicate_rows: int
    right_duplicate_rows: int
    newly_duplicate_rows: int
    rows_changed: int
    columns_changed: int
    top_row: int | None
    top_row_share: float | None
    row_gini: float | None
    energy_top1: float | None

    @classmethod
    def wants(cls, delta: Delta) -> bool:
        """Take float tensors of one shape, two dimensions at least, that differ."""
        return has_moved(delta) and delta.pair.left is not None and len(delta.pair.left.shape) > 1

    @classmethod
    def of(cls, left: Values | None, right: Values | None) -> Self | None:
        """Read both sides once, and rows that may be equal once more."""
        import numpy as np

        if left is None or right is None:
            return None
        seen = _Seen(*left.matrix_shape)
        for start, before, after in _blocks(left, right):
            seen.add(start, before, after)
        twins = [
            np.isin(np.arange(seen.rows), sorted(repeated_rows(side, squares)))
            for side, squares in ((left, seen.squares[0]), (right, seen.squares[1]))
        ]
        left_rows, right_rows = ~seen.row_used[0], ~seen.row_used[1]
        left_columns, right_columns = ~seen.column_used[0], ~seen.column_used[1]
        total = float(seen.energy.sum())
        known = np.isfinite(total) and total > 0
        return cls(
            seen.rows,
            seen.columns,
            int(left_rows.sum()),
            int(right_rows.sum()),
            int((right_rows & ~left_rows).sum()),
            int(left_columns.sum()),
            int(right_columns.sum()),
            int((right_columns & ~left_columns).sum()),
            int(twins[0].sum()),
            int(twins[1].sum()),
            int((twins[1] & ~twins[0]).sum()),
            int(seen.row_moved.sum()),
            int(seen.column_moved.sum()),
            int(seen.energy.argmax()) if known else None,
            float(seen.energy.max() / total) if known else None,
            gini(seen.energy) if known else None,
            seen.top_share(total) if known else None,
        )

    def figures(self) -> dict[str, Any]:
        """Return the counts and shares of what changed."""
        return {
            "rows_changed": self.rows_changed,
            "columns_changed": self.columns_changed,
            "newly_zero_rows": self.newly_zero_rows,
            "newly_zero_columns": self.newly_zero_columns,
            "newly_duplicate_rows": self.newly_duplicate_rows,
            "top_row_share": self.top_row_share,
            "row_gini": self.row_gini,
            "energy_top1": self.energy_top1,
        }


class _Seen:
    """What was seen of both sides so far, row by row and column by column."""

    def __init__(self, rows: int, columns: int) -> None:
        import numpy as np

        self.rows, self.columns = rows, columns
        self.squares = np.zeros((2, rows))
        self.row_used, self.column_used = np.zeros((2, rows), bool), np.zeros((2, columns), bool)
        self.energy = np.zeros(rows)
        self.row_moved, self.column_moved = np.zeros(rows, bool), np.zeros(columns, bool)
        self._counts, self._sums = np.zeros(_BUCKETS), np.zeros(_BUCKETS)

    def add(self, start: int, before: NDArray[Any], after: NDArray[Any]) -> None:
        import numpy as np

        place = slice(start, start + len(before))
        for side, block in enumerate((before, after)):
            used = block != 0
            self.row_used[side, place] = used.any(axis=1)
            self.column_used[side] |= used.any(axis=0)
            clean = finite(block)
            self.squares[side, place] = np.einsum("ij,ij->i", clean, clean)
        with np.errstate(invalid="ignore", over="ignore"):
            moved = after.astype(np.float64) - before
        bad = ~np.isfinite(moved)
        other = (before != after) & ~(np.isnan(before) & np.isnan(after))
        self.row_moved[place] = other.any(axis=1)
        self.column_moved |= other.any(axis=0)
        if bad.any():
            moved[bad] = 0
        squares = moved * moved
        self.energy[place] = squares.sum(axis=1)
        codes = np.abs(moved).astype(np.float32).view(np.uint32).ravel() >> np.uint32(16)
        self._counts += np.bincount(codes.view(np.int32), minlength=_BUCKETS)
        self._sums += np.bincount(codes.view(np.int32), squares.ravel(), _BUCKETS)

    def top_share(self, total: float) -> float:
        """Take the largest entries until there are 1 %, of the last bucket its part."""
        import numpy as np

        wanted = max(1.0, _TOP * self.rows * self.columns)
        counts, sums = self._counts[::-1], self._sums[::-1]
        ends = np.cumsum(counts)
        last = int(np.searchsorted(ends, wanted))
        before = float(ends[last] - counts[last])
        part = float(sums[last]) * (wanted - before) / float(counts[last])
        return min(1.0, (float(sums[:last].sum()) + part) / total)


def gini(energies: NDArray[Any]) -> float:
    """Σ (2i - n - 1) x_i / (n Σ x), x ascending (Gini 1912)."""
    import numpy as np

    n = len(energies)
    ranks = 2 * np.arange(1, n + 1) - n - 1
    return max(0.0, float((ranks * np.sort(energies)).sum() / (n * energies.sum())))


def _blocks(left: Values, right: Values) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
    start = 0
    for before, after in zip(left.rows(STEP), right.rows(STEP), strict=True):
        yield start, before, after
        start += len(before)


_TOGETHER = 256  # rows compared at a time


def repeated_rows(values: Values, squares: NDArray[Any]) -> set[int]:
    """Return the rows that equal an earlier one; rows of zeros do not count.

    `squares` are the rows' sums of squares, taken the same way for each: equal rows have equal
    sums, so that only rows whose sums are equal are read again and compared.
    """
    import numpy as np

    _, places, sizes = np.unique(squares, return_inverse=True, return_counts=True)
    alike = np.flatnonzero((sizes[places] > 1) & (squares > 0))
    alike = alike[np.argsort(places[alike], kind="stable")]
    ends = np.flatnonzero(np.diff(places[alike])) + 1
    groups = (group.tolist() for group in np.split(alike, ends))
    return set().union(*(_equal_to_earlier(values, group) for group in groups))


def _equal_to_earlier(values: Values, rows: list[int]) -> set[int]:
    import numpy as np

    seen: dict[bytes, int] = {}
    equal: set[int] = set()
    for first in range(0, len(rows), _TOGETHER):
        some = rows[first : first + _TOGETHER]
        for row, numbers in zip(some, values.some_rows(some), strict=True):
            key = (numbers + 0.0).astype(np.float64).tobytes()  # -0 is 0
            if seen.setdefault(key, row) != row:
                equal.add(row)
    return equal


# The squared norm of a tensor that both sides hold alike: the standard pass only compared it.


class Energy(Record, frozen=True):
    """‖W‖² over finite elements, None if it is too large. Memory: a few MB."""

    square_sum: float | None

    @classmethod
    def wants(cls, delta: Delta) -> bool:
        """Take what is bit-identical: all else has a scan."""
        left = delta.pair.left
        return delta.kind == "identical" and left is not None and has_numbers(left)

    @classmethod
    def of(cls, left: Values | None, right: Values | None) -> Self | None:  # noqa: ARG003
        """Read one side: the other holds the same."""
        import numpy as np

        if left is None:
            return None
        total = 0.0
        with np.errstate(over="ignore"):
            for piece in left.pieces():
                wide = finite(piece).astype(np.float64, copy=False)
                total += float(wide @ wide)
        return cls(total if isfinite(total) else None)

    def figures(self) -> dict[str, Any]:
        """Return the norm of both sides."""
        return {"norm": None if self.square_sum is None else sqrt(self.square_sum)}
