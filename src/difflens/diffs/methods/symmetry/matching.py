"""Orders of units that bring two models nearest: one group, then groups in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .slots import Group, Slot, by_unit, reordered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Orders = dict[str, dict[int, NDArray[Any]]]
    Arrays = Mapping[str, tuple[NDArray[Any], NDArray[Any]]]


_ROWS = 1024


def best_order(gain: NDArray[Any]) -> NDArray[Any]:
    """Return the order p that makes sum_i gain[i, p_i] largest.

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
    """Return the best order where every row finds its own best partner; None if some share one.

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


# Maximises sum <L, P R Q^T> over the orders of all groups that share tensors, one group at a time,
# each step a linear assignment (Ainsworth, Hayase & Srinivasa 2023, Git Re-Basin). A group that
# shares no tensor is solved exactly in one step.

_SWEEPS = 50
FEW = 256  # and where there are many units, than these
_MANY = 1024
COLUMNS = 1024  # a unit is recognised by no more of its weights in a tensor than these


class Aligned(NamedTuple):
    """The orders found, and how far the two sides lie apart before and after."""

    orders: Orders
    before: float  # sum ‖L - R‖²
    after: float  # sum ‖L - P R Q^T‖²
    left_norm: float  # sum ‖L‖²
    right_norm: float
    sweeps: int


def align_groups(found: list[Group], arrays: Arrays, restarts: int, seed: int) -> Aligned:
    """Align the groups of one component; the first start is the order as it is."""
    import numpy as np

    random = np.random.default_rng(seed)
    slots = _slots_by_tensor(found)
    still: Orders = {group.name: _still(group) for group in found}
    before, left, right = _energies(arrays, slots, still)
    best, lowest, sweeps = still, before, 0
    tries = restarts + 1 if len(found) > 1 else 1
    for attempt in range(tries):
        start = still if attempt == 0 else {g.name: _shuffled(g, random) for g in found}
        orders, done = _descend(found, arrays, slots, start, random)
        sweeps += done
        if _is_still(orders):
            continue
        distance = _energies(arrays, slots, orders)[0]
        if distance < lowest * (1 - 1e-12):
            best, lowest = orders, distance
    return Aligned(best, before, lowest, left, right, sweeps)


def align_wide(group: Group, arrays: Arrays) -> Aligned | None:
    """Align one group of too many units for a search, where each finds a partner of its own."""
    import numpy as np

    if len({slot.units for slot in group.slots}) > 1:
        return None
    chosen = [
        tuple(_some(by_unit(side, slot), FEW) for side in arrays[slot.name]) for slot in group.slots
    ]
    order = clear_order(*(np.concatenate(sides, axis=1) for sides in zip(*chosen, strict=True)))
    if order is None:
        return None
    slots, orders = _slots_by_tensor([group]), {group.name: {group.units: order}}
    before, left, right = _energies(arrays, slots, {group.name: _still(group)})
    after = _energies(arrays, slots, orders)[0]
    if after > before:
        return Aligned({group.name: _still(group)}, before, before, left, right, 1)
    return Aligned(orders, before, after, left, right, 1)


def _descend(
    found: list[Group],
    arrays: Arrays,
    slots: Mapping[str, list[tuple[str, Slot]]],
    start: Orders,
    random: Any,
) -> tuple[Orders, int]:
    """Solve group after group until none changes."""
    orders = dict(start)
    alone = len(found) == 1 and all(len(each) == 1 for each in slots.values())
    distance = 0.0 if alone else _energies(arrays, slots, orders)[0]
    for sweep in range(1, _SWEEPS + 1):
        trial = dict(orders)
        for index in random.permutation(len(found)).tolist():
            group = found[index]
            trial[group.name] = _solved(group, arrays, slots, trial)
        if alone:
            return trial, sweep
        reached = _energies(arrays, slots, trial)[0]
        if reached >= distance * (1 - 1e-12):
            return orders, sweep
        orders, distance = trial, reached
    return orders, _SWEEPS


def _solved(
    group: Group, arrays: Arrays, slots: Mapping[str, list[tuple[str, Slot]]], orders: Orders
) -> dict[int, NDArray[Any]]:
    gains: dict[int, NDArray[Any]] = {}
    for slot in group.slots:
        left, right = arrays[slot.name]
        for name, other in slots[slot.name]:
            if other != slot:
                right = reordered(right, other, orders[name][other.units])
        gain = _gain(by_unit(left, slot), by_unit(right, slot))
        gains[slot.units] = gains[slot.units] + gain if slot.units in gains else gain
    if len(gains) == 1:
        return {units: best_order(gain) for units, gain in gains.items()}
    few = min(gains)
    heads, pairs = best_heads(gains[group.units], gains[few])
    return {group.units: heads, few: pairs}


def _gain(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    columns, most = left.shape[1], FEW if len(left) > _MANY else COLUMNS
    gain: NDArray[Any] = _some(left, most) @ _some(right, most).T
    return gain * np.float32(columns / most) if columns > most else gain


def _some(rows: NDArray[Any], most: int) -> NDArray[Any]:
    """Take so many columns at most, the same ones of every matrix as wide."""
    import numpy as np

    columns = rows.shape[1]
    if columns <= most:
        return rows
    return rows[:, np.random.default_rng(columns).choice(columns, most, replace=False)]


def _energies(
    arrays: Arrays, slots: Mapping[str, list[tuple[str, Slot]]], orders: Orders
) -> tuple[float, float, float]:
    """Sum ‖L - P R Q^T‖², ‖L‖² and ‖R‖² over the tensors."""
    import numpy as np

    apart = lefts = rights = 0.0
    for name, (left, right) in arrays.items():
        moved = right
        for group, slot in slots.get(name, ()):
            moved = reordered(moved, slot, orders[group][slot.units])
        apart += float(np.square(left - moved).sum(dtype=np.float64))
        lefts += float(np.square(left).sum(dtype=np.float64))
        rights += float(np.square(right).sum(dtype=np.float64))
    return apart, lefts, rights


def _slots_by_tensor(found: list[Group]) -> dict[str, list[tuple[str, Slot]]]:
    slots: dict[str, list[tuple[str, Slot]]] = {}
    for group in found:
        for slot in group.slots:
            slots.setdefault(slot.name, []).append((group.name, slot))
    return slots


def _sizes(group: Group) -> Iterator[int]:
    yield from {slot.units for slot in group.slots}


def _still(group: Group) -> dict[int, NDArray[Any]]:
    import numpy as np

    return {units: np.arange(units) for units in _sizes(group)}


def _is_still(orders: Orders) -> bool:
    import numpy as np

    each = (order for group in orders.values() for order in group.values())
    return all(np.array_equal(order, np.arange(len(order))) for order in each)


def _shuffled(group: Group, random: Any) -> dict[int, NDArray[Any]]:
    """Shuffle the units; heads stay as they are, for their groups bind them."""
    sizes = set(_sizes(group))
    return (
        {units: random.permutation(units) for units in sizes} if len(sizes) == 1 else _still(group)
    )
