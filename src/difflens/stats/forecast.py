"""Is a new value what its history led to expect, and what comes next?

The habit of mean +- 1.96 s forgets that mean and s are themselves estimates: with three past
values it raises a false alarm in 23 of 100 cases instead of 5. So one value is compared with a
prediction interval.

Of a long series three simple forecasters (drift, AR(1), exponential smoothing) compete by their
errors at rolling origins; the interval comes from the winner's own past errors (split conformal),
its level steered by how often it held so far (adaptive conformal inference, Gibbs & Candès 2021).
A model's own variance formula is not used: it is right only where the model is, and training runs
change. Nor is the split-conformal interval left as it is: on small networks trained on digits 90 %
of it held 83 % of the losses and 86 % of the norms of the second half, and 90 % of both once it
was steered.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

from .comparison import quantile, two_sided
from .samples import probability, sample, variance

if TYPE_CHECKING:
    from numpy.typing import NDArray


_SAME = 1e-12  # of their size: how far the line through equal values may be off by rounding
LEAST = 3  # past values below which spread cannot be told


class Prediction(NamedTuple):
    """Where the next value of a history should lie, and how far off the one given is."""

    t: float | None
    df: float
    p: float
    low: float
    high: float
    n: int


def against_history(past: Sequence[float], value: float, level: float = 0.95) -> Prediction | None:
    """Compare a value with n past ones: t = (x - mean)/(s sqrt(1 + 1/n)), n - 1 degrees.

    None below three past values. Where all past values are equal t is None, and p is 1 for the
    same value and 0 for any other: the history shows no noise at all.

    >>> round(against_history([1.0, 2.0, 3.0], 2.0).high, 3)
    6.968
    """
    n = len(past)
    if n < LEAST:
        return None
    history = sample(past, "history")
    return _predict(
        value,
        expected=float(history.mean()),
        error=(variance(history) * (1 + 1 / n)) ** 0.5,
        df=n - 1,
        n=n,
        level=level,
    )


def against_trend(
    times: Sequence[float], past: Sequence[float], time: float, value: float, level: float = 0.95
) -> Prediction | None:
    """Compare a value with the straight line through a drifting history (least squares).

    Error: s sqrt(1 + 1/n + (t - mean t)^2 / sum (t_i - mean t)^2), n - 2 degrees. None below four
    past values or where they all have one time.
    """
    n = len(past)
    if len(times) != n:
        raise ValueError(f"{len(times)} times for {n} past values")
    if n <= LEAST or max(times) == min(times):
        return None
    when, history = sample(times, "times"), sample(past, "history")
    centred = when - when.mean()
    spread = float(centred @ centred)
    slope = float(centred @ history) / spread
    residual = history - history.mean() - slope * centred
    ahead = time - float(when.mean())
    noise = variance(residual, float(abs(history).max())) * (n - 1) / (n - 2)
    return _predict(
        value,
        expected=float(history.mean()) + slope * ahead,
        error=(noise * (1 + 1 / n + ahead**2 / spread)) ** 0.5,
        df=n - 2,
        n=n,
        level=level,
    )


def _predict(
    value: float, *, expected: float, error: float, df: int, n: int, level: float
) -> Prediction:
    value = float(sample([value], "value")[0])
    if error == 0:
        same = abs(value - expected) <= _SAME * abs(expected)
        return Prediction(None, df, float(same), expected, expected, n)
    t = (value - expected) / error
    reach = quantile((1 + level) / 2, df) * error
    return Prediction(t, df, two_sided(t, df), expected - reach, expected + reach, n)


FEWEST = 200  # points below which too few errors are known
_WARM = 30  # points every forecaster has seen before its first forecast
_MEMORY = 300  # latest errors that make the interval: a run's noise changes with its schedule
_RATE = 0.02  # by which the level answers to one interval that failed; less where it hears late
_SMOOTHED = (
    (0.05, 0.0),
    (0.1, 0.0),
    (0.2, 0.0),
    (0.4, 0.0),
    (0.7, 0.0),
    (0.1, 0.01),
    (0.3, 0.03),
    (0.5, 0.05),
)


class Forecast(NamedTuple):
    """A value `horizon` points on; coverage is counted over the last `origins` forecasts."""

    value: float
    low: float
    high: float
    level: float
    horizon: int
    method: str
    empirical_coverage: float
    origins: int
    n: int

    @property
    def is_calibrated(self) -> bool:
        """Is the coverage within two binomial standard errors of the level?

        Forecasts `horizon` apart share no point; those between them count as less than one.
        """
        independent = max(1.0, self.origins / self.horizon)
        error: float = (self.level * (1 - self.level) / independent) ** 0.5
        return abs(self.empirical_coverage - self.level) <= 2 * error


def forecast(
    values: Sequence[float] | NDArray[Any], horizon: int = 1, level: float = 0.9
) -> Forecast | None:
    """Forecast the value `horizon` points after the last; None below FEWEST points or too far.

    `horizon` may be at most a tenth of the series, or there are too few errors to learn from.
    """
    array = sample(values, "series")
    probability(level, "level")
    if len(array) < FEWEST or not 1 <= horizon <= len(array) // 10:
        return None
    held = intervals(array, horizon, level, len(array) // 2)
    future = _predicted(array, horizon)
    name, alpha, errors = held.method, held.alpha, held.errors
    low, high = _bounds(errors, alpha)
    value = float(future[name][-1])
    coverage = float(held.hits.mean())
    return Forecast(
        value, value + low, value + high, level, horizon, name, coverage, len(held.hits), len(array)
    )


class Held(NamedTuple):
    """Intervals made one after the other, each from what was known at its origin."""

    hits: NDArray[Any]  # did each interval from `start` on hold what came?
    lows: NDArray[Any]
    highs: NDArray[Any]
    method: str  # of the last origin
    alpha: float  # to which the errors have steered
    errors: NDArray[Any]  # the latest known ones, sorted


def intervals(
    values: NDArray[Any], horizon: int, level: float, start: int, rate: float = _RATE
) -> Held:
    """Make the interval of every point from `start` on as it would have been made at the time.

    An interval at origin t uses errors of forecasts whose outcome is known at t, and no others;
    the method is chosen anew every twentieth of the way.
    """
    import numpy as np

    n = len(values)
    predicted = _predicted(values, horizon)
    errors = {name: values[horizon:] - made[:-horizon] for name, made in predicted.items()}
    wanted = alpha = 1 - level
    name, steps = _best(errors, start - 2 * horizon + 1), max(1, (n - start) // 20)
    hits, lows, highs = [], [], []
    for target in range(start, n):
        known = target - 2 * horizon + 1  # errors whose outcome the origin has seen
        if (target - start) % steps == 0:
            name = _best(errors, known)
        low, high = _bounds(_latest(errors[name], known), alpha)
        middle = predicted[name][target - horizon]
        lows.append(middle + low)
        highs.append(middle + high)
        hits.append(lows[-1] <= values[target] <= highs[-1])
        if len(hits) > horizon - 1:  # what is known by now of the interval made horizon ago
            alpha += rate / horizon**0.5 * (wanted - (not hits[-horizon]))
    name = _best(errors, n - horizon)
    return Held(
        np.array(hits),
        np.array(lows),
        np.array(highs),
        name,
        alpha,
        _latest(errors[name], n - horizon),
    )


def _latest(errors: NDArray[Any], known: int) -> NDArray[Any]:
    import numpy as np

    return np.sort(errors[max(_WARM, known - _MEMORY) : max(known, _WARM + 1)])


def _bounds(errors: NDArray[Any], alpha: float) -> tuple[float, float]:
    """Return the errors of ranks (n + 1) alpha/2 from either end; past the ends, twice as far."""
    n = len(errors)
    cut = (n + 1) * max(alpha, 0.0) / 2
    low, high = floor(cut), ceil(n + 1 - cut)
    if low < 1 or high > n:
        return 2 * min(float(errors[0]), 0.0), 2 * max(float(errors[-1]), 0.0)
    return float(errors[min(low, n) - 1]), float(errors[max(high, 1) - 1])


def _best(errors: dict[str, NDArray[Any]], known: int) -> str:
    """Name the method with the least mean absolute error over the latest known errors."""
    import numpy as np

    first, last = max(_WARM, known - _MEMORY), max(known, _WARM + 1)
    sizes = {name: float(np.abs(each[first:last]).mean()) for name, each in errors.items()}
    return min(sizes, key=lambda name: sizes[name])


def _predicted(values: NDArray[Any], horizon: int) -> dict[str, NDArray[Any]]:
    """Return of every origin what each method forecasts from the points up to it."""
    import numpy as np

    count = np.arange(1, len(values) + 1)
    drift = values + horizon * (values - values[0]) / np.maximum(count - 1, 1)
    made = {"drift": drift, "last value": values, "AR(1)": _autoregressed(values, horizon)}
    return made | _smoothed(values, horizon)


def _autoregressed(values: NDArray[Any], horizon: int) -> NDArray[Any]:
    """Forecast m + phi^h (x - m), mean and phi over the latest points up to each origin."""
    import numpy as np

    start = float(values[:_WARM].mean())  # any level known at the first origin: sums stay small
    here = values - start
    before = np.append(here[0], here[:-1])

    def recent(series: NDArray[Any]) -> NDArray[Any]:
        total = np.cumsum(series)
        total[_MEMORY:] -= np.cumsum(series)[:-_MEMORY]
        return total / np.minimum(np.arange(1, len(series) + 1), _MEMORY)

    mean, past = recent(here), recent(before)
    spread = np.maximum(recent(here**2) - mean**2, 1e-300)
    phi = np.clip((recent(here * before) - mean * past) / spread, -0.999, 0.999)
    return start + mean + phi**horizon * (here - mean)


def _smoothed(values: NDArray[Any], horizon: int) -> dict[str, NDArray[Any]]:
    """Forecast by level and trend, each an exponential mean (Holt 1957), for a few memories."""
    import numpy as np

    keep, bend = np.array(_SMOOTHED).T
    level, trend = np.full(len(keep), values[0]), np.zeros(len(keep))
    made = np.empty((len(values), len(keep)))
    for i, value in enumerate(values):
        before = level + trend
        level_now = before + keep * (value - before)
        trend = trend + bend * (level_now - level - trend)
        level = level_now
        made[i] = level + horizon * trend
    return {f"ETS({a:g}, {b:g})": made[:, i] for i, (a, b) in enumerate(_SMOOTHED)}
