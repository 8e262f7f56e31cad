"""Does a series swing to and fro more than noise does, once its slow drift is taken out?

A straight line would leave the bend of every learning curve behind, and the bend looks like strong
autocorrelation. So a line and the lowest cosines go: all that makes fewer than five full swings
over the series, and never more than a tenth of the points. A running median would do as well
against outliers, but its own correlation cannot be written down.

Counting turns is not enough: independent noise turns at two points of three, and every stationary
AR(1) series at more than half of its points, so that a limit of 0.5 calls all noise oscillating.
Two things are evidence: neighbours that are negatively correlated (each step overshoots), and one
period that stands out of a red-noise background. The background is fitted to the periodogram
itself (Whittle) and Fisher's g has a closed form, which 1,000 layers need; 999 surrogates of each
would give the same p at a thousand times the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

from .samples import robust_deviation, sample

if TYPE_CHECKING:
    from numpy.typing import NDArray


SWINGS = 5  # full cycles over the series below which a swing counts as drift
_CUTS = 8  # times at most: each brings what a spike adds to the drift down several times
_FADED = 0.2  # part of the series over which each end fades in or out


def without_drift(values: NDArray[Any], cut: float | None = None) -> NDArray[Any]:
    """Take the drift out of every column; times run down the rows, evenly spaced.

    With `cut` what is left is cut off at so many robust deviations, and the drift fitted anew to
    the rest (Huber 1964): a spike that all series share would else ring through all of them.
    """
    import numpy as np

    basis = drift_basis(len(values))
    rest = values - basis @ (basis.T @ values)
    if cut is None:
        return rest
    weights = basis.T @ values
    for _ in range(_CUTS):
        bound = cut * robust_deviation(rest, 0.0, axis=0)
        if not (np.abs(rest) > bound).any():
            break
        weights += basis.T @ np.clip(rest, -bound, bound)
        rest = values - basis @ weights
    return np.clip(rest, -bound, bound)


def faded(values: NDArray[Any]) -> NDArray[Any]:
    """Fade the ends out, and take the drift of what is left.

    A curve that falls steeply at its start cannot be fitted by smooth columns: the fit rings over
    the whole series, and rings like an oscillation. Faded, the start has no weight in the fit.
    """
    weight, basis = _fading(len(values))
    shown = values * weight[:, None]
    return shown - basis @ (basis.T @ shown)


@lru_cache(maxsize=8)
def drift_basis(n: int) -> NDArray[Any]:
    """Return orthonormal columns that span a constant, a line and the lowest cosines."""
    import numpy as np

    return np.linalg.qr(_columns(n))[0]


@lru_cache(maxsize=8)
def _fading(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    time = (np.arange(n) + 0.5) / n
    weight = np.sin(np.pi / 2 * np.minimum(np.minimum(time, 1 - time) / _FADED, 1)) ** 2
    return weight, np.linalg.qr(_columns(n) * weight[:, None])[0]


def _columns(n: int) -> NDArray[Any]:
    import numpy as np

    cosines = max(0, min(2 * SWINGS - 1, n // 10 - 2))
    time = (np.arange(n) + 0.5) / n
    columns = [np.ones(n), time - 0.5]
    columns += [np.cos(np.pi * half * time) for half in range(2, cosines + 2)]
    return np.stack(columns[: max(1, n - 1)], axis=1)


FEWEST = 16  # points below which no period and no correlation can be told from noise


class TurningPoints(NamedTuple):
    """Turns of a series, and how many as many independent points would have; p is of excess."""

    count: int  # type: ignore[assignment]  # tuple.count, which nobody wants of this one
    expected: float
    variance: float
    z: float
    p: float
    n: int  # points that differ from the one before

    @property
    def rate(self) -> float | None:
        """Turns by the points at which one could be."""
        return self.count / (self.n - 2) if self.n > 2 else None


class Oscillation(NamedTuple):
    """Both signs of an oscillation; None if the series is too short or does not vary.

    `period` is in points, of the largest peak with five cycles or more, whether or not it is
    significant. `p` is the smaller of both signs' p, doubled for there being two.
    """

    lag1: float | None
    lag1_low: float | None
    lag1_high: float | None
    turning: TurningPoints
    period: float | None
    peak_p: float | None
    is_oscillating: bool
    p: float | None = None
    share: float | None = None  # of the variance that swings


class Oscillations(NamedTuple):
    """The same of many series at once, one element each; NaN if nothing is known."""

    lag1: NDArray[Any]
    lag1_low: NDArray[Any]
    lag1_high: NDArray[Any]
    period: NDArray[Any]
    peak_p: NDArray[Any]
    p: NDArray[Any]
    share: NDArray[Any]


def turning_points(values: Sequence[float] | NDArray[Any]) -> TurningPoints:
    """Count the turns: E = 2(n - 2)/3, Var = (16 n - 29)/90 for independent points (Bienaymé 1874).

    Repeats of the point before are dropped, for they neither rise nor fall.

    >>> round(turning_points([1.0, 2.0] * 10).z, 3)
    3.337
    """
    from statistics import NormalDist

    import numpy as np

    array = sample(values, "series") if len(values) else np.empty(0)
    array = array[np.append(True, np.diff(array) != 0)[: len(array)]]
    n = len(array)
    if n < 3:
        return TurningPoints(0, 0.0, 0.0, 0.0, 1.0, n)
    rises = np.diff(array) > 0
    count = int((rises[1:] != rises[:-1]).sum())
    expected, variance = 2 * (n - 2) / 3, (16 * n - 29) / 90
    z = (count - expected) / variance**0.5
    return TurningPoints(count, expected, variance, z, NormalDist().cdf(-z), n)


def oscillation(values: Sequence[float] | NDArray[Any], alpha: float = 0.05) -> Oscillation:
    """Judge one series, on the scale on which its noise is even (ln of norms)."""
    import numpy as np

    turning = turning_points(values)
    if len(values) < FEWEST:
        return Oscillation(None, None, None, turning, None, None, False)
    found = oscillations(sample(values, "series")[:, None], alpha)
    each = [None if np.isnan(part[0]) else float(part[0]) for part in found]
    lag1, low, high, period, peak_p, p, share = each
    swings = p is not None and p <= alpha
    return Oscillation(lag1, low, high, turning, period, peak_p, swings, p, share)


def oscillations(values: NDArray[Any], alpha: float = 0.05) -> Oscillations:
    """Judge every column at once; all are finite and have FEWEST points or more.

    The interval of the lag-1 correlation is at the level 1 - alpha, so that one below zero and
    a `p` of alpha or less say the same.
    """
    import numpy as np
    from scipy.special import ndtr, ndtri

    n = len(values)
    drift = drift_basis(n).shape[1]
    rest = without_drift(values)
    energy = (rest * rest).sum(axis=0)
    size = np.abs(values).max(axis=0)
    varies = energy > n * (1e-10 * size) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        lag1 = (rest[1:] * rest[:-1]).sum(axis=0) / energy
        # Taking k columns of drift out of white noise leaves E r1 = -k/(n - k).
        lag1 = np.clip(np.where(varies, lag1 + drift / (n - drift), np.nan), -0.9999, 0.9999)
        error = 1 / (n - drift - 1) ** 0.5
        reach = ndtri(1 - alpha / 2) * error
        low, high = (np.tanh(np.arctanh(lag1) + sign * reach) for sign in (-1, 1))
        lag_p = ndtr(np.arctanh(lag1) / error)
        period, peak_p, peak_share = _peaks(values)
    period, peak_p = np.where(varies, period, np.nan), np.where(varies, peak_p, np.nan)
    p = np.minimum(2 * np.fmin(lag_p, peak_p), 1.0)
    share = np.where(lag_p <= peak_p, np.maximum(-lag1, 0), peak_share)
    return Oscillations(lag1, low, high, period, peak_p, p, np.where(varies, share, np.nan))


def _peaks(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Find the largest ordinate above red noise: its period, its p and its share of variance.

    The background is fitted to ordinates cut off at five times itself, which one of 150 of its own
    reaches: uncut, a strong peak would pull the background up and hide in it.
    """
    import numpy as np

    n = len(values)
    first, last = SWINGS if n >= 10 * SWINGS else 1 + n // 20, (n - 1) // 2
    power = np.abs(np.fft.rfft(faded(values), axis=0)[first : last + 1]) ** 2
    power /= power.mean(axis=0)
    red = _red(n, first, last)
    white = power * _whitening(power, red)
    for _ in range(3):
        usual = white.mean(axis=0)
        whitening = _whitening(np.minimum(1.0, 5 * usual / white) * power, red)
        white = np.minimum(power * whitening, 5 * usual)
    white = power * whitening
    at, columns = white.argmax(axis=0), np.arange(values.shape[1])
    g = white[at, columns] / white.sum(axis=0)
    cycles = at + first
    # A smooth curve without noise leaves ripples of its fit; what swings turns once a cycle.
    rises = np.diff(values, axis=0) > 0
    turns = (rises[1:] != rises[:-1]).sum(axis=0)
    p = np.where((cycles >= SWINGS) & (turns >= cycles), _fisher(g, len(power)), 1.0)
    share = np.where(abs(np.arange(len(power))[:, None] - at) <= 1, power, 0.0).sum(axis=0)
    return n / cycles, p, share / len(power)


