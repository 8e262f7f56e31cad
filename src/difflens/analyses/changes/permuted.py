"""Are the values of the changed tensors those of before in another order?

Exact first: rows, columns, or both, found by what a row holds. Where that fails, the units of the
network's symmetry groups are aligned (`symmetry`), which also sees through added noise.
"""

from __future__ import annotations

from hashlib import blake2b
from math import isclose, sqrt
from typing import TYPE_CHECKING, Any

from ..symmetry.parts import Limits, changed_components, parts
from .change import Change, Numbers
from .energy import Moved, total

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WHOLE = 1 << 25  # elements up to which rows and columns are both looked at
_APART = 0.9, 2.5  # relative L2 that a reordering leads to: sqrt(2), less fixed points, plus noise
_ENERGY = 0.9  # part of ‖d‖² that must lie in the groups


def permuted(change: Change) -> Numbers | None:
    """Give the part of the rows that moved, or how much nearer an alignment brings them."""
    if not change.is_measured or any(each.delta.kind == "recast" for each in change.measured):
        return None
    if all(map(_has_same_values, change.measured)):
        moved = [_moved_rows(change, each) for each in change.measured]
        known = [share for share in moved if share is not None]
        if len(known) == len(moved):
            return {"tensors": len(known), "moved": max(known), "relative_l2_after": 0.0}
    return _aligned(change)


def _has_same_values(each: Moved) -> bool:
    """Do the sums agree, as they must if every value is still there?"""
    scan = each.scan
    exact = (
        scan.left_min == scan.right_min,
        scan.left_max == scan.right_max,
        scan.left_zeros == scan.right_zeros,
        scan.pairs == scan.count > 1,
    )
    near = (scan.left_abs_sum, scan.right_abs_sum), (scan.left_m2, scan.right_m2)
    return all(exact) and all(isclose(*sums, rel_tol=1e-6) for sums in near)


def _moved_rows(change: Change, each: Moved) -> float | None:
    """Give the part of the rows (or columns) not in their place; None where it is no order."""
    import numpy as np

    left, right = each.delta.pair.left, each.delta.pair.right
    if not (left and right) or left.shape != right.shape:
        return None
    sides = change.values(each.delta)
    if len(left.shape) == 1:
        before, after = (side.array() for side in sides)
        same = np.array_equal(np.sort(before), np.sort(after))
        return float((before != after).mean()) if same else None
    orders = [[_digest(row) for rows in side.rows() for row in rows] for side in sides]
    if sorted(orders[0]) == sorted(orders[1]):
        return _apart(*orders)
    if left.count > _WHOLE:
        return None
    return _both_ways(*(side.array().reshape(left.shape[0], -1) for side in sides))


def _both_ways(left: NDArray[Any], right: NDArray[Any]) -> float | None:
    """Match rows and columns by what they hold whatever its order, then see whether that is all."""
    import numpy as np

    keys = []
    for before, after in ((left, right), (left.T, right.T)):
        found = [[_digest(row) for row in np.sort(side, axis=1)] for side in (before, after)]
        if sorted(found[0]) != sorted(found[1]) or len(set(found[0])) < len(found[0]):
            return None
        keys.append(found)
    orders = []
    for before_keys, after_keys in keys:
        place = {key: index for index, key in enumerate(after_keys)}
        orders.append([place[key] for key in before_keys])
    if not np.array_equal(left, right[np.ix_(orders[0], orders[1])]):
        return None
    return max(_apart(*found) for found in keys)


def _digest(row: NDArray[Any]) -> bytes:
    return blake2b((row + 0.0).tobytes(), digest_size=16).digest()


def _apart(left: list[bytes], right: list[bytes]) -> float:
    return sum(a != b for a, b in zip(left, right, strict=True)) / max(1, len(left))


def _aligned(change: Change) -> Numbers | None:
    """Align where the distance is that of a reordering; the smallest part alone first."""
    lefts = total(each.scan.left_square_sum for each in change.measured)
    moved = total(each.scan.square_sum for each in change.measured)
    if not (lefts > 0 and _APART[0] <= sqrt(moved / lefts) <= _APART[1]):
        return None
    found = changed_components(change.diff, change.evidence)
    covered = {name for part in found for group in part for name in group.names}
    inside = total(
        each.scan.square_sum
        for each in change.measured
        if each.delta.pair.left and each.delta.pair.left.name in covered
    )
    if not found or inside < _ENERGY * moved:
        return None
    first = min(found, key=lambda part: sum(group.units for group in part))
    probe = next(parts(change.diff, [first], Limits(4096, 1 << 26, 0)))
    limit = float(change.thresholds["permuted_gain"])
    if probe.aligned is None or probe.aligned.after > limit**2 * probe.aligned.before:
        return None
    fields = change.ask("align").fields
    before, after = fields["relative_l2_before"], fields["relative_l2_after"]
    if before is None or after is None or after > limit * before:
        return None
    share = 1 - fields["fixed_points"]
    return {"tensors": len(change.measured), "moved": share, "relative_l2_after": after}
