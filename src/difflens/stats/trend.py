"""Does a series rise or fall? Theil-Sen says how fast, Mann-Kendall whether it is more than noise.

The plain Mann-Kendall test takes points for independent: with an autocorrelation of 0.8 it cries
"trend" on half of all trendless series of 100 points, and the usual repairs (Hamed-Rao, trend-free
pre-whitening) do not cure it. So S is held against series simulated with the same autocorrelation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .samples import sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHORT = 8  # points up to which every order is enumerated
LONG = 500  # points above which blocks of neighbours are averaged: pairs grow with the square
_GRAIN = 0.02  # to which phi is rounded before it is simulated, so that a thousand layers are quick
STRONGEST = 0.98  # of autocorrelations: beyond it no length of series would do


class Slope(NamedTuple):
    """How fast a series moves: per unit of time, with its interval (None if n is too small)."""

    value: float
    low: float | None
    high: float | None
    intercept: float
    n: int


class CorrelatedSlope(NamedTuple):
    """A slope whose interval allows for the autocorrelation phi."""

    value: float
    low: float
    high: float
    phi: float
    n: int


class Trend(NamedTuple):
    """Kendall's S of a series against time, and how often chance would give as much."""

    s: int
    p: float
    phi: float
    n: int
    note: str


def theil_sen(
    times: Sequence[float] | NDArray[Any],
    values: Sequence[float] | NDArray[Any],
    level: float = 0.95,
) -> Slope | None:
    """Estimate the slope: median over pairs of (x_j - x_i)/(t_j - t_i) (Theil 1950, Sen 1968).

    The interval is Sen's and takes the points for independent; it is None if even a perfectly
    monotone series could not reach the level (2/n! > 1 - level). None below two distinct times.

    >>> theil_sen([0, 1, 2, 3, 4], [1.0, 3.0, 5.0, 7.0, 100.0]).value
    2.0
    """
    import math

    import numpy as np

    if len(values) < 2:
        return None
    when, what = _in_blocks(*_ordered(times, values))
    if len(set(when.tolist())) < 2:
        return None
    slopes = np.sort(_slopes(when, what))
    slope = float(np.median(slopes))
    intercept = float(np.median(what) - slope * np.median(when))
    enough = 2 / math.factorial(min(len(when), 170)) <= 1 - level
    low, high = _sen(slopes, when, what, level) if enough else (None, None)
    return Slope(slope, low, high, intercept, len(values))


def correlated_slope(
    times: Sequence[float] | NDArray[Any],
    values: Sequence[float] | NDArray[Any],
    level: float = 0.95,
) -> CorrelatedSlope | None:
    """Estimate the slope with Sen's interval widened by sqrt((1 + phi)/(1 - phi)).

    A mean of n points with autocorrelation phi varies as one of n(1 - phi)/(1 + phi) independent
    points does, and so does a slope. None if there is no interval.
    """
    line = theil_sen(times, values, level)
    if line is None or line.low is None or line.high is None:
        return None
    phi = max(0.0, _phi(*_in_blocks(*_ordered(times, values)), line.value))
    factor = ((1 + phi) / (1 - phi)) ** 0.5
    low, high = line.value - line.low, line.high - line.value
    return CorrelatedSlope(
        line.value, line.value - factor * low, line.value + factor * high, phi, line.n
    )


def _slopes(when: NDArray[Any], what: NDArray[Any]) -> NDArray[Any]:
    """Return the slope of every pair of points whose times differ; the times ascend."""
    import numpy as np

    before, after = _pairs(len(when))
    run = when[after] - when[before]
    rise = what[after] - what[before]
    if not run.all():
        rise, run = rise[run > 0], run[run > 0]
    return np.divide(rise, run, out=rise)


