"""The order of rows by how much they changed: a total order, whatever the locale.

Non-finite values first, then structural changes, then the largest relative
change; tensors whose left side is all zeros have none and are ordered by the
size of what they became. Absolute norms never decide: embeddings would always win.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..records import Figures, Row

_STRUCTURAL = {"reshaped", "added", "removed", "uncompared"}


def by_magnitude(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Order rows, largest change first; ties by name."""
    return tuple(sorted(rows, key=_key))


def _key(row: Row) -> tuple[int, float, float, str]:
    figures = row.figures or Figures()
    if figures.left_nonfinite or figures.right_nonfinite:
        rank = 0
    elif row.kind in _STRUCTURAL:
        rank = 1
    elif row.kind in {"changed", "recast", "within_epsilon"}:
        rank = 2
    else:
        rank = 3
    relative, absolute = figures.relative_l2, figures.l2
    if relative is None and absolute:  # left is all zeros: any change is infinitely large beside it
        return rank, -float("inf"), -absolute, row.name
    return rank, -(relative or 0.0), -(absolute or 0.0), row.name
