"""How far each aligned row of a table moved, and which moved most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...diffs import Diff
from ...measure.embeddings import RowMoves, row_moves, row_squares
from .vocabulary import Alignment, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray


def drift(diff: Diff, table: Table, rows: Alignment) -> RowMoves | None:
    """Measure every aligned row; None where the sides have rows of different lengths."""
    import numpy as np

    if table.left.shape[1] != table.right.shape[1]:
        return None
    left = diff.values("left", table.left.name)
    if table.identical and np.array_equal(rows.left, rows.right):
        squares = row_squares(left)[rows.left]
        return RowMoves(squares, squares, np.zeros(len(squares)), squares)
    return row_moves(left, diff.values("right", table.right.name), rows.left, rows.right)


def top_movers(
    moves: RowMoves, rows: Alignment, most: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """List the rows that moved most, relative to themselves, and sum all of them up.

    A row that was all zeros has no relative distance: it stands first, by how long it is now.
    """
    import numpy as np

    relative, cosine = moves.relative_l2, moves.cosine
    moved = np.flatnonzero(moves.moved > 0)
    lengths = np.sqrt(moves.moved[moved])
    fresh = moves.left[moved] == 0
    order = np.lexsort((-lengths, -np.where(fresh, np.inf, relative[moved])))
    found = [_row(int(at), moves, rows) for at in moved[order][:most]]
    return found, {
        "rows": len(relative),
        "moved": len(moved),
        "not_finite": int((~np.isfinite(moves.moved)).sum()),
        **{f"relative_l2_{name}": value for name, value in _quantiles(relative).items()},
        **{f"cosine_{name}": value for name, value in _quantiles(cosine).items()},
    }


def _row(at: int, moves: RowMoves, rows: Alignment) -> dict[str, Any]:
    return {
        "row": int(rows.right[at]),
        "left_row": int(rows.left[at]),
        "token": rows.tokens[at] if rows.tokens is not None else None,
        "relative_l2": _number(moves.relative_l2[at]),
        "cosine": _number(moves.cosine[at]),
    }


def _number(value: Any) -> float | None:
    import numpy as np

    return float(value) if np.isfinite(value) else None


def _quantiles(values: NDArray[Any]) -> dict[str, float | None]:
    import numpy as np

    known = values[np.isfinite(values)]
    shares = {"min": 0.0, "median": 0.5, "p95": 0.95, "max": 1.0}
    if not len(known):
        return dict.fromkeys(shares)
    return {name: float(np.quantile(known, share)) for name, share in shares.items()}
