"""What the singular values of pure noise look like: edges, median and law of the bulk.

All edges are in units of the entries' variance: multiply by sigma^2 and compare with squared
singular values. Which side of the matrix is called m and which n never matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .samples import sample

if TYPE_CHECKING:
    from numpy.typing import NDArray


def mp_edge(m: int, n: int) -> float:
    """Give the largest squared singular value of endless noise: (sqrt m + sqrt n)^2.

    Marchenko and Pastur (1967). A finite matrix of noise exceeds it in 13 to 22 of 100 cases: to
    call something an outlier, use `tracy_widom_threshold`.
    """
    return float((m**0.5 + n**0.5) ** 2)


def tracy_widom_threshold(m: int, n: int, alpha: float = 0.05) -> float:
    """Give what the largest squared singular value of noise exceeds with probability alpha.

    mu + q s, with m >= n, mu = (sqrt(m - 1) + sqrt n)^2,
    s = (sqrt(m - 1) + sqrt n)(1/sqrt(m - 1) + 1/sqrt n)^(1/3) and q the quantile of the
    Tracy-Widom law of order 1 (Johnstone 2001).
    """
    long, short = max(m, n, 2) - 1, min(m, n)
    root = long**0.5 + short**0.5
    return float(root**2 + tracy_widom_quantile(1 - alpha) * root * _width(long, short))


def _width(long: int, short: int) -> float:
    return float((long**-0.5 + short**-0.5) ** (1 / 3))


def tracy_widom_cdf(s: float, nodes: int = 60) -> float:
    """Give F_1(s) = det(1 - K), K(x, y) = Ai((x + y)/2)/2 on (s, infinity).

    Ferrari and Spohn (2005), by Gauss-Legendre quadrature of the determinant (Bornemann 2010).
    """
    import numpy as np
    from scipy.special import airy

    points, weights = np.polynomial.legendre.leggauss(nodes)
    reach = max(16.0, 16.0 - s)  # the Airy function is below 1e-13 beyond
    x = s + (points + 1) * reach / 2
    root = np.sqrt(weights * reach / 2)
    kernel = airy((x[:, None] + x[None, :]) / 2)[0] / 2
    return float(np.linalg.det(np.eye(nodes) - root[:, None] * kernel * root[None, :]))


@lru_cache(maxsize=64)
def tracy_widom_quantile(q: float) -> float:
    """Invert F_1; 0.9793 for q = 0.95."""
    from scipy.optimize import brentq

    return float(brentq(lambda s: tracy_widom_cdf(s) - q, -8.0, 12.0, xtol=1e-10))


def mp_median(beta: float) -> float:
    """Give the median of the Marchenko-Pastur law of aspect beta = short/long: 0.6528 for 1.

    Squared singular values are divided by the long side and the variance.
    """
    import numpy as np

    values, cdf = _law(beta)
    return float(np.interp(0.5, cdf, values))


def mp_cdf(values: Sequence[float] | NDArray[Any], beta: float) -> NDArray[Any]:
    """Give the share of the Marchenko-Pastur law at or below each value, scaled as its median."""
    import numpy as np

    points, cdf = _law(beta)
    return np.asarray(np.interp(np.asarray(values, np.float64), points, cdf, left=0.0, right=1.0))


@lru_cache(maxsize=64)
def _law(beta: float, steps: int = 1 << 14) -> tuple[NDArray[Any], NDArray[Any]]:
    """Tabulate the law: with x = 1 + beta - 2 sqrt(beta) cos(a), dF = 2 sin^2(a)/(pi x) da."""
    import numpy as np

    if not 0 < beta <= 1:
        raise ValueError(f"aspect {beta}: the short side over the long one lies in (0, 1]")
    edges = np.linspace(0, np.pi, steps + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    density = 2 * np.sin(middles) ** 2 / (np.pi * (1 + beta - 2 * beta**0.5 * np.cos(middles)))
    cdf = np.concatenate(([0.0], np.cumsum(density) * (np.pi / steps)))
    return 1 + beta - 2 * beta**0.5 * np.cos(edges), cdf / cdf[-1]


def bulk_sigma(singular_values: Sequence[float] | NDArray[Any], m: int, n: int) -> float:
    """Estimate the deviation of the entries from the median singular value of all min(m, n).

    sigma = s_median / sqrt(long mp_median(short/long)) (Gavish and Donoho 2014); a few spikes do
    not move it, as they would the total variance. Its own error widens the Tracy-Widom test of 5 %
    in small matrices: to about 10 % at 100 x 100 and 16 % at 30 x 30.
    """
    import numpy as np

    values = _all_of(singular_values, m, n)
    long, short = max(m, n), min(m, n)
    return float(np.median(values) / (long * mp_median(short / long)) ** 0.5)


def bulk_distance(
    singular_values: Sequence[float] | NDArray[Any], m: int, n: int, alpha: float = 0.05
) -> float | None:
    """Measure how far the bulk is from noise: sup |F - Marchenko-Pastur| below the threshold.

    Values above the Tracy-Widom threshold are left out, they are the outliers; None where the
    median singular value is zero.
    """
    import numpy as np

    sigma = bulk_sigma(singular_values, m, n)
    if sigma == 0:
        return None
    squares = np.sort((_all_of(singular_values, m, n) / sigma) ** 2)
    bulk = squares[squares <= tracy_widom_threshold(m, n, alpha)]
    long, short = max(m, n), min(m, n)
    expected = mp_cdf(bulk / long, short / long)
    steps = np.arange(len(bulk) + 1) / len(bulk)
    return float(max((steps[1:] - expected).max(), (expected - steps[:-1]).max()))


def spike(strength: float, beta: float) -> float | None:
    """Give the singular value that a rank-one signal shows in noise of deviation 1/sqrt(long).

    sqrt((1 + t^2)(beta + t^2))/t for strengths t > beta^(1/4); weaker ones drown in the bulk and
    None is given (Baik, Ben Arous and Peche 2005; Benaych-Georges and Nadakuditi 2012).

    >>> round(spike(1.5, 0.5), 3)
    1.993
    """
    if strength <= beta**0.25:
        return None
    square = strength * strength
    return float(((1 + square) * (beta + square)) ** 0.5 / strength)


def _all_of(singular_values: Sequence[float] | NDArray[Any], m: int, n: int) -> NDArray[Any]:
    values = sample(singular_values, "singular values")
    if len(values) != min(m, n):
        raise ValueError(f"{len(values)} singular values of a {m} x {n} matrix: all are needed")
    return values
