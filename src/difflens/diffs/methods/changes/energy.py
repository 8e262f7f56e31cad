"""How far the parameters moved, all of them and by tensor, and what is rounding only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from math import fsum, isfinite, sqrt
from typing import Any, NamedTuple, TypeVar

from difflens.core.records import MOVED, Delta
from difflens.measure.matrices import has_numbers
from difflens.measure.norms import Energy
from difflens.measure.precision import sample
from difflens.measure.scan import Scan
from difflens.models.anatomy.roles import block, is_parameter, role

from ...diff import Diff

# All figures are over moved parameters: floats of equal shape that are not
# bit-identical. What is identical adds nothing to a difference, and its own norm
# is not measured by default, so it stays out of both sums.

KEPT = MOVED | {"identical"}
GroupT = TypeVar("GroupT", bound=Hashable)


class Moved(NamedTuple):
    """A parameter that is not the same bits on both sides, with its scan."""

    delta: Delta
    scan: Scan

    @property
    def name(self) -> str:
        """The name of its pair."""
        return self.delta.name


def moved_parameters(diff: Diff) -> list[Moved]:
    """List the parameters that moved and were measured."""
    return [
        Moved(delta, scan)
        for delta, scan in diff.measured(Scan)
        if delta.kind in MOVED and is_float(delta)
    ]


def is_comparable(diff: Diff) -> bool:
    """Does any distance exist: was a float parameter compared, or does nothing differ?"""
    compared = any(delta.kind in KEPT and is_float(delta) for delta in diff.deltas)
    return compared or not diff.changed


def is_float(delta: Delta) -> bool:
    """Is it a float parameter on every side that has it?"""
    sides = (delta.pair.left, delta.pair.right)
    return is_parameter(delta.name, *(info.dtype for info in sides if info))


def relative_l2(moved: Iterable[Moved]) -> float | None:
    """sqrt(sum ‖d‖²) / sqrt(sum ‖left‖²); 0 if nothing moved, None if left is all zeros."""
    scans = [each.scan for each in moved]
    energy = total(scan.square_sum for scan in scans)
    if energy == 0:
        return 0.0
    share = _ratio(energy, total(scan.left_square_sum for scan in scans))
    return None if share is None else sqrt(share)


def whole_relative_l2(diff: Diff, moved: list[Moved]) -> float | None:
    """Relate the distance to all float parameters of the left model, the unmoved ones too.

    The norms of bit-identical tensors are taken of samples: reading them again would cost a pass.
    """
    if not moved:
        return 0.0
    names = {each.name for each in moved}
    still = sum(
        _sampled_square_sum(diff, delta)
        for delta in diff.deltas
        if delta.kind == "identical" and is_float(delta) and delta.name not in names
    )
    share = _ratio(
        total(each.scan.square_sum for each in moved),
        still + total(each.scan.left_square_sum for each in moved),
    )
    return None if share is None else sqrt(share)


def _sampled_square_sum(diff: Diff, delta: Delta) -> float:
    import numpy as np

    info = delta.pair.left
    if info is None or not info.count or not has_numbers(info):
        return 0.0
    numbers = sample(diff.values("left", info.name, delta.pair)).astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]
    with np.errstate(over="ignore"):
        return float(np.square(numbers).mean()) * info.count if numbers.size else 0.0


def median_relative_l2(moved: Iterable[Moved]) -> float | None:
    """Take the median over tensors, so that a huge embedding does not hide the rest."""
    scans = [each.scan for each in moved]
    values = [value for scan in scans if (value := scan.relative_l2) is not None]
    if scans and not values:
        return None
    values.sort()
    middle = len(values) // 2
    return (values[middle] + values[~middle]) / 2 if values else 0.0


def share_by_role(moved: list[Moved]) -> dict[str, float] | None:
    """Return each role's part of the whole squared difference, largest first."""
    energies = {
        name: total(each.scan.square_sum for each in group)
        for name, group in _grouped(moved, lambda each: role(each.name)).items()
    }
    whole = total(energies.values())
    ordered = sorted(energies.items(), key=lambda item: (-item[1], item[0]))
    if not (whole > 0 and isfinite(whole)):
        return None
    return {name: energy / whole for name, energy in ordered}


