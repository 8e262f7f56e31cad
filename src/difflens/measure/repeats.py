"""Rows of a tensor that hold the same numbers as an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

_TOGETHER = 256  # rows compared at a time


def repeated_rows(values: Values, squares: NDArray[Any]) -> set[int]:
    """Give the rows that equal an earlier one; rows of zeros do not count.

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
    found: set[int] = set()
    for first in range(0, len(rows), _TOGETHER):
        some = rows[first : first + _TOGETHER]
        for row, numbers in zip(some, values.some_rows(some), strict=True):
            key = (numbers + 0.0).astype(np.float64).tobytes()  # -0 is 0
            if seen.setdefault(key, row) != row:
                found.add(row)
    return found
