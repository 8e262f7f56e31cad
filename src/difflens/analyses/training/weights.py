"""How large the parameters of both models are, and how far apart: squares, tensor by tensor."""

from __future__ import annotations

from math import fsum, isfinite, sqrt
from typing import NamedTuple

from ...diffs import Diff
from ...measure.energy import Energy
from ...measure.scan import Scan
from ...records import MOVED
from ..changes.energy import is_float


class Weight(NamedTuple):
    """Squared norms of one parameter that both models hold in one shape."""

    name: str
    left: float
    right: float
    moved: float  # ‖right - left‖²
    max_moved: float
    dropped: int = 0  # elements that are not finite on both sides


class Pooled(NamedTuple):
    """Norms over all parameters together; None where one is too large for a float64."""

    left: float | None
    right: float | None
    moved: float | None


def weights(diff: Diff) -> list[Weight]:
    """List the matched float parameters, the unmoved ones too: their norms count."""
    found: list[Weight] = diff.remember("training weights", lambda: _weights(diff))
    return found


def pooled(found: list[Weight]) -> Pooled:
    """Give the norms of all of them as one vector."""
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
            found.append(Weight(
                delta.name, scan.left_square_sum, scan.right_square_sum, scan.square_sum,
                scan.max_abs, scan.count * scan.parts - scan.pairs,
            ))  # fmt: skip
    return found


def _norm(squares: list[float]) -> float | None:
    if not all(map(isfinite, squares)):
        return None
    try:
        return sqrt(fsum(squares))
    except OverflowError:
        return None
