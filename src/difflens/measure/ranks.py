"""How many directions a matrix has: the ranks that singular values tell.

Singular values s are in descending order. Roy & Vetterli (2007), "The effective rank"; Gavish &
Donoho (2014), "The Optimal Hard Threshold for Singular Values is 4/√3".
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENERGY_RANKS = (4, 8, 16, 32, 64)
MARGIN = 0.05  # by which an edge is raised, as noise is not exactly as it is modelled


def stable_rank(values: NDArray[Any], norm: float) -> float | None:
    """‖M‖² / s₁²."""
    return float((norm / values[0]) ** 2) if len(values) and values[0] > 0 else None


def effective_rank(values: NDArray[Any]) -> float | None:
    """exp(-Σ p ln p), p = s / Σs."""
    import numpy as np

    kept = values[values > 0]
    if not len(kept):
        return None
    shares = kept / kept.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def participation_ratio(values: NDArray[Any]) -> float | None:
    """(Σs²)² / Σs⁴."""
    if not len(values) or values[0] <= 0:
        return None
    squares = (values / values[0]) ** 2
    return float(squares.sum() ** 2 / (squares * squares).sum())


def energy_at(values: NDArray[Any], norm: float, rank: int) -> float | None:
    """Σ of the `rank` largest s² / ‖M‖²; None if fewer values than that are known."""
    if norm <= 0:
        return None
    return min(1.0, float(((values[:rank] / norm) ** 2).sum()))


def edge(sigma: float, rows: int, columns: int) -> float:
    """Return the largest singular value of m x n noise of that deviation: sigma (√m + √n)."""
    return sigma * (sqrt(rows) + sqrt(columns))


def sigma_of_median(values: NDArray[Any], rows: int, columns: int) -> float:
    """Take the noise's deviation from the median singular value, which few spikes cannot move.

    sigma = median / sqrt(max(m, n) · μ(β)), μ the median of the Marchenko-Pastur law,
    β = min / max.
    """
    import numpy as np

    small, large = sorted((rows, columns))
    return float(np.median(values)) / sqrt(large * bulk_median(small / large))


def bulk_median(beta: float) -> float:
    """Return the median of the Marchenko-Pastur law of unit variance, 0 < beta <= 1.

    With x = (1 + β) - 2√β cos t the density's roots at both ends become smooth, so that a plain
    sum over t in [0, π] is exact to rounding where β < 1.

    >>> round(bulk_median(1.0), 4)
    0.6528
    """
    import numpy as np

    angles = np.linspace(0, np.pi, 20_001)
    places = 1 + beta - 2 * sqrt(beta) * np.cos(angles)
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.sin(angles) ** 2 / places
    if not np.isfinite(density[0]):
        density[0] = 1.0  # β = 1: sin² t / (2 - 2 cos t) -> 1
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return float(np.interp(below[-1] / 2, below, places))
