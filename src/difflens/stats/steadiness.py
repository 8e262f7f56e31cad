"""Is a series flat by now, and does it grow less steady: slower to recover, wider in scatter?

Flat has to be shown. "No significant slope" is what every short and noisy window says, so the
slope's interval must lie inside a margin (two one-sided tests, Schuirmann 1987); where it is wider
than the margin the answer is that nobody can tell, and how long a window would be needed.

Slowing recovery is exploratory for training: the noise of gradients changes with the learning
rate. Windows that overlap make even white noise "trend" in nine of ten series, so the whole
procedure is run on simulated AR(1) series and nothing else is taken for significance.

Scatter compares the interquartile ranges of the halves, with an interval by resampling blocks of
neighbours: a plain bootstrap would break up what resembles its neighbours and be too sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .samples import probability, sample
from .trend import STRONGEST, correlated_slope, first_order, s_of_each

if TYPE_CHECKING:
    from numpy.typing import NDArray


SMALLEST = 50  # points of the shortest window looked at


class Plateau(NamedTuple):
    """Whether the latest points are flat, over how many, and what the slope may be.

    Slopes are per unit of time. `points` are those of the window that decided; `needed` is the
    window that would suffice, where none did.
    """

    outcome: Literal["plateau", "moving", "cannot_tell"]
    points: int
    start: float | None  # time at which the flat window begins
    slope: float | None
    low: float | None
    high: float | None
    level: float
    needed: int | None


def plateau(
    times: Sequence[float] | NDArray[Any],
    values: Sequence[float] | NDArray[Any],
    margin: float,
    alpha: float = 0.05,
    smallest: int = SMALLEST,
) -> Plateau:
    """Look at ever longer windows that end now: `smallest` points, twice as many, and so on.

    Windows end at half of the series, for the whole always holds its steep beginning. All are
    judged at alpha shared among them (Bonferroni). The longest flat one is the plateau, as long
    as no shorter one moves; a window moves where its interval misses the margin on one side.
    """
    when, what = sample(times, "times"), sample(values, "series")
    if margin <= 0:
        raise ValueError(f"margin is {margin!r}, it must be above 0")
    lengths = _lengths(len(what), smallest)
    level = 1 - 2 * probability(alpha, "alpha") / max(1, len(lengths))
    found = None
    for length in lengths:
        window = _window(when[-length:], what[-length:], level, margin)
        if window.outcome == "moving":
            return found or window
        if window.outcome == "plateau":
            found = window
        last = window
    if not lengths:
        return Plateau("cannot_tell", len(what), None, None, None, None, level, 2 * smallest)
    return found or last


def _lengths(n: int, smallest: int) -> list[int]:
    lengths, length = [], smallest
    while length <= n // 2:
        lengths.append(length)
        length *= 2
    return lengths


def _window(when: NDArray[Any], what: NDArray[Any], level: float, margin: float) -> Plateau:
    measured = correlated_slope(when, what, level)
    if measured is None:
        return Plateau("cannot_tell", len(what), None, None, None, None, level, None)
    slope, low, high = measured.value, measured.low, measured.high
    start, points = float(when[0]), len(what)
    if -margin < low and high < margin:
        return Plateau("plateau", points, start, slope, low, high, level, None)
    if low > margin or high < -margin:
        return Plateau("moving", points, start, slope, low, high, level, None)
    # The width of a slope's interval falls as the length to the power of 3/2.
    needed = ceil(points * max(1.0, (high - low) / (2 * margin)) ** (2 / 3)) + 1
    return Plateau("cannot_tell", points, start, slope, low, high, level, needed)


FEWEST_SLOWING = 100
_MOST_SLOWING = 400  # points: longer series are cut to their latest


class Slowing(NamedTuple):
    """Kendall's tau of rolling lag-1 correlation and variance, with one-sided p of a rise."""

    autocorrelation_tau: float
    autocorrelation_p: float
    variance_tau: float
    variance_p: float
    n: int


def slowing(
    values: Sequence[float] | NDArray[Any], surrogates: int = 199, seed: int = 0
) -> Slowing | None:
    """Roll a window of half the series over what a Gaussian kernel leaves (Dakos 2012).

    The kernel's deviation is a tenth of the series. None below FEWEST_SLOWING
    points, or where nothing varies.
    """
    import numpy as np

    if len(values) < FEWEST_SLOWING:
        return None
    array = sample(values, "series")[-_MOST_SLOWING:]
    rest = _detrended(array[:, None])
    energy = float((rest**2).sum())
    if energy <= len(array) * (1e-10 * float(np.abs(array).max())) ** 2:
        return None
    phi = float((rest[1:] * rest[:-1]).sum()) / energy
    n = len(array)
    phi = float(np.clip((n * phi + 2) / (n - 4), -STRONGEST, STRONGEST))
    null = _detrended(first_order(phi, n, surrogates, seed).astype(np.float64))
    both = np.column_stack([rest, null])
    taus = [_tau(each) for each in _rolled(both)]
    ps = [(1 + int((each[1:] >= each[0]).sum())) / (1 + surrogates) for each in taus]
    return Slowing(float(taus[0][0]), ps[0], float(taus[1][0]), ps[1], n)


