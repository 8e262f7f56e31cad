"""The order of rows by how much they changed: a total order, whatever the locale.

Non-finite values first, then structural changes, then the largest change by a key; tensors
whose left side is all zeros have no relative change and are ordered by the size of what they
became, before the others. Absolute norms are a key, never the default: embeddings would
always win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, isfinite
from typing import Any

from difflens.core.errors import UnknownName
from difflens.core.records import Row

from .rows import figures, is_from_zero

_STRUCTURAL = frozenset({"reshaped", "added", "removed", "uncompared"})
_MEASURED = frozenset({"changed", "recast", "within_epsilon"})

# Each gives a number that grows with the change. The distance of a cosine is 1 - cosine and the
# share of the energy is proportional to its square: the order is that of the figure itself.
KEYS: dict[str, tuple[str, Callable[[float], float]]] = {
    "relative_l2": ("relative_l2", lambda value: value),
    "cosine_distance": ("cosine", lambda value: -value),
    "sqnr": ("sqnr_db", lambda value: -value),
    "ulp_p99": ("ulp_p99", lambda value: value),
    "max_abs": ("max_abs", lambda value: value),
    "energy_share": ("l2", lambda value: value),
}


def by_magnitude(rows: Iterable[Row], key: str = "relative_l2") -> tuple[Row, ...]:
    """Order rows, largest change first; ties by name, what has no such figure last."""
    if key not in KEYS:
        raise UnknownName("order", key, KEYS)
    figure, growing = KEYS[key]
    return tuple(sorted(rows, key=lambda row: _place(row, figure, growing)))


def _place(
    row: Row, figure: str, growing: Callable[[float], float]
) -> tuple[int, float, float, str]:
    found = figures(row)
    size = _number(found["l2"]) or 0.0
    value = _number(found.get(figure))
    if value is not None:
        return _rank(row, found), -growing(value), -size, row.name
    # Beside nothing at all any change is infinitely large.
    return _rank(row, found), -inf if is_from_zero(row) else inf, -size, row.name


def _rank(row: Row, found: dict[str, Any]) -> int:
    sides = (row.left_stats, row.right_stats)
    one_sided = sum(side.nonfinite for side in sides if side)
    if found["left_nonfinite"] or found["right_nonfinite"] or one_sided:
        return 0
    if row.kind in _STRUCTURAL:
        return 1
    return 2 if row.kind in _MEASURED else 3


def _number(value: Any) -> float | None:
    return value if value is not None and isfinite(value) else None
