"""Which head on the right is which on the left, where they were re-ordered.

Heads of a group share keys and values, so groups are matched as wholes and heads within them: the
only re-orderings that leave the function as it was (methods 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...diffs import Diff
from .layers import Attention
from .reading import Layer, Reader

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDEST = 4096  # inputs of q, above which the products of all heads with all are not made


def matched_heads(diff: Diff, attention: Attention, layer: Layer) -> list[tuple[int, float]] | None:
    """Give for each right head its left partner and their mean circuit cosine.

    None where the sides are cut differently, or it would take too much memory.
    """
    left, right = layer.left, layer.right
    if left is None or right is None or layer.qk is None or layer.ov is None:
        return None
    alike = (left.heads, left.kv_heads, left.hidden) == (right.heads, right.kv_heads, right.hidden)
    if not alike or max(left.heads * left.size, right.heads * right.size) > WIDEST:
        return None
    reader = Reader(diff, attention.networks, {})
    scores = (
        _cosines(reader, layer, "q", "k", _outer(layer.qk.left_norm, layer.qk.right_norm))
        + _cosines(reader, layer, "o", "v", _outer(layer.ov.left_norm, layer.ov.right_norm))
    ) / 2
    return assigned(scores, left.group)


def assigned(scores: NDArray[Any], group: int) -> list[tuple[int, float]]:
    """Assign left heads (rows) to right heads (columns) by the largest sum, group to group.

    The Hungarian method, twice: heads within each pair of groups, then groups among themselves.
    """
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    groups = len(scores) // group
    inner: dict[tuple[int, int], tuple[NDArray[Any], NDArray[Any]]] = {}
    total = np.empty((groups, groups))
    for before in range(groups):
        for after in range(groups):
            part = scores[before * group :, after * group :][:group, :group]
            rows, columns = linear_sum_assignment(part, maximize=True)
            inner[before, after] = rows, columns
            total[before, after] = part[rows, columns].sum()
    partner: dict[int, tuple[int, float]] = {}
    for before, after in zip(*linear_sum_assignment(total, maximize=True), strict=True):
        for row, column in zip(*inner[before, after], strict=True):
            left, right = int(before * group + row), int(after * group + column)
            partner[right] = left, float(scores[left, right])
    return [partner[head] for head in range(len(scores))]


def _outer(left: NDArray[Any] | None, right: NDArray[Any] | None) -> NDArray[Any]:
    import numpy as np

    if left is None or right is None:
        raise ValueError("both sides of a layer have norms where both have heads")
    return np.outer(left, right)


def _cosines(
    reader: Reader, layer: Layer, first: str, second: str, norms: NDArray[Any]
) -> NDArray[Any]:
    """Give the circuit cosine of every left head with every right head."""
    import numpy as np

    one = _across(reader, layer, first)
    other = _across(reader, layer, second)
    group = len(one) // len(other)
    inner = np.empty(norms.shape)
    for head in range(len(one)):
        shared = np.repeat(other[head // group], group, axis=1)  # right heads share keys too
        inner[head] = np.einsum("ihj,ihj->h", one[head], shared, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(np.where(norms > 0, inner / norms, 0.0), posinf=0.0, neginf=0.0)


def _across(reader: Reader, layer: Layer, part: str) -> NDArray[Any]:
    """Multiply every left head's rows with every right head's: heads x size x heads x size."""
    import numpy as np

    if layer.left is None or layer.right is None:
        raise ValueError("only a layer that both sides have is matched")
    left, right = reader.rows("left", layer.left, part), reader.rows("right", layer.right, part)
    with np.errstate(invalid="ignore", over="ignore"):
        flat = left.reshape(-1, left.shape[2]) @ right.reshape(-1, right.shape[2]).T
    across: NDArray[Any] = flat.reshape(*left.shape[:2], *right.shape[:2])
    return across
