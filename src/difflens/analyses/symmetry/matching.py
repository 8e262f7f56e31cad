"""The best one-to-one match of units by a linear assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS = 1024


def best_order(gain: NDArray[Any]) -> NDArray[Any]:
    """Give the order p that makes sum_i gain[i, p_i] largest.

    Where every row has its largest gain in another column the answer needs no search, and where
    that is the diagonal nothing moves; else a linear assignment (Jonker & Volgenant 1987) is made.
    """
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    rows, columns = gain.shape
    if rows == columns and np.all(np.diagonal(gain) >= gain.max(axis=1)):
        return np.arange(rows)
    order: NDArray[Any] = gain.argmax(axis=1)
    if np.bincount(order, minlength=columns).max(initial=0) > 1:
        order = linear_sum_assignment(gain, maximize=True)[1]
    return order


def clear_order(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any] | None:
    """Give the best order where every row finds its own best partner; None where some share one.

    Takes the rows some at a time, for a matrix of all gains may not fit in memory.
    """
    import numpy as np

    order = np.empty(len(left), np.intp)
    for start in range(0, len(left), _ROWS):
        gain = left[start : start + _ROWS] @ right.T
        best = gain.argmax(axis=1)
        own = np.arange(start, start + len(gain))
        stays = gain[np.arange(len(gain)), own] >= gain.max(axis=1)
        order[start : start + _ROWS] = np.where(stays, own, best)
    return order if len(np.unique(order)) == len(order) else None


def best_heads(heads: NDArray[Any], pairs: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Order query heads within their kv groups, and the groups among themselves, exactly.

    The gain of group g in the place of h is that of its key and value plus the best match of their
    query heads; the groups are then matched by these gains.
    """
    import numpy as np

    count, groups = len(heads), len(pairs)
    each = count // groups
    inner = {}
    total = pairs.astype(np.float64)
    for g in range(groups):
        for h in range(groups):
            block = heads[g * each : (g + 1) * each, h * each : (h + 1) * each]
            inner[g, h] = best_order(block)
            total[g, h] += block[np.arange(each), inner[g, h]].sum()
    outer = best_order(total)
    order = [h * each + inner[g, h] for g, h in enumerate(outer.tolist())]
    return np.concatenate(order), outer


def match_rows(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Match every row of the left with its own row of the right by cosine."""
    return best_order(_unit(left) @ _unit(right).T)


def _unit(rows: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)
