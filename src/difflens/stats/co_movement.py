"""Which of many series move together beyond their common course?

Two smooth or sluggish series correlate by accident: plain p-values on AR(0.9) series of 200 points
find a relation in half of all unrelated pairs. So drift is taken out, each series is whitened by
its own AR(1), ranks are correlated (a single spike in two layers is no relation), and what
autocorrelation is left shrinks the number of points that count. A correlation of sizes is neither
cooperation nor competition: that would be a matter of directions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .oscillation import drift_basis, without_drift

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST = 50  # points below which a correlation this strict could not be seen
_CUT = 4.0  # robust deviations at which what drift leaves is cut off
FARTHEST = 10  # points by which one series may be looked for behind another


class CoMovement(NamedTuple):
    """Two series by their columns; r is Spearman's, q adjusted over all pairs (BH)."""

    left: int
    right: int
    r: float
    low: float
    high: float
    n_effective: float
    p: float
    q: float
    partial: float | None  # what is left of r beside the common series
    lag: int | None  # points by which `right` follows `left`, where that is what counts


class CoMovements(NamedTuple):
    """The strongest significant pairs, and how many were tested and found in all."""

    pairs: tuple[CoMovement, ...]
    tested: int
    positive: int
    negative: int
    points: int


def co_movements(
    values: NDArray[Any], top: int = 20, alpha: float = 0.05, common: NDArray[Any] | None = None
) -> CoMovements | None:
    """Correlate all columns; None if there are too few points, or fewer than two that vary.

    `common` is a series that all of them may follow: partial correlations are given beside it.
    """
    import numpy as np

    if len(values) < FEWEST or values.shape[1] < 2:
        return None
    white = whitened(values if common is None else np.column_stack([values, common]))
    ranks, left_over = _standard_ranks(white, _sizes(values, common))
    count = values.shape[1]
    r = np.clip(ranks[:, :count].T @ ranks[:, :count], -1, 1)
    rows, columns = np.triu_indices(count, 1)
    pairs = r[rows, columns]
    seen = np.isfinite(pairs)
    if not seen.any():
        return None
    rows, columns, pairs = rows[seen], columns[seen], pairs[seen]
    n = _effective(len(values), left_over[rows] * left_over[columns])
    p = _p_of(pairs, n)
    order = np.lexsort((columns, rows, -abs(pairs), p))
    q = np.minimum.accumulate((p[order] * len(p) / np.arange(1, len(p) + 1))[::-1])[::-1]
    found = int((q <= alpha).sum())
    signs = np.sign(pairs[order[:found]])
    beside = None if common is None else ranks[:, :count].T @ ranks[:, count]
    best = [
        _pair(ranks, int(rows[i]), int(columns[i]), (pairs[i], n[i], p[i], min(q[j], 1.0)), beside)
        for j, i in enumerate(order[: min(top, found)])
    ]
    return CoMovements(
        tuple(best), len(p), int((signs > 0).sum()), int((signs < 0).sum()), len(values)
    )


def whitened(values: NDArray[Any]) -> NDArray[Any]:
    """Take drift and AR(1) out of every column: e_t = x_t - phi x_(t-1)."""
    import numpy as np

    rest = without_drift(values, _CUT)
    n, drift = len(rest), drift_basis(len(rest)).shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        phi = (rest[1:] * rest[:-1]).sum(axis=0) / (rest * rest).sum(axis=0)
        # Taking drift out takes correlation out; more of it the stronger it is.
        phi = phi + drift / (n - drift) * (1 + np.clip(phi, 0, 0.9))
    phi = np.clip(np.nan_to_num(phi), -0.98, 0.98)
    return rest[1:] - phi * rest[:-1]


def _sizes(values: NDArray[Any], common: NDArray[Any] | None) -> NDArray[Any]:
    import numpy as np

    sizes = np.abs(values).max(axis=0)
    return sizes if common is None else np.append(sizes, np.abs(common).max())


def _standard_ranks(white: NDArray[Any], sizes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ranks of length one about zero (NaN if a column does not vary), and their lag 1."""
    import numpy as np

    ranks = np.argsort(np.argsort(white, axis=0, kind="stable"), axis=0).astype(np.float64)
    ranks -= (len(white) - 1) / 2
    ranks /= np.sqrt((ranks[:, :1] ** 2).sum())
    ranks[:, ~(np.ptp(white, axis=0) > 1e-9 * sizes)] = np.nan
    return ranks, (ranks[1:] * ranks[:-1]).sum(axis=0)


def _effective(n: int, product: NDArray[Any]) -> NDArray[Any]:
    """Count the points that are worth something: n (1 - r1 r2)/(1 + r1 r2) (Bartlett 1935)."""
    import numpy as np

    free = n - drift_basis(n).shape[1]
    return np.clip(free * (1 - product) / (1 + product), 4.0, free)


def _p_of(r: NDArray[Any], n: NDArray[Any]) -> NDArray[Any]:
    import numpy as np
    from scipy.special import stdtr

    with np.errstate(divide="ignore"):
        t = np.abs(r) * np.sqrt((n - 2) / np.maximum(1 - r * r, 0.0))
    return 2 * stdtr(n - 2, -t)


def _pair(
    ranks: NDArray[Any],
    left: int,
    right: int,
    measured: tuple[Any, ...],
    common: NDArray[Any] | None,
) -> CoMovement:
    import numpy as np

    r, n, p, q = (float(each) for each in measured)
    # The variance of Fisher's z of a rank correlation is (1 + r²/2)/(n - 3) (Bonett & Wright 2000).
    reach = 1.96 * ((1 + r * r / 2) / max(n - 3, 1)) ** 0.5
    middle = np.arctanh(np.clip(r, -0.999999, 0.999999))
    low, high = float(np.tanh(middle - reach)), float(np.tanh(middle + reach))
    partial = None
    if common is not None and np.isfinite(common[[left, right]]).all():
        beside = (1 - common[left] ** 2) * (1 - common[right] ** 2)
        if beside > 1e-9:
            partial = float(np.clip((r - common[left] * common[right]) / beside**0.5, -1, 1))
    lag = _lag(ranks[:, left], ranks[:, right], abs(r))
    return CoMovement(left, right, r, low, high, n, p, q, partial, lag)


def _lag(left: NDArray[Any], right: NDArray[Any], at_once: float) -> int:
    """Find the shift at which both series agree best; 0 unless it beats no shift at all."""
    best, where = at_once, 0
    for lag in range(1, min(FARTHEST, len(left) // 5) + 1):
        for sign, r in ((1, left[:-lag] @ right[lag:]), (-1, right[:-lag] @ left[lag:])):
            if abs(r) > best + 1e-12:
                best, where = abs(float(r)), sign * lag
    return where
