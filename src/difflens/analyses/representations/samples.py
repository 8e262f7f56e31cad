"""A bounded sample of rows of both sides, drawn with a fixed seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...diffs import Diff
from ...measure.embeddings import picked_rows
from .vocabulary import Alignment, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 0


class Sample(NamedTuple):
    """Rows of both sides that mean the same: which of the alignment they are, and their values."""

    chosen: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    dropped: int

    def unit(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give both sides with rows of length one."""
        return _unit(self.left), _unit(self.right)


def sampled(diff: Diff, table: Table, rows: Alignment, most: int) -> Sample:
    """Draw at most that many aligned rows; those with a zero or non-finite row are left out."""
    import numpy as np

    chosen = np.arange(len(rows.left))
    if len(chosen) > most:
        chosen = np.sort(np.random.default_rng(SEED).choice(len(chosen), most, replace=False))
    left = picked_rows(diff.values("left", table.left.name), rows.left[chosen])
    right = left
    if not (table.identical and np.array_equal(rows.left, rows.right)):
        right = picked_rows(diff.values("right", table.right.name), rows.right[chosen])
    usable = _usable(left) & _usable(right)
    dropped = int(len(chosen) - usable.sum())
    if dropped:
        chosen, left, right = chosen[usable], left[usable], right[usable]
    return Sample(chosen, left, right, dropped)


def _usable(rows: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.asarray(np.isfinite(rows).all(axis=1) & rows.any(axis=1))


def _unit(rows: NDArray[Any]) -> NDArray[Any]:
    """Scale rows to length one; by their largest first, so that none overflows."""
    import numpy as np

    scaled = rows / np.abs(rows).max(axis=1, keepdims=True)
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))