def _detrended(columns: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    n = len(columns)
    apart = np.arange(n)[:, None] - np.arange(n)
    kernel = np.exp(-0.5 * (apart / (0.1 * n)) ** 2)
    return columns - (kernel / kernel.sum(axis=1, keepdims=True)) @ columns


def _rolled(columns: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return lag-1 correlation and variance over every window of half the rows."""
    import numpy as np

    width = len(columns) // 2

    def summed(values: NDArray[Any], length: int) -> NDArray[Any]:
        total = np.cumsum(np.vstack([np.zeros((1, values.shape[1])), values]), axis=0)
        return total[length:] - total[:-length]

    mean = summed(columns, width) / width
    variance = np.maximum(summed(columns**2, width) / width - mean**2, 1e-300)
    products = summed(columns[1:] * columns[:-1], width - 1)
    return (products / (width - 1) - mean**2) / variance, variance


def _tau(columns: NDArray[Any]) -> NDArray[Any]:
    n = len(columns)
    return s_of_each(columns) / (n * (n - 1) / 2)


FEWEST_SCATTERED = 40
_MOST_SCATTERED = 2000  # points: longer series are cut to their latest


class Scatter(NamedTuple):
    """The ratio of the ranges, second half by first, with its interval."""

    value: float
    low: float
    high: float
    level: float
    n: int


def scatter_ratio(
    values: Sequence[float] | NDArray[Any],
    level: float = 0.95,
    replicates: int = 399,
    seed: int = 0,
) -> Scatter | None:
    """Compare the halves by a moving-block bootstrap of ln IQR in each (Künsch 1989).

    Blocks have 2 n^(1/3) points of a half. The interval is that of a normal about the estimate,
    with the bootstrap's deviation: percentiles of so few blocks are too narrow. None below
    FEWEST_SCATTERED points, or where a half does not scatter.
    """
    import numpy as np
    from scipy.special import stdtrit

    array = sample(values, "series")[-_MOST_SCATTERED:]
    if len(array) < FEWEST_SCATTERED:
        return None
    random, half = np.random.default_rng(seed), len(array) // 2
    parts = array[:half], array[-half:]
    ranges = [float(_range(each[None, :])[0]) for each in parts]
    if min(ranges) <= 1e-12 * float(np.abs(array).max()):
        return None
    errors = [_deviation(each, random, replicates) for each in parts]
    middle = float(np.log(ranges[1] / ranges[0]))
    blocks = 2 * half / _block(half)
    reach = (
        float(stdtrit(max(blocks - 2, 1), (1 + level) / 2))
        * (errors[0] ** 2 + errors[1] ** 2) ** 0.5
    )
    low, high = (exp(min(each, 700.0)) for each in (middle - reach, middle + reach))
    return Scatter(exp(middle), low, high, level, len(array))


def _block(n: int) -> int:
    length: float = 2 * n ** (1 / 3)
    return max(1, round(length))


def _range(rows: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    low, high = np.quantile(rows, (0.25, 0.75), axis=1)
    return high - low


def _deviation(part: NDArray[Any], random: Any, replicates: int) -> float:
    import numpy as np

    n, block = len(part), _block(len(part))
    starts = random.integers(0, n - block + 1, (replicates, -(-n // block)))
    places = (starts[:, :, None] + np.arange(block)).reshape(replicates, -1)[:, :n]
    ranges = np.maximum(_range(part[places]), 1e-300)
    return float(np.log(ranges).std(ddof=1))


class Mean(NamedTuple):
    """A mean, its interval, and how many independent points the series is worth."""

    value: float
    low: float | None
    high: float | None
    n_effective: float


def correlated_mean(values: Sequence[float] | NDArray[Any], level: float = 0.95) -> Mean:
    """Estimate the mean with Student's interval at n (1 - phi)/(1 + phi) points (Bartlett 1935).

    phi is the lag-1 correlation, corrected as (n r + 1)/(n - 3) for the mean that was taken out,
    and never taken below zero. No interval below eight points.
    """
    from scipy.special import stdtrit

    array = sample(values, "series")
    n, mean = len(array), float(array.mean())
    if n < 8:
        return Mean(mean, None, None, float(n))
    rest = array - mean
    energy = float(rest @ rest)
    r = float(rest[1:] @ rest[:-1]) / energy if energy > 0 else 0.0
    phi = min(max((n * r + 1) / (n - 3), 0.0), 0.98) if energy > 0 else 0.0
    count = max(2.0, n * (1 - phi) / (1 + phi))
    # Neighbours that resemble each other scatter less about their own mean.
    variance = energy / (n - 1) / max(1 - 1 / count, 0.5)
    reach = float(stdtrit(count - 1, (1 + level) / 2)) * (variance / count) ** 0.5
    return Mean(mean, mean - reach, mean + reach, count)
