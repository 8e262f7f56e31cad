"""Values that are all still there in another place: reordered, transposed, exchanged."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from math import isclose, sqrt
from typing import TYPE_CHECKING, Any

from difflens.core.records import Delta
from difflens.measure.scan import Scan

from ...diff import Diff
from ..symmetry.parts import Limits, changed_components, parts
from .change import Change
from .energy import is_float, total
from .parts import Part, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Exact first: rows, columns, or both, found by what a row holds. Where that fails, the units of the
# network's symmetry groups are aligned (`symmetry`), which also sees through added noise.

_WHOLE = 1 << 25  # elements up to which rows and columns are both looked at
_SIDE = 1 << 13  # of a square matrix that is compared with its transpose
_ENERGY = 0.9  # part of ‖d‖² that must lie in the groups
_ALIKE = 0.1  # how much the norms of two orders of the same values may differ, for noise


def has_same_values(scan: Scan) -> bool:
    """Do the sums agree, as they must if every value is still there?"""
    exact = (
        scan.left_min == scan.right_min,
        scan.left_max == scan.right_max,
        scan.left_zeros == scan.right_zeros,
        scan.pairs == scan.count > 1,
    )
    near = (scan.left_abs_sum, scan.right_abs_sum), (scan.left_m2, scan.right_m2)
    return all(exact) and all(isclose(*sums, rel_tol=1e-6) for sums in near)


def by_order(tensor: Tensor) -> bool:
    """Name a tensor whose rows or columns lie in another order, or that is transposed."""
    if not has_same_values(tensor.scan):
        return False
    left, right = tensor.change.values(tensor.delta)
    square = len(tensor.shape) == 2 and tensor.shape[0] == tensor.shape[1] <= _SIDE
    if square and _is_transposed(left, right):
        tensor.parts.append(Part("transposed", (), {}, tensor.energy))
        return True
    moved = _moved_rows(tensor, left, right)
    if moved is None:
        return False
    tensor.parts.append(Part("permuted", (), {"moved": moved}, tensor.energy))
    return True


def _is_transposed(left: Any, right: Any) -> bool:
    import numpy as np

    rows = left.some_rows([0, 1])
    whole = right.array()
    if not np.array_equal(rows, whole[:, :2].T):
        return False
    return bool(np.array_equal(left.array(), whole.T))


def transposed_shapes(change: Change) -> list[Delta]:
    """List the matrices that are reshaped because rows and columns changed places."""
    return [delta for delta in change.differing if is_turned(change.diff, delta)]


def is_turned(diff: Diff, delta: Delta) -> bool:
    """Does a matrix have another shape only because its rows and columns changed places?"""
    import numpy as np

    left, right = delta.pair.left, delta.pair.right
    if delta.kind != "reshaped" or not (left and right) or not is_float(delta):
        return False
    if len(left.shape) != 2 or left.shape != right.shape[::-1] or left.count > _WHOLE:
        return False
    before = diff.values("left", left.name, delta.pair)
    after = diff.values("right", right.name, delta.pair)
    return bool(np.array_equal(before.array(), after.array().T))


def _moved_rows(tensor: Tensor, before: Any, after: Any) -> float | None:
    """Return the part of the rows (or columns) not in their place; None if it is no order."""
    import numpy as np

    if len(tensor.shape) == 1:
        sides = before.array(), after.array()
        same = np.array_equal(np.sort(sides[0]), np.sort(sides[1]))
        return float((sides[0] != sides[1]).mean()) if same else None
    orders = [[_digest(row) for rows in side.rows() for row in rows] for side in (before, after)]
    if sorted(orders[0]) == sorted(orders[1]):
        return _apart(*orders)
    if tensor.scan.count > _WHOLE:
        return None
    return _both_ways(*(side.array().reshape(tensor.rows, -1) for side in (before, after)))


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


# Does the function stay? The groups of units that may change places together say so.


def aligned_rest(change: Change, chosen: Iterable[Tensor]) -> tuple[float, float] | None:
    """Return the relative L2 before and after aligning, over these; None if they are in no group.

    0 after: every unit found its place, so that the reordered network computes what it did.
    """
    names = {tensor.delta.pair.left.name for tensor in chosen if tensor.delta.pair.left}
    found = changed_components(change.diff, change.evidence)
    covered = {name for part in found for group in part for name in group.names}
    if not names <= covered:
        return None
    fields = change.answer.ask("align").fields
    before, after = fields.get("relative_l2_before"), fields.get("relative_l2_after")
    return None if before is None or after is None else (before, after)


def by_alignment(change: Change, chosen: list[Tensor]) -> dict[str, Any] | None:
    """Align what looks like other values of the same size; the smallest part alone first."""
    alike = [tensor for tensor in chosen if _is_alike(tensor)]
    moved = total(tensor.energy for tensor in chosen)
    found = changed_components(change.diff, change.evidence) if alike else []
    # Components that were only cast have no order to find.
    names = {_left(each) for each in alike}
    found = [part for part in found if any(names & set(group.names) for group in part)]
    covered = {name for part in found for group in part for name in group.names}
    inside = total(each.energy for each in alike if _left(each) in covered)
    if not found or inside < _ENERGY * moved:
        return None
    first = min(found, key=lambda part: sum(group.units for group in part))
    probe = next(parts(change.diff, [first], Limits(4096, 1 << 26, 0)))
    limit = float(change.answer["permuted_gain"])
    if probe.aligned is None or probe.aligned.after > limit**2 * probe.aligned.before:
        return None
    fields = change.answer.ask("align").fields
    before, after = fields.get("relative_l2_before"), fields.get("relative_l2_after")
    if before is None or after is None or after > limit * before:
        return None
    return {"moved": 1 - fields["fixed_points"], "relative_l2_after": after}


def _left(tensor: Tensor) -> str:
    return tensor.delta.pair.left.name if tensor.delta.pair.left else ""


def _is_alike(tensor: Tensor) -> bool:
    scan = tensor.scan
    left, right = sqrt(scan.left_square_sum), sqrt(scan.right_square_sum)
    return abs(left - right) <= _ALIKE * max(left, right) and scan.square_sum > 0


# Two tensors that changed places: what one side says of the one, the other says of the other.


def exchanged(change: Change, chosen: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Pair the tensors that hold each other's values."""
    found: list[tuple[Tensor, Tensor]] = []
    waiting: dict[tuple[Any, ...], list[Tensor]] = {}
    for tensor in chosen:
        waiting.setdefault(_key(tensor, "left"), []).append(tensor)
    used: set[str] = set()
    for tensor in chosen:
        if tensor.name in used or tensor.scan.count < 2:
            continue
        for other in waiting.get(_key(tensor, "right"), []):
            if (
                other.name in used
                or other is tensor
                or _key(other, "right") != _key(tensor, "left")
            ):
                continue
            if _holds(change, tensor, other) and _holds(change, other, tensor):
                found.append((tensor, other))
                used |= {tensor.name, other.name}
                break
    return found


def _key(tensor: Tensor, side: str) -> tuple[Any, ...]:
    scan = tensor.scan
    ends = (getattr(scan, f"{side}_{name}") for name in ("min", "max", "zeros"))
    return (tensor.shape, *ends, float(f"{getattr(scan, f'{side}_abs_sum'):.5g}"))


def _holds(change: Change, one: Tensor, other: Tensor) -> bool:
    """Are the values of `one` on the left those of `other` on the right?"""
    import numpy as np

    left, _ = change.values(one.delta)
    _, right = change.values(other.delta)
    pieces = zip(left.pieces(), right.pieces(), strict=True)
    return all(bool(np.array_equal(before, after)) for before, after in pieces)
