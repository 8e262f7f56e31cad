"""Values that are all still there in another place: reordered, transposed, exchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import isclose, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.errors import TooLarge
from difflens.core.records import Delta
from difflens.measure.chunks import STEP
from difflens.measure.edits import digits
from difflens.measure.precision import rounded
from difflens.measure.scan import Scan

from ...diff import Diff
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


def stored_alike(
    tensor: Tensor, size: float | None = None
) -> Callable[[NDArray[Any]], NDArray[Any]] | None:
    """Return how storage changed values whose sizes add up to that; None if it did not.

    Cutting off makes values smaller by 0.35 units in the last place on average, rounding does not.
    """
    import numpy as np

    if not tensor.is_coarser:
        return None
    scan, to = tensor.scan, tensor.formats[1]
    size = scan.left_abs_sum if size is None else size
    nearest = scan.right_abs_sum > (1 - 0.35 / 2 * 2.0 ** -digits(to)) * size
    return lambda values: rounded(values.astype(np.float32), to, nearest=nearest)


def _may_be_reordered(tensor: Tensor) -> bool:
    import numpy as np

    scan, stored = tensor.scan, stored_alike(tensor)
    if stored is None:
        return has_same_values(scan)
    ends = stored(np.array([scan.left_min, scan.left_max], np.float32))
    near = 2.0 ** -digits(tensor.formats[1])
    return (
        scan.pairs == scan.count > 1
        and np.array_equal(ends, [scan.right_min, scan.right_max])
        and isclose(scan.left_abs_sum, scan.right_abs_sum, rel_tol=near)
        and tensor.moved > 0
    )


def by_order(tensor: Tensor) -> bool:
    """Name a tensor whose rows or columns lie in another order, or that is transposed."""
    if not _may_be_reordered(tensor):
        return False
    if _is_transposed(tensor):
        tensor.parts.append(Part("transposed", (), {}, tensor.energy))
        return True
    orders = _orders(tensor)
    if orders is None:
        return False
    moved = max((order.moved for order in orders), default=0.0)
    numbers = {"moved": moved, "orders": [order.of_units for order in orders]}
    tensor.parts.append(Part("permuted", (), numbers, tensor.energy))
    return True


def _is_transposed(tensor: Tensor) -> bool:
    import numpy as np

    shape, alike = tensor.shape, _alike(tensor)
    if len(shape) != 2 or not 1 < shape[0] == shape[1] <= _SIDE:
        return False
    corners = [
        side.some_rows([0, 1])[:, :2].astype(np.float64)
        for side in tensor.change.values(tensor.delta)
    ]
    if not np.array_equal(*alike(corners[0], corners[1].T)):
        return False
    sides = _read(tensor)
    return sides is not None and bool(np.array_equal(sides[0], sides[1].T))


def _alike(tensor: Tensor) -> Callable[..., tuple[NDArray[Any], NDArray[Any]]]:
    """Return what makes values of both sides equal where storage alone sets them apart."""
    stored = stored_alike(tensor)

    def alike(left: NDArray[Any], right: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        if stored is None:
            return left, right
        left = stored(left)
        return left, right.astype(left.dtype)

    return alike


def _read(tensor: Tensor) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Read both sides; None where one is too large for that."""
    try:
        left, right = (values.array() for values in tensor.change.values(tensor.delta))
    except TooLarge:
        return None
    return _alike(tensor)(left, right)


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


class _Order(NamedTuple):
    """Where the rows or the columns went: the part that moved, and the order of whole units."""

    moved: float
    of_units: tuple[int, ...] | None  # None where equal rows leave it open


def _orders(tensor: Tensor) -> list[_Order] | None:
    """Return the orders of rows and columns that make the right; None if there are none."""
    keys = _digests(tensor)
    if sorted(keys[0]) == sorted(keys[1]):
        return [_order(*keys)]
    if tensor.scan.count > _WHOLE or not 1 < tensor.rows < tensor.scan.count:
        return None
    sides = _read(tensor)
    return sides and _both_ways(*(side.reshape(tensor.rows, -1) for side in sides))


