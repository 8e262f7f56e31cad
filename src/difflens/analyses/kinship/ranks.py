"""Rank correlation and combined p-values, as logarithms: they are too small for a float."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, isfinite, lgamma, log, log1p
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LN10 = log(10)


def spearman(left: NDArray[Any], right: NDArray[Any]) -> float:
    """Give Spearman's rank correlation of two sequences without ties."""
    import numpy as np

    ranks = [np.argsort(np.argsort(side)).astype(np.float64) for side in (left, right)]
    n = len(left)
    apart = float(np.square(ranks[0] - ranks[1]).sum())
    return 1 - 6 * apart / (n * (n * n - 1.0))


def log10_p_of_rank_correlation(rho: float, n: int) -> float:
    """Give log10 of the two-sided p under exchangeable order: Student's t with n - 2 degrees.

    p = I_x((n - 2) / 2, 1 / 2) with x = 1 - rho²; never below that of a perfect match, 2 / n!.
    """
    from scipy.special import betainc, betaln, hyp2f1

    floor = (log(2) - lgamma(n + 1)) / _LN10
    x, half = 1 - rho * rho, (n - 2) / 2
    if x <= 0:
        return floor
    p = float(betainc(half, 0.5, x))
    if p > 1e-200:
        return max(floor, log(p) / _LN10)
    # I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) 2F1(a + b, 1; a + 1; x)  (DLMF 8.17.8)
    tail = float(hyp2f1(half + 0.5, 1, half + 1, x))
    whole = half * log(x) + 0.5 * log1p(-x) - log(half) - float(betaln(half, 0.5)) + log(tail)
    return max(floor, whole / _LN10)


def log10_p_of_correlation(r: float, n: int) -> float:
    """Give log10 of the two-sided p of a correlation of n iid pairs: normal, sd 1 / sqrt(n)."""
    from scipy.special import log_ndtr

    value = (log(2) + float(log_ndtr(-abs(r) * n**0.5))) / _LN10
    return min(0.0, value) if isfinite(value) else -1e300


def fisher(log10_ps: Sequence[float]) -> float:
    """Combine independent p-values: -2 sum ln p is chi-squared with 2k degrees (Fisher 1925).

    For even degrees P(> 2s) = exp(-s) sum_{j<k} s^j / j!, here as a logarithm.
    """
    s = -sum(log10_ps) * _LN10
    if s <= 0:
        return 0.0
    terms = [j * log(s) - lgamma(j + 1) for j in range(len(log10_ps))]
    largest = max(terms, default=-inf)
    total = largest + log(sum(exp(term - largest) for term in terms))
    return min(0.0, (total - s) / _LN10)


def bonferroni(log10_ps: Sequence[float]) -> float:
    """Combine p-values that may depend on each other: the smallest times their number."""
    return min(0.0, min(log10_ps) + log(len(log10_ps)) / _LN10)
