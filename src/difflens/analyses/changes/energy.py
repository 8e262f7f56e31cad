"""How far the parameters moved, in sums of squares: the energy of a change.

All figures are over moved parameters: floats of equal shape that are not
bit-identical. What is identical adds nothing to a difference, and its own norm
is not measured by default, so it stays out of both sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from math import fsum, isfinite, sqrt
from statistics import median
from typing import Any, NamedTuple, TypeVar

from ...diffs import Diff
from ...measure.scan import Scan
from ...records import MOVED, Delta
from ..anatomy.roles import block, is_parameter, role

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


def is_float(delta: Delta) -> bool:
    """Is it a float parameter on every side that has it?"""
    sides = (delta.pair.left, delta.pair.right)
    return is_parameter(delta.name, *(info.dtype for info in sides if info))


def relative_l2(moved: Iterable[Moved]) -> float | None:
    """sqrt(sum ‖d‖²) / sqrt(sum ‖left‖²); 0 where nothing moved, None where left is all zeros."""
    scans = [each.scan for each in moved]
    energy = total(scan.square_sum for scan in scans)
    if energy == 0:
        return 0.0
    share = _ratio(energy, total(scan.left_square_sum for scan in scans))
    return None if share is None else sqrt(share)


def median_relative_l2(moved: Iterable[Moved]) -> float | None:
    """Take the median over tensors, so that a huge embedding does not hide the rest."""
    scans = [each.scan for each in moved]
    values = [value for scan in scans if (value := scan.relative_l2) is not None]
    if scans and not values:
        return None
    return median(values) if values else 0.0


def share_by_role(moved: list[Moved]) -> dict[str, float] | None:
    """Give each role's part of the whole squared difference, largest first."""
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
    """List the blocks by depth: relative L2 of what moved there, 0 where nothing did."""
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
    """Add up whatever the order; infinity or NaN where the sum is no number."""
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
