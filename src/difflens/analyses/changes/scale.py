"""Is one model the other multiplied by a number?

c = 1 + <d, left> / ‖left‖²,  residual² = ‖right - c left‖² = ‖d‖² - <d, left>² / ‖left‖²

Both are taken from d = right - left, whose sum of squares is measured as such:
‖right‖² - c <left, right> would cancel to noise for c near 1.
"""

from __future__ import annotations

from math import isfinite, sqrt

from ...measure.scan import Scan
from ...records import Delta
from .change import Change, Numbers
from .energy import Moved, total

# Half a unit in the last place, relative: the most that rounding to the dtype can move a value.
ROUNDING = {
    "F64": 2**-53, "F32": 2**-24, "C64": 2**-24, "F16": 2**-11, "BF16": 2**-8,
    "F8_E4M3": 2**-4, "F8_E4M3FNUZ": 2**-4, "F8_E5M2": 2**-3, "F8_E5M2FNUZ": 2**-3, "F4": 2**-2,
}  # fmt: skip
_HIDDEN = 0.1  # a change that rounding could hide more than a tenth of cannot be called a scale


def uniform_scale(change: Change) -> Numbers | None:
    """Give c and the largest residual, relative to ‖d‖; None where it is no scale.

    One element is always a multiple of another, so two at least must agree.
    """
    if not change.is_measured or sum(each.scan.pairs for each in change.measured) < 2:
        return None
    left = total(each.scan.left_square_sum for each in change.measured)
    along = total(_along(each.scan) for each in change.measured)
    if not (left > 0 and isfinite(left) and isfinite(along)):
        return None
    c, limit = 1 + along / left, change.thresholds["scale_tolerance"]
    if not all(_is_scaled(each, c, limit) for each in change.measured):
        return None
    residuals = [_residual(each.scan) for each in change.measured if each.scan.square_sum > 0]
    return {"c": c, "residual": max(residuals, default=0.0), "tensors": len(change.measured)}


def _is_scaled(each: Moved, c: float, limit: float) -> bool:
    scan = each.scan
    if scan.pairs < scan.count:
        return False
    if scan.left_square_sum == 0 or scan.square_sum == 0:
        return scan.left_square_sum == scan.square_sum  # zeros stay zeros, nothing else stays
    unit = _rounding(each.delta)
    floor = unit * sqrt(scan.right_square_sum / scan.square_sum)
    own = 1 + _along(scan) / scan.left_square_sum
    agrees = abs(own - c) <= max(limit, unit) * abs(c)
    return agrees and floor <= _HIDDEN and _residual(scan) <= max(limit, floor)


def _along(scan: Scan) -> float:
    return scan.dot - scan.left_square_sum


def _residual(scan: Scan) -> float:
    part = _along(scan) / scan.square_sum * (_along(scan) / scan.left_square_sum)
    return sqrt(max(0.0, 1 - part))


def _rounding(delta: Delta) -> float:
    sides = (delta.pair.left, delta.pair.right)
    return max(ROUNDING.get(info.dtype, 1.0) for info in sides if info)