def _digests(tensor: Tensor) -> tuple[list[bytes], list[bytes]]:
    """Digest the rows of both sides, some of them in memory at a time."""
    alike, columns = _alike(tensor), tensor.scan.count // tensor.rows
    step = max(1, STEP // columns) * columns
    keys: tuple[list[bytes], list[bytes]] = ([], [])
    pieces = (values.pieces(step) for values in tensor.change.values(tensor.delta))
    for pair in zip(*pieces, strict=True):
        for found, side in zip(keys, alike(*pair), strict=True):
            found.extend(_digest(row) for row in side.reshape(-1, columns))
    return keys


def _both_ways(left: NDArray[Any], right: NDArray[Any]) -> list[_Order] | None:
    """Match rows and columns by what they hold whatever its order, then see whether that is all."""
    import numpy as np

    orders, places = [], []
    for before, after in ((left, right), (left.T, right.T)):
        keys = [[_digest(row) for row in np.sort(side, axis=1)] for side in (before, after)]
        if sorted(keys[0]) != sorted(keys[1]) or len(set(keys[0])) < len(keys[0]):
            return None
        place = {key: index for index, key in enumerate(keys[1])}
        places.append([place[key] for key in keys[0]])
        orders.append(_order(*keys))
    if not np.array_equal(left, right[np.ix_(*places)]):
        return None
    return [order for order in orders if order.moved]


def _digest(row: NDArray[Any]) -> bytes:
    from hashlib import blake2b  # 2 ms that few changes need

    return blake2b((row + 0.0).tobytes(), digest_size=16).digest()


def _order(left: list[bytes], right: list[bytes]) -> _Order:
    moved = sum(a != b for a, b in zip(left, right, strict=True)) / max(1, len(left))
    place = {key: index for index, key in enumerate(right)}
    if len(place) < len(right):
        return _Order(moved, None)
    return _Order(moved, _of_units([place[key] for key in left]))


def _of_units(places: list[int]) -> tuple[int, ...]:
    """Reduce an order of rows to that of units: of gates that go together, of heads in one piece.

    >>> _of_units([1, 0, 3, 2]), _of_units([2, 3, 0, 1])
    ((1, 0), (1, 0))
    """
    count = len(places)
    for gates in range(count // 2, 1, -1):
        size = count // gates
        if count % gates == 0 and all(
            place == places[at % size] + at - at % size for at, place in enumerate(places)
        ):
            return _of_units(places[:size])
    for size in range(count // 2, 1, -1):
        if count % size == 0 and all(
            place == places[at - at % size] + at % size and places[at - at % size] % size == 0
            for at, place in enumerate(places)
        ):
            return tuple(place // size for place in places[::size])
    return tuple(places)


def are_of_one(chosen: Iterable[Tensor]) -> bool:
    """Is each order of units in two places at least: where a unit is made, and where it is read?

    Where equal rows leave an order open, it may be any.
    """
    orders = Counter(
        order
        for tensor in chosen
        for part in tensor.parts
        for order in part.numbers.get("orders", ())
    )
    open_ = orders.pop(None, 0)
    return sum(number == 1 for number in orders.values()) <= open_


# Does the function stay? The groups of units that may change places together say so.


def aligned_rest(change: Change, chosen: Iterable[Tensor]) -> tuple[float, float] | None:
    """Return the relative L2 before and after aligning, over these; None if they are in no group.

    0 after: every unit found its place, so that the reordered network computes what it did.
    """
    from ..symmetry.parts import changed_components

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
    from ..symmetry.parts import Limits, changed_components, parts  # networks of what may move

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
    used: set[str] = set()
    for place, one in enumerate(chosen):
        for other in chosen[place + 1 :]:
            if one.shape != other.shape or one.scan.count < 2 or used & {one.name, other.name}:
                continue
            if _holds(change, one, other) and _holds(change, other, one):
                found.append((one, other))
                used |= {one.name, other.name}
    return found


def _holds(change: Change, one: Tensor, other: Tensor) -> bool:
    """Are the values of `one` on the left those of `other` on the right?"""
    import numpy as np

    near = 2.0 ** -digits(other.formats[1])
    if not isclose(one.scan.left_abs_sum, other.scan.right_abs_sum, rel_tol=near):
        return False
    left, _ = change.values(one.delta)
    _, right = change.values(other.delta)
    stored = stored_alike(other, one.scan.left_abs_sum) or (lambda values: values)
    pieces = zip(left.pieces(), right.pieces(), strict=True)
    return all(bool(np.array_equal(stored(before), after)) for before, after in pieces)
