"""Rows of a table that grew or shrank: which of them are the same as before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.protocols import Values
from difflens.measure.embeddings import picked_rows, row_moves

from .records import is_rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SOME = 256  # rows that show whether only rounding moved them
_RELATED = 0.7  # correlation above which aligned rows are the same rows, trained on


class Rows(NamedTuple):
    """What became of the rows of a table; `order` is how rows were found to be the same."""

    order: str  # "place", "content" or "none"
    left: NDArray[Any]  # aligned rows
    right: NDArray[Any]
    identical: int
    relative_l2: float
    rounded: bool = False  # moved by rounding at most

    @property
    def is_related(self) -> bool:
        """Were shared rows found at all?"""
        return self.order != "none"


def compare_rows(left: Values, right: Values, places: tuple[NDArray[Any], NDArray[Any]]) -> Rows:
    """Compare the rows that should be the same; where they are not, look for equal rows."""
    rows = _measured(left, right, *places, "place")
    if rows.is_related:
        return rows
    before, after = _by_digest(left), _by_digest(right)
    common = [(row, after[key]) for key, row in before.items() if key in after]
    if 2 * len(common) > min(len(before), len(after)):
        import numpy as np

        pairs = np.array(common, np.int64)
        return Rows("content", pairs[:, 0], pairs[:, 1], len(common), 0.0)
    return rows


def _measured(
    left: Values, right: Values, rows: NDArray[Any], others: NDArray[Any], order: str
) -> Rows:
    import numpy as np

    moves = row_moves(left, right, rows, others)
    known = np.isfinite(moves.moved)
    sums = [float(each[known].sum()) for each in (moves.left, moves.right, moves.moved, moves.dot)]
    before, after, moved, dot = sums
    size = (before * after) ** 0.5
    related = bool(known.any()) and (moved == 0 or (size > 0 and dot / size > _RELATED))
    relative = (moved / before) ** 0.5 if before > 0 else 0.0
    identical = int((moves.moved == 0).sum())
    rounded = related and identical < len(rows) and _is_rounded(left, right, rows, others)
    return Rows(order if related else "none", rows, others, identical, relative, rounded)


def _is_rounded(left: Values, right: Values, rows: NDArray[Any], others: NDArray[Any]) -> bool:
    """Look at some rows: did they move by rounding only?"""
    step = max(1, len(rows) // _SOME)
    return is_rounded(picked_rows(left, rows[::step]), picked_rows(right, others[::step]))


def _by_digest(values: Values) -> dict[bytes, int]:
    """Return the place of each row by what it holds; the first where several are equal."""
    from hashlib import blake2b  # 2 ms that few changes need

    places: dict[bytes, int] = {}
    row = 0
    for block in values.rows():
        for each in block + 0.0:
            places.setdefault(blake2b(each.tobytes(), digest_size=16).digest(), row)
            row += 1
    return places
