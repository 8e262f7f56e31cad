"""Moments in the NumPy kernel: sums of powers over one block, and how those of blocks join."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layout import COUNTS

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Figures = dict[str, Any]  # a state by the names of its fields

_LANES = 8
_FEW = 512  # elements whose mean is the first pivot
_MOMENTS = ("min", "max", "mean", "m2", "m3", "m4", "abs_sum")
_ADDED = (*(name for name in COUNTS if name != "max_abs_at"), "abs_sum", "square_sum")


def pivot_near(total: Figures, side: str, values: Floats) -> float:
    """Choose where to sum about: the mean so far, or of the first few; 0 where it is small."""
    if total["pairs"]:
        mean, m2 = total[f"pair_{side}_mean"], total[f"pair_{side}_m2"]
        return _unless_small(mean, m2, float(total["pairs"]))
    few = values[:_FEW]
    mean = mean_of(few, np.isfinite(few))
    (m2,) = add_up((few - mean) * (few - mean))
    return _unless_small(mean, m2, float(len(few))) if math.isfinite(mean) else 0.0


def _unless_small(mean: float, m2: float, count: float) -> float:
    """Summing about zero loses nothing where the mean is small beside the spread."""
    return 0.0 if count * mean * mean <= 4 * m2 else mean


def mean_of(values: Floats, kept: Flags) -> float:
    """Return the mean of what is kept, held between its extremes: that of a constant is exact."""
    some = values[kept]
    if not some.size:
        return 0.0
    (total,) = add_up(values, kept=kept)
    mean, low, high = total / some.size, float(some.min()), float(some.max())
    return low if mean < low else min(mean, high)


def powers(values: Floats, pivot: float) -> list[Floats]:
    """Return the first four powers about a pivot, and the magnitudes."""
    x = values - pivot
    square = x * x
    return [x, square, square * x, square * square, abs(values)]


def add_up(*terms: Floats, kept: Flags | None = None) -> list[float]:
    """Sum arrays: rows of lanes one after another, then the lanes."""
    count = len(terms[0])
    rows = -(-count // _LANES)
    table = np.zeros((rows * _LANES, len(terms)))
    for column, term in enumerate(terms):
        table[:count, column] = term if kept is None else np.where(kept, term, 0.0)
    sums = np.zeros(len(terms))
    # NumPy adds up rows in their order; only within a row would it add by pairs.
    for lane in np.add.reduce(table.reshape(rows, _LANES, len(terms)), axis=0):
        sums += lane
    return sums.tolist()


def centred(side: str, sums: list[float], count: int, pivot: float) -> dict[str, float]:
    """Turn sums of powers about a pivot into moments about the mean."""
    names = [f"{side}_{name}" for name in _MOMENTS[2:]]
    if not count:
        return dict.fromkeys(names, 0.0)
    s1, s2, s3, s4, abs_sum = sums
    shift = s1 / count
    square = shift * shift
    m2 = s2 - count * square
    m3 = s3 - 3 * shift * s2 + 2 * count * square * shift
    m4 = s4 - 4 * shift * s3 + 6 * square * s2 - 3 * count * square * square
    m2, m4 = (0.0 if even < 0 else even for even in (m2, m4))
    return dict(zip(names, (pivot + shift, m2, m3, m4, abs_sum), strict=True))


def add(total: Figures, later: Figures) -> None:
    """Add the figures of the elements that follow."""
    for side in ("left", "right"):
        _add_side(side, total, later)
    _add_paired(total, later)
    if later["max_abs"] > total["max_abs"]:
        total["max_abs"] = later["max_abs"]
        total["max_abs_at"] = total["count"] + later["max_abs_at"]
    for name in _ADDED:
        total[name] += later[name]


def _finite(figures: Figures, side: str) -> int:
    lost = ("nan", "positive_infinite", "negative_infinite")
    return int(figures["count"] - sum(figures[f"{side}_{name}"] for name in lost))


def _add_side(side: str, total: Figures, later: Figures) -> None:
    """Join the moments of one side, for n = n₁ + n₂, δ = μ₂ - μ₁.

    μ = μ₁ + n₂δ/n
    M₂ = M₂₁ + M₂₂ + n₁n₂δ²/n
    M₃ = M₃₁ + M₃₂ + n₁n₂(n₁ - n₂)δ³/n² + 3(n₁M₂₂ - n₂M₂₁)δ/n
    M₄ = M₄₁ + M₄₂ + n₁n₂(n₁² - n₁n₂ + n₂²)δ⁴/n³ + 6(n₁²M₂₂ + n₂²M₂₁)δ²/n² + 4(n₁M₃₂ - n₂M₃₁)δ/n
    """
    names = [f"{side}_{name}" for name in _MOMENTS]
    n1, n2 = float(_finite(total, side)), float(_finite(later, side))
    if not n2:
        return
    if not n1:
        total.update({name: later[name] for name in names})
        return
    low, high, mean, m2, m3, m4, abs_sum = (total[name] for name in names)
    later_low, later_high, later_mean, k2, k3, k4, later_abs_sum = (later[name] for name in names)
    delta = later_mean - mean
    step = delta / (n1 + n2)
    cross = n1 * n2 * delta * step
    joined = (
        min(low, later_low),
        max(high, later_high),
        mean + n2 * step,
        m2 + (k2 + cross),
        m3 + (k3 + cross * step * (n1 - n2) + 3 * step * (n1 * k2 - n2 * m2)),
        m4
        + (
            k4
            + cross * step * step * (n1 * n1 - n1 * n2 + n2 * n2)
            + 6 * step * step * (n1 * n1 * k2 + n2 * n2 * m2)
            + 4 * step * (n1 * k3 - n2 * m3)
        ),
        abs_sum + later_abs_sum,
    )
    total.update(zip(names, joined, strict=True))


def _add_paired(total: Figures, later: Figures) -> None:
    """Join the paired moments; C = C₁ + C₂ + n₁n₂δₗδᵣ/n."""
    n1, n2 = float(total["pairs"]), float(later["pairs"])
    if not n2:
        return
    weight = n1 * n2 / (n1 + n2)
    left = later["pair_left_mean"] - total["pair_left_mean"]
    right = later["pair_right_mean"] - total["pair_right_mean"]
    total["pair_left_m2"] += later["pair_left_m2"] + weight * left * left
    total["pair_right_m2"] += later["pair_right_m2"] + weight * right * right
    total["comoment"] += later["comoment"] + weight * left * right
    for side, delta in (("left", left), ("right", right)):
        name = f"pair_{side}_mean"
        total[name] = total[name] + delta * (n2 / (n1 + n2)) if n1 else later[name]