def depth_profile(diff: Diff, moved: list[Moved]) -> list[dict[str, Any]]:
    """List the blocks by depth: relative L2 of what moved there, 0 if nothing did."""
    still = {
        place
        for delta in diff.deltas
        if delta.kind == "identical" and is_float(delta) and (place := block(delta.name))
    }
    groups = _grouped(moved, lambda each: block(each.name))
    places = sorted(still | {place for place in groups if place})
    whole = total(each.scan.square_sum for each in moved)
    return [
        {
            "block": f"{stack}.{index}".lstrip("."),
            "relative_l2": relative_l2(groups.get((stack, index), ())),
            "share": _share(groups.get((stack, index), ()), whole),
        }
        for stack, index in places
    ]


def concentration(moved: list[Moved]) -> dict[str, float] | None:
    """Say how unevenly the energy lies: part of the five largest tensors, and Gini's index.

    G = 2 sum(i e_i) / (n sum(e_i)) - (n + 1) / n, with e_1 <= ... <= e_n (Gini 1912).
    """
    energies = sorted(each.scan.square_sum for each in moved)
    whole = total(energies)
    if not (whole > 0 and isfinite(whole)):
        return None
    n = len(energies)
    ranked = total(rank * (energy / whole) for rank, energy in enumerate(energies, 1))
    return {
        "top5_share": total(energies[-5:]) / whole,
        "gini": max(0.0, 2 * ranked / n - (n + 1) / n),
    }


def total(values: Iterable[float]) -> float:
    """Add up whatever the order; infinity or NaN if the sum is no number."""
    known = list(values)
    try:
        return fsum(known)
    except (OverflowError, ValueError):  # too large, or infinities of both signs
        return sum(known)


def _share(moved: Iterable[Moved], whole: float) -> float | None:
    return _ratio(total(each.scan.square_sum for each in moved), whole) if whole else 0.0


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 and isfinite(whole) and isfinite(part) else None


def _grouped(moved: list[Moved], key: Callable[[Moved], GroupT]) -> dict[GroupT, list[Moved]]:
    groups: dict[GroupT, list[Moved]] = defaultdict(list)
    for each in moved:
        groups[key(each)].append(each)
    return groups


def is_rounding_only(scan: Scan) -> bool:
    """Did no element move by more than storage rounding, and none stop being finite?"""
    return scan.over_rounding == 0 and scan.left_nonfinite == scan.right_nonfinite


class Weight(NamedTuple):
    """Squared norms of one parameter that both models hold in one shape."""

    name: str
    left: float
    right: float
    moved: float  # ‖right - left‖²
    max_moved: float
    dropped: int = 0  # elements that are not finite on both sides


class Pooled(NamedTuple):
    """Norms over all parameters together; None if nothing was compared or one is too large."""

    left: float | None
    right: float | None
    moved: float | None


def weights(diff: Diff) -> list[Weight]:
    """List the matched float parameters, the unmoved ones too: their norms count."""
    found: list[Weight] = diff.remember("training weights", lambda: _weights(diff))
    return found


def pooled(found: list[Weight]) -> Pooled:
    """Return the norms of all of them as one vector."""
    return Pooled(*(_norm([getattr(each, side) for each in found]) for side in Pooled._fields))


def _weights(diff: Diff) -> list[Weight]:
    still = {delta.name: each.square_sum for delta, each in diff.measured(Energy)}
    found = []
    for delta in diff.deltas:
        if not is_float(delta):
            continue
        scan, energy = delta.measured(Scan), still.get(delta.name)
        if delta.kind == "identical" and delta.name in still:
            norm = float("inf") if energy is None else energy
            found.append(Weight(delta.name, norm, norm, 0.0, 0.0))
        elif delta.kind in MOVED and scan is not None:
            found.append(
                Weight(
                    delta.name,
                    scan.left_square_sum,
                    scan.right_square_sum,
                    scan.square_sum,
                    scan.max_abs,
                    scan.count * scan.parts - scan.pairs,
                )
            )
    return found


def _norm(squares: list[float]) -> float | None:
    if not squares or not all(map(isfinite, squares)):
        return None
    try:
        return sqrt(fsum(squares))
    except OverflowError:
        return None
