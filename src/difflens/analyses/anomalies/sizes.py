"""Tensors whose size changed unlike that of their like: explosion and collapse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import exp, inf, isfinite, log, sqrt
from statistics import median
from typing import NamedTuple

from ..anatomy.roles import role
from ..changes.energy import Moved, moved_parameters
from .anomaly import Anomaly, Case, Detection, band

_MAD = 0.6745  # of the normal law, in units of its deviation
_CHANCE = 4.5  # deviations of ln ratio between two draws of n values that chance never makes


class Sized(NamedTuple):
    """A tensor, ln of its rms ratio, how far that is from its like, and by how many."""

    moved: Moved
    log_ratio: float
    z: float | None
    peers: int


def weight_explosion(case: Case) -> Detection:
    """A tensor at least twice as large, unlike others of its role."""
    found = []
    sized = _sized(case)
    for each in sized:
        severity = band(exp(min(each.log_ratio, 700.0)), case.limits["ratio_steps"])
        if severity and _stands_out(each, case):
            text = f"rms grew {exp(min(each.log_ratio, 700.0)):.3g} times"
            found.append(
                Anomaly("weight_explosion", each.moved.name, text, _numbers(each), severity)
            )
    return Detection("weight_explosion", len(sized), tuple(found))


def weight_collapse(case: Case) -> Detection:
    """A tensor at most half as large, unlike others of its role; or one value only, newly."""
    found, sized = [], _sized(case)
    for moved in moved_parameters(case.diff):
        flat = _flattened(moved)
        if flat:
            found.append(flat)
    flattened = {each.where for each in found}
    for each in sized:
        severity = band(exp(min(-each.log_ratio, 700.0)), case.limits["ratio_steps"])
        if severity and each.moved.name not in flattened and _stands_out(each, case):
            text = f"rms shrank {exp(min(-each.log_ratio, 700.0)):.3g} times"
            found.append(
                Anomaly("weight_collapse", each.moved.name, text, _numbers(each), severity)
            )
    return Detection("weight_collapse", len(moved_parameters(case.diff)), tuple(found))


def _sized(case: Case) -> list[Sized]:
    """Hold ln(rms right / rms left) against the role's: z = 0.6745 (x - median) / MAD.

    Iglewicz & Hoaglin (1993), "How to Detect and Handle Outliers". Identical tensors are no like:
    what nobody touched says nothing of how far a change goes.
    """
    groups: dict[str, list[tuple[Moved, float]]] = defaultdict(list)
    for moved in moved_parameters(case.diff):
        before, after = moved.scan.left_square_sum, moved.scan.right_square_sum
        if min(before, after) > 0 and isfinite(before) and isfinite(after):
            groups[role(moved.name)].append((moved, log(after / before) / 2))
    return [each for group in groups.values() for each in _scored(group)]


def _scored(group: list[tuple[Moved, float]]) -> Iterable[Sized]:
    values = [value for _, value in group]
    middle = median(values)
    spread = median(abs(value - middle) for value in values)
    for moved, value in group:
        away = _MAD * abs(value - middle)
        z = away / spread if spread else (inf if away else 0.0)
        yield Sized(moved, value, z, len(group))


def _stands_out(each: Sized, case: Case) -> bool:
    """Is it more than chance, and (where there are enough) unlike its role?"""
    if abs(each.log_ratio) <= _CHANCE / sqrt(each.moved.scan.pairs):
        return False
    few = each.peers < case.limits["least_group"]
    return few or each.z is None or each.z > case.limits["robust_z"]


def _numbers(each: Sized) -> dict[str, float | None]:
    known = each.z is not None and isfinite(each.z)
    return {
        "log_ratio": each.log_ratio,
        "robust_z": each.z if known else None,
        "tensors_of_its_role": float(each.peers),
    }


def _flattened(moved: Moved) -> Anomaly | None:
    scan, name = moved.scan, moved.name
    if scan.count < 2 or scan.right_nonfinite or scan.left_min == scan.left_max:
        return None
    if scan.right_min != scan.right_max:
        return None
    if scan.right_min == 0:
        text, severity = "all zeros now", "critical"
    else:
        text, severity = f"all its values are {scan.right_min:.4g} now", "high"
    numbers = {"value": scan.right_min, "elements": float(scan.count)}
    return Anomaly("weight_collapse", name, text, numbers, severity)  # type: ignore[arg-type]