class _Red(NamedTuple):
    """What AR(1) noise looks like at the frequencies of a series, for a grid of its phi."""

    cosine: NDArray[Any]  # a row a frequency
    phis: NDArray[Any]
    shape: NDArray[Any]  # mean ln a(w), one a phi


@lru_cache(maxsize=8)
def _red(n: int, first: int, last: int) -> _Red:
    """Return it once for all series of one length: its logarithms are what takes long."""
    import numpy as np

    cosine = np.cos(2 * np.pi * np.arange(first, last + 1) / n)[:, None]
    phis = np.linspace(-0.98, 0.98, 99)
    return _Red(cosine, phis, np.log(1 + phis**2 - 2 * phis * cosine).mean(axis=0))


def _whitening(power: NDArray[Any], red: _Red) -> NDArray[Any]:
    """Return a(w) = 1 + phi² - 2 phi cos w of the AR(1) that fits each column best (Whittle 1953).

    The best phi has the least ln(mean I a) - mean ln a, and mean I a needs two sums whatever
    phi is.
    """
    import numpy as np

    cosine, phis, shape = red
    total, tilted = power.mean(axis=0), (power * cosine).mean(axis=0)
    fit = np.log(np.outer(1 + phis**2, total) - np.outer(2 * phis, tilted)) - shape[:, None]
    phi = phis[np.where(np.isnan(fit), np.inf, fit).argmin(axis=0)]
    return 1 + phi**2 - 2 * phi * cosine


@lru_cache(maxsize=8)
def _log_ways(m: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ln C(m, j) of the first terms, and their j from 1, a row each."""
    import numpy as np
    from scipy.special import gammaln

    j = np.arange(1, min(m, 20) + 1)[:, None]
    return gammaln(m + 1) - gammaln(j + 1) - gammaln(m - j + 1), j


def _fisher(g: NDArray[Any], m: int) -> NDArray[Any]:
    """Return P(max share >= g) of m exponentials: sum (-1)^(j-1) C(m, j)(1 - j g)^(m-1) (1929).

    Where the first term is beyond 1 the sum cancels badly, and 1 - exp(-first) is as good.
    """
    import numpy as np

    first = m * np.maximum(1 - g, 0) ** (m - 1)
    ways, j = _log_ways(m)
    left = 1 - j * g
    terms = np.exp(ways + (m - 1) * np.log(np.where(left > 0, left, 1.0)))
    p = np.zeros_like(g)
    for sign, term in zip(cycle((1, -1)), np.where(left > 0, terms, 0.0), strict=False):
        p += sign * term
    return np.clip(np.where(first > 1, 1 - np.exp(-first), p), 1e-300, 1.0)
