"""Rows and columns of a matrix that were multiplied: right = diag(rows) left diag(columns)."""

from __future__ import annotations

from math import prod, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.records import MOVED, Delta
from difflens.measure.scan import Scan
from difflens.models.anatomy.roles import is_parameter

from ...diff import Diff

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PROBED = 12  # rows that are read to see whether it is such a change at all
_FITTED = 96  # rows that the factors of columns are fitted to
_REST = 0.01  # part of ‖right - left‖² that factors may leave; rounding leaves less
_FLAT = 4e-3  # spread below which factors are one number: twice the rounding of BF16
_LEAST_COSINE, _MOST_COSINE = 0.05, 1 - 1e-5  # of both sides: neither strangers nor a multiple
_LEAST = 3  # rows and columns
_ROUNDS = 200  # at most, of alternating least squares

Matrix = tuple[str, str]  # names on both sides


class Diagonal(NamedTuple):
    """The factors of a matrix; a side of which all factors are one number has ones."""

    name: str  # on the left
    rows: NDArray[Any]
    columns: NDArray[Any]
    rest: float  # ‖right - diag(rows) left diag(columns)‖²

    @property
    def has_rows(self) -> bool:
        """Were rows multiplied by different factors?"""
        return bool((self.rows != 1).any())

    @property
    def has_columns(self) -> bool:
        """Were columns multiplied by different factors?"""
        return bool((self.columns != 1).any())


def turned_matrices(diff: Diff) -> list[Delta]:
    """List the float matrices that are no multiple of before, those that moved most first."""
    found = []
    for delta in diff.deltas:
        scan = delta.measured(Scan) if delta.kind in MOVED and _is_matrix(delta) else None
        if scan and scan.left_square_sum > 0 and scan.right_square_sum > 0:
            cosine = scan.dot / sqrt(scan.left_square_sum) / sqrt(scan.right_square_sum)
            if _LEAST_COSINE < cosine < _MOST_COSINE:
                found.append((cosine, delta.name, delta))
    return [delta for _, _, delta in sorted(found, key=lambda each: each[:2])]


def _is_matrix(delta: Delta) -> bool:
    left, right = delta.pair.left, delta.pair.right
    if not (left and right) or left.shape != right.shape or delta.pair.transform:
        return False
    if len(left.shape) < 2 or min(left.shape[0], prod(left.shape[1:])) < _LEAST:
        return False
    return is_parameter(delta.name, left.dtype, right.dtype) and "C64" not in (
        left.dtype,
        right.dtype,
    )


def probe_diagonal(diff: Diff, delta: Delta) -> bool:
    """Do a few rows look like such a change? Reads nothing else."""
    rows = _chosen(diff, delta, _PROBED)
    return rows is not None and _factors(*rows) is not None


def find_diagonal(diff: Diff, delta: Delta) -> Diagonal | None:
    """Fit the factors, and verify them on all of the matrix; None if they leave too much."""
    import numpy as np

    rows = _chosen(diff, delta, _FITTED)
    fitted = None if rows is None else _factors(*rows)
    left, right = delta.pair.left, delta.pair.right
    if fitted is None or left is None or right is None:
        return None
    columns = fitted[1]
    sides = diff.values("left", left.name), diff.values("right", right.name)
    factors, rest, moved = [], 0.0, 0.0
    for one, two in zip(sides[0].rows(), sides[1].rows(), strict=True):
        before, after = one.astype(np.float64), two.astype(np.float64)
        scaled = before * columns
        factor = _ratio((after * scaled).sum(axis=1), np.square(scaled).sum(axis=1))
        factors.append(factor)
        rest += float(np.square(after - factor[:, None] * scaled).sum())
        moved += float(np.square(after - before).sum())
    if not rest <= _REST * moved:
        return None
    return _normalised(left.name, np.concatenate(factors), columns, rest)


def _chosen(diff: Diff, delta: Delta, most: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    import numpy as np

    left, right = delta.pair.left, delta.pair.right
    if left is None or right is None:
        return None
    # As many as there are at most, so that none comes twice.
    rows = np.linspace(0, left.shape[0] - 1, min(left.shape[0], most)).astype(np.int64)
    before = diff.values("left", left.name).some_rows(rows.tolist()).astype(np.float64)
    after = diff.values("right", right.name).some_rows(rows.tolist()).astype(np.float64)
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        return None
    return before, after


def _factors(before: NDArray[Any], after: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Fit factors of rows and of columns by alternating least squares; None if they fit badly.

    As many numbers as there are factors can always be fitted, so that what fits must be many more.
    """
    import numpy as np

    if before.size < 3 * sum(before.shape) or not before.any():
        return None
    product, square = before * after, np.square(before)
    rows = np.ones(len(before))
    columns = np.ones(before.shape[1])
    for _ in range(_ROUNDS):
        columns = _ratio(rows @ product, np.square(rows) @ square)
        previous = rows
        rows = _ratio(product @ columns, square @ np.square(columns))
        if np.abs(rows - previous).max() <= 1e-9 * np.abs(rows).max():
            break
    rest = np.square(after - rows[:, None] * before * columns).sum()
    moved = np.square(after - before).sum()
    return (rows, columns) if moved > 0 and rest <= _REST * moved else None


def _ratio(above: NDArray[Any], below: NDArray[Any]) -> NDArray[Any]:
    """Divide; a factor of zeros is one, for any would do."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > 0, above / np.where(below > 0, below, 1), 1.0)


def _normalised(name: str, rows: NDArray[Any], columns: NDArray[Any], rest: float) -> Diagonal:
    """Move one common factor to the side that has others; ones where all are equal."""
    import numpy as np

    if is_flat(rows):
        columns, rows = columns * float(np.median(rows)), np.ones(len(rows))
    elif is_flat(columns):
        rows, columns = rows * float(np.median(columns)), np.ones(len(columns))
    return Diagonal(name, rows, columns, rest)


def is_flat(factors: NDArray[Any], most: float = _FLAT) -> bool:
    """Are they one number, but for rounding?"""
    import numpy as np

    middle = float(np.median(factors))
    return middle != 0 and float(np.quantile(np.abs(factors / middle - 1), 0.99)) <= most


def is_inverse(one: NDArray[Any], other: NDArray[Any], *, up_to_scale: bool = False) -> bool:
    """Do factors undo each other, number by number?"""
    import numpy as np

    if one.shape != other.shape:
        return False
    product = one * other
    if not is_flat(product, 4 * _FLAT):
        return False
    return up_to_scale or abs(float(np.median(product)) - 1) <= 4 * _FLAT
