"""Is one model a blend of others: on the line, or on the arc, between them?

Linear: right - base = c (left - base), c = <t1, t2> / ‖t1‖², R² = 1 - ‖t2 - c t1‖² / ‖t2‖².
Arc (SLERP, Shoemake 1985): right = sin(t w) / sin w left + sin((1 - t) w) / sin w base, with w the
angle between base and left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import acos, isfinite, sin, sqrt
from typing import Any, NamedTuple

from .interference import Sums

_HIDDEN = 0.1  # where rounding could hide more than a tenth of a move, nothing is said of it


class Fit(NamedTuple):
    """The place of one tensor of the right model between base and left."""

    coefficient: float
    r2: float
    arc: float | None  # t of the nearest point of the arc
    arc_r2: float | None


def fit(sums: Sums, rounding: float) -> Fit | None:
    """Place one tensor; None where nothing moved, or rounding hides too much of it.

    `rounding` is the relative mean square error of the coarsest storage.
    """
    if sums.left == 0 and sums.right == 0:
        return None
    if sums.right == 0:
        return Fit(0.0, 1.0, 0.0, 1.0)
    norm = sums.base + 2 * sums.base_right + sums.right
    noise = rounding * max(0.0, norm)
    if not all(map(isfinite, sums)) or noise > _HIDDEN * sums.right:
        return None
    if sums.left == 0:
        return Fit(0.0, 0.0, None, None)
    c = sums.dot / sums.left
    r2 = _r2(sums.right - sums.dot * c, noise, sums.right)
    t = _nearest(sums)
    arc_r2 = None if t is None else _r2(_apart(sums, t), noise, sums.right)
    return Fit(c, r2, t, arc_r2)


def _r2(apart: float, noise: float, whole: float) -> float:
    return min(1.0, 1 - max(0.0, apart - noise) / whole)


def _nearest(sums: Sums) -> float | None:
    from scipy.optimize import minimize_scalar

    if _angle(sums) is None:
        return None
    found = minimize_scalar(
        lambda t: _apart(sums, t), bounds=(-0.5, 1.5), method="bounded", options={"xatol": 1e-9}
    )
    return float(found.x)


def _angle(sums: Sums) -> float | None:
    left = sums.base + 2 * sums.base_left + sums.left
    size = sqrt(sums.base) * sqrt(max(0.0, left))
    if size == 0:
        return None
    angle = acos(max(-1.0, min(1.0, (sums.base + sums.base_left) / size)))
    return angle if sin(angle) > 1e-9 else None


def _apart(sums: Sums, t: float) -> float:
    """‖right - arc(t)‖², by differences from the base so that nothing large cancels."""
    angle = _angle(sums) or 0.0
    a, b = sin(t * angle) / sin(angle), sin((1 - t) * angle) / sin(angle)
    e = 1 - a - b
    squares = e * e * sums.base + sums.right + a * a * sums.left
    crossed = e * sums.base_right - e * a * sums.base_left - a * sums.dot
    return max(0.0, squares + 2 * crossed)


class Blend(NamedTuple):
    """Weights of several models that add up to one, and how much of the move they explain."""

    weights: list[float]
    r2: float
    least_r2: float  # of the tensor they explain least


def blend(distances: Mapping[str, Sequence[Sequence[float]]]) -> Blend | None:
    """Find the weights of all points but the last that come nearest to it.

    `distances[name][i][j]` is ‖W_i - W_j‖²; with the first point as origin, <W_i - W_0, W_j - W_0>
    = (d_0i + d_0j - d_ij) / 2, which is all that least squares needs.
    """
    import numpy as np

    grams = [_gram(np.array(each, np.float64)) for each in distances.values()]
    if not grams:
        return None
    whole = sum(grams[1:], grams[0])
    target = whole[-1, -1]
    if len(whole) < 2 or not np.isfinite(whole).all() or target <= 0:
        return None
    found = np.linalg.lstsq(whole[:-1, :-1], whole[:-1, -1], rcond=None)[0]
    least = min(_explained(gram, found) for gram in grams)
    weights = [1 - float(found.sum()), *found.tolist()]
    return Blend(weights, _explained(whole, found), least)


def _gram(apart: Any) -> Any:
    return (apart[0, 1:, None] + apart[None, 0, 1:] - apart[1:, 1:]) / 2


def _explained(gram: Any, weights: Any) -> float:
    whole = float(gram[-1, -1])
    rest = whole - 2 * float(weights @ gram[:-1, -1]) + float(weights @ gram[:-1, :-1] @ weights)
    return 1 - max(0.0, rest) / whole if whole > 0 else float(rest <= 0)
