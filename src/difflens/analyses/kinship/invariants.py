"""What survives a rotation inside a head: the products of query and key.

cos(Q_l^T K_l, Q_r^T K_r) = <Q_l Q_r^T, K_l K_r^T> / sqrt(<Q_l Q_l^T, K_l K_l^T> ...), so that only
matrices of the head's own size are made (the invariants of HuRef, Zeng et al. 2023).
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from ..symmetry.slots import Group, Slot
from .layers import Load

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Circuits(NamedTuple):
    """Cosines of the query-key product of each head with its partner, and with the next head."""

    own: list[float]
    other: list[float]


def circuits(groups: tuple[Group, Group], loads: tuple[Load, Load]) -> Circuits | None:
    """Compare the heads of one attention; None where they are laid out in no known way."""
    left, right = (_heads(group, load) for group, load in zip(groups, loads, strict=True))
    if left is None or right is None or left[0].shape != right[0].shape:
        return None
    count = len(left[0])
    own = [_cosine(left, right, i, i) for i in range(count)]
    other = [_cosine(left, right, i, (i + 1) % count) for i in range(count)] if count > 1 else []
    return Circuits([c for c in own if c is not None], [c for c in other if c is not None])


def _heads(group: Group, load: Load) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Give queries and keys as [heads, head size, in], a key for every query."""
    import numpy as np

    query, key, fused = group.slot("q"), group.slot("k"), group.slot("qkv")
    if fused:
        whole = _shaped(load(fused), fused)
        return whole[0], whole[1]
    if not (query and key):
        return None
    queries, keys = _shaped(load(query), query)[0], _shaped(load(key), key)[0]
    return queries, np.repeat(keys, query.units // key.units, axis=0)


def _shaped(array: NDArray[Any], slot: Slot) -> NDArray[Any]:
    import numpy as np

    moved = np.moveaxis(array, slot.axis, 0)
    return moved.reshape(slot.blocks, slot.units, slot.inner, -1)


def _cosine(left: Any, right: Any, i: int, j: int) -> float | None:
    inner = _product((left[0][i], left[1][i]), (right[0][j], right[1][j]))
    sizes = [
        _product((side[0][at], side[1][at]), (side[0][at], side[1][at]))
        for side, at in ((left, i), (right, j))
    ]
    whole = sqrt(max(0.0, sizes[0])) * sqrt(max(0.0, sizes[1]))
    value = inner / whole if whole > 0 else float("nan")
    return max(-1.0, min(1.0, value)) if value == value else None  # noqa: PLR0124  NaN


def _product(left: Any, right: Any) -> float:
    import numpy as np

    queries, keys = left[0] @ right[0].T, left[1] @ right[1].T
    return float((queries.astype(np.float64) * keys).sum())
