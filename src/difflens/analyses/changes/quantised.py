"""Were weights put on a coarser grid: stored in blocks, or rounded and kept as floats?"""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Any

from ..cost.storage import stored
from ..quantisation.grid import gridded
from .change import Change, Numbers
from .energy import Moved
from .rounding import is_rounding_only

_SHARE = 0.99  # groups of a matrix that must lie on the grid (methods 7.2)


def quantised(change: Change) -> Numbers | None:
    """Give how many tensors are coarser on one side, and their signal-to-noise ratio in dB."""
    if not change.is_measured:
        return None
    rest = [each for each in change.measured if not is_rounding_only(each.scan)]
    named = [each for each in rest if _is_coarser(each)]
    coarse = named if named and len(named) == len(rest) else []
    if not coarse and not named:
        coarse = _on_grid(change, rest)
    decibels: list[float] = [
        value for each in coarse if (value := each.scan.figures()["sqnr_db"]) is not None
    ]
    # What differs by as much as it holds is not the same weights on a grid.
    if not decibels or min(decibels) < change.thresholds["quantised_db"]:
        return None
    return {"tensors": len(coarse), "sqnr_db": median(decibels)}


def schemes(change: Change) -> Counter[str]:
    """Count the tensors by the scheme of the side that is coarser."""
    found: Counter[str] = Counter()
    for each in change.measured:
        scheme = next((name for name in _schemes(each) if name), None)
        if scheme and _is_coarser(each):
            found[scheme] += 1
    if not found:
        grids = [grid for side in ("right", "left") for grid in _grids(change, side)]
        names = set(change.scans)
        for grid in grids:
            if grid.name in names:
                found[f"{grid.bits} bits by {_group(grid.group)}"] += 1
    return found


def is_on_the_right(change: Change) -> bool:
    """Is it the right model that is coarser?"""
    named = [each for each in change.measured if _is_coarser(each)]
    if named:
        return any(_schemes(each)[1] for each in named)
    return bool({grid.name for grid in _grids(change, "right")} & set(change.scans))


def _group(size: int) -> str:
    return f"groups of {size}" if size else "row"


def _schemes(each: Moved) -> tuple[str | None, str | None]:
    left, right = each.delta.pair.left, each.delta.pair.right
    return (stored(left).scheme if left else None, stored(right).scheme if right else None)


def _is_coarser(each: Moved) -> bool:
    left, right = _schemes(each)
    return left != right


def _grids(change: Change, side: Any) -> list[Any]:
    return gridded(change.diff, side, _SHARE)


def _on_grid(change: Change, rest: list[Moved]) -> list[Moved]:
    """Take the matrices that lie on a grid on one side only; nothing where another one moved."""
    fine = change.thresholds["quantised_db"]
    if not rest or any((each.scan.figures()["sqnr_db"] or 0) < fine for each in rest):
        return []
    grids = {side: {grid.name for grid in _grids(change, side)} for side in ("left", "right")}
    found = [each for each in rest if _is_new(each, grids)]
    return found if len(found) == len(rest) else []


def _is_new(each: Moved, grids: dict[str, set[str]]) -> bool:
    left, right = each.delta.pair.left, each.delta.pair.right
    if not (left and right):
        return False
    return (left.name in grids["left"]) != (right.name in grids["right"])
