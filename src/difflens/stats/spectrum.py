"""Singular values: what those of pure noise look like, and how heavy the tail of others is.

All edges are in units of the entries' variance: multiply by sigma^2 and compare with squared
singular values. Which side of the matrix is called m and which n never matters.

Where a tail starts is chosen, which the textbook error forgets: with exponent 2.5 and 500 values
the estimate spreads by 0.104, not by (alpha - 1)/sqrt(n) = 0.067. So the interval is a bootstrap
of the whole choice. Zeros and negative values have no part in a tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .samples import sample

if TYPE_CHECKING:
    from numpy.typing import NDArray


def tracy_widom_threshold(m: int, n: int, alpha: float = 0.05) -> float:
    """Return what the largest squared singular value of noise exceeds with probability alpha.

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
    """Return F_1(s) = det(1 - K), K(x, y) = Ai((x + y)/2)/2 on (s, infinity).

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
    """Return the median of the Marchenko-Pastur law of aspect beta = short/long: 0.6528 for 1.

    Squared singular values are divided by the long side and the variance.
    """
    import numpy as np

    values, cdf = _law(beta)
    return float(np.interp(0.5, cdf, values))


def mp_cdf(values: Sequence[float] | NDArray[Any], beta: float) -> NDArray[Any]:
    """Return the share of the Marchenko-Pastur law at or below each value, scaled as its median."""
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

    Values above the Tracy-Widom threshold are left out, they are the outliers; None if the
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


def _all_of(singular_values: Sequence[float] | NDArray[Any], m: int, n: int) -> NDArray[Any]:
    values = sample(singular_values, "singular values")
    if len(values) != min(m, n):
        raise ValueError(f"{len(values)} singular values of a {m} x {n} matrix: all are needed")
    return values


RESAMPLES = 200
CANDIDATES = 50  # starts of the tail tried in each resample; the estimate itself tries them all
LEAST = 4  # distinct positive values below which there is nothing to fit
_CELLS = 1 << 22  # table entries worked on at once


class PowerLaw(NamedTuple):
    """A density proportional to x^-alpha above x_min, and how well it holds."""

    alpha: float
    x_min: float
    tail: int
    distance: float
    standard_error: float
    low: float
    high: float
    lognormal_ratio: float
    lognormal_p: float


def power_law(
    values: Sequence[float] | NDArray[Any],
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> PowerLaw | None:
    """Fit a power law to the upper tail (Clauset, Shalizi and Newman 2009).

    alpha = 1 + n/sum ln(x_i/x_min) over the n values at or above x_min, the value that makes the
    Kolmogorov-Smirnov distance D least. `lognormal_ratio` is the log-likelihood of the power law
    less that of a lognormal on the same tail (negative: lognormal fits better), `lognormal_p`
    Vuong's two-sided p of it. None below four distinct positive values.
    """
    import numpy as np

    if len(values) < LEAST:
        return None
    given = np.sort(sample(values, "tail"))
    positive = given[given > 0]
    if len(set(positive.tolist())) < LEAST:
        return None
    alpha, start, distance = _best(positive, candidates=len(positive))
    tail = positive[start:]
    low, high = _interval(positive, seed, resamples, level)
    ratio, p = _against_lognormal(tail, alpha)
    error = (alpha - 1) / len(tail) ** 0.5
    return PowerLaw(alpha, float(tail[0]), len(tail), distance, error, low, high, ratio, p)


def _best(ordered: NDArray[Any], candidates: int) -> tuple[float, int, float]:
    """Try starts of the tail; give exponent, index of the start and distance of the best."""
    import numpy as np

    logs = np.log(ordered)
    starts = np.flatnonzero(np.diff(logs, prepend=-np.inf) > 0)[:-1]  # the last leaves one value
    if len(starts) > candidates:
        starts = starts[np.linspace(0, len(starts) - 1, candidates).astype(int)]
    above = np.cumsum(logs[::-1])[::-1]
    sizes = len(ordered) - starts
    exponents = sizes / (above[starts] - sizes * logs[starts])  # alpha - 1
    distances = _distances(logs, starts, exponents)
    best = int(np.argmin(distances))
    return 1 + float(exponents[best]), int(starts[best]), float(distances[best])


def _distances(logs: NDArray[Any], starts: NDArray[Any], exponents: NDArray[Any]) -> NDArray[Any]:
    """Return D of every start: max over its tail of |i/n - (1 - (x_i/x_min)^(1 - alpha))|."""
    import numpy as np

    n = len(logs)
    result = np.empty(len(starts))
    step = max(1, _CELLS // n)
    for first in range(0, len(starts), step):
        some = slice(first, first + step)
        begin = starts[some, None]
        index = np.arange(begin.min(), n)
        rank = (index - begin) / (n - begin)
        law = -np.expm1(-exponents[some, None] * np.maximum(logs[index] - logs[begin], 0))
        result[some] = np.where(index >= begin, np.abs(rank - law), 0).max(axis=1)
    return result


def _interval(
    positive: NDArray[Any], seed: int, resamples: int, level: float
) -> tuple[float, float]:
    import numpy as np

    random = np.random.default_rng(seed)
    exponents: list[float] = []
    while len(exponents) < resamples:
        drawn = np.sort(random.choice(positive, len(positive)))
        if drawn[0] < drawn[-1]:  # one value over and over has no tail: draw again
            exponents.append(_best(drawn, CANDIDATES)[0])
    low, high = np.quantile(exponents, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _against_lognormal(tail: NDArray[Any], alpha: float) -> tuple[float, float]:
    """Compare likelihoods point by point (Vuong 1989): p = erfc(|R|/(sd sqrt(2 n))).

    In y = ln(x/x_min) a lognormal cut off at x_min is exp(-a y - b y^2/2)/Z; b = 0 is the power
    law, so that R is never above zero by more than the search leaves.
    """
    import math

    import numpy as np

    y = np.log(tail / tail[0])
    a, b, log_z = _lognormal(y)
    difference = np.log(alpha - 1) - (alpha - 1) * y + a * y + b * y**2 / 2 + log_z
    ratio, spread = float(difference.sum()), float(difference.std())
    if spread <= 1e-9:
        return 0.0, 1.0
    return ratio, math.erfc(abs(ratio) / (spread * (2 * len(tail)) ** 0.5))


def _lognormal(y: NDArray[Any]) -> tuple[float, float, float]:
    """Find the likeliest a and b, which need only the mean of y and of y^2; and ln Z there."""
    import numpy as np
    from scipy.optimize import minimize

    scale = float(y.mean())
    second = float((y**2).mean()) / scale**2

    def loss(at: NDArray[Any]) -> float:
        b = float(np.exp(at[1]))
        return float(at[0] + b * second / 2 + _log_z(float(at[0]), b))

    best = minimize(loss, [0.5, 0.0], method="Nelder-Mead", options={"fatol": 1e-12, "xatol": 1e-6})
    a, b = float(best.x[0]), float(np.exp(best.x[1]))
    return a / scale, b / scale**2, _log_z(a, b) + float(np.log(scale))


def _log_z(a: float, b: float) -> float:
    """Return ln of the integral of exp(-a y - b y^2/2) over y > 0, near b = 0 as well."""
    import numpy as np
    from scipy.special import erfc, erfcx

    z = a / (2 * b) ** 0.5
    scaled = np.log(erfcx(z)) if z > -5 else z * z + np.log(erfc(z))
    return float(np.log(np.pi / (2 * b)) / 2 + scaled)