@lru_cache(maxsize=4)
def _pairs(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    return np.triu_indices(n, 1)


def _sen(
    slopes: NDArray[Any], when: NDArray[Any], what: NDArray[Any], level: float
) -> tuple[float, float]:
    """Return the slopes whose ranks lie z sqrt(Var S) about the middle (Sen 1968, with ties).

    Written out, since importing scipy.stats takes longer than most histories take to be read.
    """
    from statistics import NormalDist

    import numpy as np

    def tied(series: NDArray[Any]) -> float:
        times = np.unique(series, return_counts=True)[1].astype(float)
        return float((times * (times - 1) * (2 * times + 5)).sum())

    n, count = len(what), len(slopes)
    variance = (n * (n - 1) * (2 * n + 5) - tied(when) - tied(what)) / 18
    reach = NormalDist().inv_cdf((1 + level) / 2) * max(variance, 0.0) ** 0.5
    low = max(round((count - reach) / 2) - 1, 0)
    high = min(round((count + reach) / 2), count - 1)
    return float(slopes[low]), float(slopes[high])


def mann_kendall(
    values: Sequence[float] | NDArray[Any],
    times: Sequence[float] | NDArray[Any] | None = None,
    surrogates: int = 999,
    seed: int = 0,
) -> Trend:
    """Test for a monotone trend: S = sum over i < j of sign(x_j - x_i) (Mann 1945).

    Up to 8 points p is exact over all orders. Beyond, S is held against `surrogates` AR(1) series
    of the detrended values' own lag-1 correlation r, corrected as phi = (n r + 2)/(n - 4):
    p = (1 + #{|S*| >= |S|})/(surrogates + 1).

    >>> mann_kendall([1.0, 2.0, 3.0, 4.0]).p
    0.08333333333333333
    """
    if not len(values):
        return Trend(0, 1.0, 0.0, 0, "no points")
    when, what = _in_blocks(*_ordered(range(len(values)) if times is None else times, values))
    n, slopes = len(what), _slopes(when, what)
    s = int((slopes > 0).sum()) - int((slopes < 0).sum())
    if n <= SHORT:
        note = "exact: too few points to allow for autocorrelation"
        return Trend(s, _exact_p(when, what, abs(s)), 0.0, len(values), note)
    phi = _phi(when, what, _middle(slopes))
    null = _null(round(phi / _GRAIN), n, surrogates, seed)
    p = (1 + int((null >= abs(s)).sum())) / (surrogates + 1)
    return Trend(s, p, phi, len(values), _note(phi, n, len(values)))


def autocorrelation(
    times: Sequence[float] | NDArray[Any], values: Sequence[float] | NDArray[Any]
) -> float:
    """Estimate phi of an AR(1) around a straight line: (n r + 2)/(n - 4), at most 0.98."""
    when, what = _ordered(times, values)
    return _phi(when, what, _middle(_slopes(*_in_blocks(when, what))))


def _middle(slopes: NDArray[Any]) -> float:
    import numpy as np

    return float(np.median(slopes)) if slopes.size else 0.0


def _phi(when: NDArray[Any], what: NDArray[Any], slope: float) -> float:
    import numpy as np

    if len(what) < 5 or when[0] == when[-1]:
        return 0.0
    residual = what - slope * when
    residual = residual - residual.mean()
    energy = float(residual @ residual)
    if energy <= len(what) * (1e-12 * float(np.abs(what).max())) ** 2:
        return 0.0  # a straight line: what is left is rounding
    r = float(residual[1:] @ residual[:-1]) / energy
    return float(np.clip((len(what) * r + 2) / (len(what) - 4), -STRONGEST, STRONGEST))


def _ordered(
    times: Sequence[float] | NDArray[Any], values: Sequence[float] | NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    when, what = sample(times, "times"), sample(values, "series")
    if len(when) != len(what):
        raise ValueError(f"{len(when)} times for {len(what)} values")
    order = np.argsort(when, kind="stable")
    return when[order], what[order]


def _in_blocks(when: NDArray[Any], what: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Average neighbours until LONG points are left; a trend survives that, most noise does not."""
    import numpy as np

    if len(what) <= LONG:
        return when, what
    blocks = np.arange(LONG) * len(what) // LONG
    sizes = np.diff(np.append(blocks, len(what)))
    return np.add.reduceat(when, blocks) / sizes, np.add.reduceat(what, blocks) / sizes


@lru_cache(maxsize=256)
def _null(grains: int, n: int, surrogates: int, seed: int) -> NDArray[Any]:
    """Return |S| of simulated series; layers of a run share their length and most of their phi."""
    import numpy as np

    null = s_of_each(first_order(grains * _GRAIN, n, surrogates, seed))
    return np.abs(null)


def s_of_each(series: NDArray[Any]) -> NDArray[Any]:
    """Return S of every column at once; the columns are continuous, so that none has ties."""
    import numpy as np

    n = len(series)
    rising = np.zeros(series.shape[1], np.int64)
    for lag in range(1, n):
        rising += (series[lag:] > series[:-lag]).view(np.int8).sum(axis=0, dtype=np.int16)
    return 2 * rising - n * (n - 1) // 2


def first_order(phi: float, n: int, series: int, seed: int) -> NDArray[Any]:
    """Simulate stationary x_t = phi x_(t-1) + e_t, one column a series."""
    import numpy as np

    noise = np.random.default_rng(seed).standard_normal((n, series), np.float32)
    noise[0] /= np.float32((1 - phi * phi) ** 0.5)
    for step in range(1, n):
        noise[step] += np.float32(phi) * noise[step - 1]
    return noise


@cache
def _orders(n: int) -> NDArray[Any]:
    from itertools import permutations

    import numpy as np

    return np.array(list(permutations(range(n))), np.int8)


def _exact_p(when: NDArray[Any], what: NDArray[Any], least: int) -> float:
    """Count the orders of the values, ties and all, whose |S| is at least that large."""
    import numpy as np

    every = what[_orders(len(what))]
    total = np.zeros(len(every))
    for later in range(1, len(what)):
        for sooner in range(later):
            if when[later] > when[sooner]:
                total += np.sign(every[:, later] - every[:, sooner])
    return float(np.count_nonzero(np.abs(total) >= least) / len(every))


def _note(phi: float, n: int, given: int) -> str:
    notes = []
    if phi > 0.9 and n < 200:
        notes.append("autocorrelation too strong for this length")
    if n < given:
        notes.append(f"{given} points averaged in {n} blocks of neighbours")
    return "; ".join(notes)
