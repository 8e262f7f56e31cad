"""Which rows or columns of a tensor hold the damage: those that moved unlike all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from difflens.core.dtypes import BITS, OPAQUE
from difflens.diffs.diff import Diff
from difflens.models.anatomy.roles import role
from difflens.stats.samples import robust_deviation

from .changes import Change
from .pieces import Piece, Spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FAR = 5.0  # robust deviations from which a row moved unlike the others
_TIMES = 3.0  # and how many times their median it moved
_MOST = 0.5  # part of the rows beyond which it is the tensor
_HEAD = 8  # rows of the smallest head
_LEAST = 4  # fewer rows are not told apart


def damaged_rows(diff: Diff, change: Change) -> Piece | None:
    """Choose the rows or columns that moved far beyond the others; None where none do."""
    if not change.is_plain or change.good is None or change.bad is None:
        return None
    if BITS[change.bad.dtype] % 8 or change.bad.dtype in (OPAQUE | {"C64"}):
        return None
    sums = _sums(diff, change)
    pieces = []
    for axis, moved in enumerate(sums):
        chosen = _standing_out(moved)
        if chosen is not None:
            share = float(chosen.mean())
            pieces.append((share, axis, spans_of(chosen)))
    if not pieces:
        return None
    _, axis, spans = min(pieces)
    return Piece(change.name, axis, spans)


def _sums(diff: Diff, change: Change) -> list[NDArray[Any]]:
    """Sum the squares of what moved, for each row and for each column."""
    import numpy as np

    good, bad = change.good, change.bad
    if good is None or bad is None or not bad.shape:
        return []
    left, right = diff.values("left", good.name), diff.values("right", bad.name)
    rows = np.zeros(bad.shape[0])
    columns = np.zeros(bad.shape[1] if len(bad.shape) > 1 else 1)
    first = 0
    with np.errstate(all="ignore"):
        for before, after in zip(left.rows(), right.rows(), strict=True):
            moved = np.square(after.astype(np.float64) - before)
            moved[~np.isfinite(moved)] = 1e300
            rows[first : first + len(moved)] = moved.sum(axis=1)
            columns += moved.reshape(len(moved), len(columns), -1).sum(axis=(0, 2))
            first += len(moved)
    return [rows, columns] if len(bad.shape) > 1 else [rows]


def _standing_out(moved: NDArray[Any]) -> NDArray[Any] | None:
    import numpy as np

    if len(moved) < _LEAST:
        return None
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(moved, 1e-300)) / 2
    middle = np.median(logs)
    spread = float(robust_deviation(logs, middle))
    chosen = logs - middle > max(_FAR * spread, float(np.log(_TIMES)))
    return chosen if 0 < chosen.sum() <= _MOST * len(moved) else None


def spans_of(chosen: NDArray[Any]) -> Spans:
    """Write chosen places as spans."""
    import numpy as np

    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(np.int8), [0]])))
    return tuple((int(start), int(stop)) for start, stop in edges.reshape(-1, 2))


def described(piece: Piece, length: int) -> str:
    """Say which rows they are.

    >>> described(Piece("h.0.attn.q_proj.weight", 0, ((32, 48),)), 64)
    'rows 32-47 (as large as head 2 of 4)'
    """
    if piece.axis is None:
        return ""
    number = sum(stop - start for start, stop in piece.spans)
    word = ("row", "column")[piece.axis] + ("s" if number > 1 else "")
    spans = [
        f"{start}-{stop - 1}" if stop - start > 1 else str(start) for start, stop in piece.spans
    ]
    text = f"{word} {', '.join(spans[:8])}" + (f" and {len(spans) - 8} more" * (len(spans) > 8))
    if len(piece.spans) == 1 and role(piece.name).startswith("attention_"):
        start, stop = piece.spans[0]
        size = stop - start
        if length % size == 0 and start % size == 0 and _HEAD <= size < length:
            text += f" (as large as head {start // size} of {length // size})"
    return text
