"""How checkpoints of one run move: their distances, their clock, and what the moves say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.findings import Interval
from difflens.stats.bootstrap import interval
from difflens.stats.trend import Trend, mann_kendall

from ...evidence.records import Log, Trajectory
from .logs import RATES, Points, column

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Clock(NamedTuple):
    """When K checkpoints were saved, and what lies between them.

    `efforts` are what a move is divided by: the learning rates summed over its steps where they
    are known, else the steps.
    """

    times: NDArray[Any]
    efforts: NDArray[Any]
    has_steps: bool
    has_rates: bool

    @property
    def lengths(self) -> NDArray[Any]:
        """The steps between neighbours."""
        import numpy as np

        return np.diff(self.times)

    @property
    def middles(self) -> NDArray[Any]:
        """The middle of every interval, counted in median intervals."""
        import numpy as np

        lengths = self.lengths
        middles: NDArray[Any] = (self.times[:-1] + lengths / 2) / np.median(lengths)
        return middles


def clock(steps: tuple[float | None, ...], log: Log | None) -> Clock:
    """Read the clock; checkpoints of unknown steps are taken for evenly spaced."""
    import numpy as np

    known = [step for step in steps if step is not None]
    if len(known) < len(steps) or any(np.diff(known) <= 0):
        times = np.arange(len(steps), dtype=float)
        return Clock(times, np.ones(len(steps) - 1), has_steps=False, has_rates=False)
    times = np.array(known, float)
    found = column(log, RATES)
    sums = summed_rates(found[1], times) if found else None
    efforts = times[1:] - times[:-1] if sums is None else sums
    return Clock(times, efforts, has_steps=True, has_rates=sums is not None)


def summed_rates(points: Points, times: NDArray[Any]) -> NDArray[Any] | None:
    """Sum the learning rate over the steps of each interval; None if the log does not cover it.

    Between logged points the rate is taken for linear. Before the first and after the last one it
    is known for as long as points are usually apart.
    """
    import numpy as np

    steps, rates = np.array(points, float).T
    if len(steps) < 2:
        return None
    slack = float(np.median(np.diff(steps)))
    if steps[0] - slack > times[0] or steps[-1] + slack < times[-1]:
        return None
    grid = np.union1d(steps, times)
    values = np.interp(grid, steps, rates)
    area = np.concatenate([[0.0], np.cumsum(np.diff(grid) * (values[1:] + values[:-1]) / 2)])
    sums: NDArray[Any] = np.diff(np.interp(times, grid, area))
    return sums if (sums > 0).all() else None


# With D_ij = ‖W_i - W_j‖² and Δ_k = W_(k+1) - W_k, 2⟨Δ_k, Δ_(k+1)⟩ = D_(k,k+2) - D_(k,k+1) -
# D_(k+1,k+2). Every figure is a function of an array (..., K, K), so that one formula serves the
# pooled distances, resamples of tensors and tensors left out.

Figure = Callable[["NDArray[Any]"], "NDArray[Any]"]
RESAMPLES, SEED, LEVEL = 999, 0, 0.95
_AT_ONCE = 2_000_000  # numbers held at a time while resampling


class Known(NamedTuple):
    """A figure with its interval over tensors; None if there is nothing to resample."""

    value: float
    low: float | None
    high: float | None
    tensors: int

    @property
    def interval(self) -> Interval | str:
        """How sure it is, as an envelope says it."""
        if self.low is None or self.high is None:
            return "none_available: one tensor moved, so tensors cannot be resampled"
        return Interval(self.low, self.high, LEVEL, "bootstrap over tensors", self.tensors)


def stacked(trajectory: Trajectory) -> NDArray[Any]:
    """Return the distances (tensors, K, K) of the tensors that moved at all.

    One that never moved tells nothing, and would only widen intervals. Tensors are in order of
    their distances, so that their names do not matter.
    """
    import numpy as np

    points = len(trajectory.points)
    squares = [np.asarray(each, float) for each in trajectory.distances.values()]
    moved = sorted((each for each in squares if each.any()), key=lambda each: each.ravel().tolist())
    return np.stack(moved) if moved else np.zeros((0, points, points))


def norm_of_last(trajectory: Trajectory) -> float:
    """Return ‖W‖ of the last checkpoint."""
    from math import fsum, sqrt

    return sqrt(fsum(each[-1] for each in trajectory.norms.values()))


def over_tensors(stack: NDArray[Any], figure: Figure) -> Known | None:
    """Return a figure of the pooled distances with a bootstrap interval over tensors (Efron 1987).

    Weights inside a tensor are not independent, so whole tensors are drawn. None if the figure
    is no number.
    """
    import numpy as np

    tensors = len(stack)
    if not tensors:
        return None
    whole = stack.sum(axis=0)
    with np.errstate(all="ignore"):
        value = float(figure(whole))
        if not np.isfinite(value):
            return None
        if tensors < 2:
            return Known(value, None, None, tensors)
        drawn = np.concatenate([figure(each) for each in _draws(stack)])
        left_out = figure(whole - stack)
    left_out = left_out[np.isfinite(left_out)]
    found = interval(value, drawn, [left_out] if len(left_out) else [np.zeros(1)], LEVEL, SEED)
    return Known(value, found.low, found.high, tensors)


def move_norms(distances: NDArray[Any]) -> NDArray[Any]:
    """‖Δ_k‖ of every move."""
    import numpy as np

    norms: NDArray[Any] = np.sqrt(np.diagonal(distances, 1, -2, -1))
    return norms


def mean_cosine(distances: NDArray[Any]) -> NDArray[Any]:
    """Average cos(Δ_k, Δ_(k+1)): line 1, random walk 0, noise about a point -1/2, 2-cycle -1."""
    squares = move_norms(distances) ** 2
    across = distances.diagonal(2, -2, -1)
    products = (across - squares[..., :-1] - squares[..., 1:]) / 2
    cosines: NDArray[Any] = products / (squares[..., :-1] * squares[..., 1:]) ** 0.5
    return cosines.clip(-1, 1).mean(axis=-1)


def displacement_exponent(distances: NDArray[Any], clock: Clock) -> NDArray[Any]:
    """Fit ln of the mean squared displacement against ln lag: ballistic 2, diffusive 1, still 0.

    Lags go up to half of the series; of longer ones there are too few (compare Hoffer et al. 2017).
    """
    import numpy as np

    lags = range(1, max(2, distances.shape[-1] // 2 + 1))
    far = np.stack([distances.diagonal(lag, -2, -1).mean(axis=-1) for lag in lags], axis=-1)
    times = clock.times
    apart = np.log([float((times[lag:] - times[:-lag]).mean()) for lag in lags])
    centred = apart - apart.mean()
    slopes: NDArray[Any] = (np.log(far) * centred).sum(axis=-1) / (centred @ centred)
    return slopes


def decay_rate(distances: NDArray[Any], clock: Clock) -> NDArray[Any]:
    """Exponentiate the Theil-Sen slope of ln(‖Δ_k‖ / effort_k): a move over the one before.

    A geometric approach x_t = v (1 - r^t) has exactly the rate r.
    """
    import numpy as np

    speeds = np.log(move_norms(distances) / clock.efforts)
    first, second = np.triu_indices(len(clock.efforts), 1)
    apart = clock.middles[second] - clock.middles[first]
    slopes = (speeds[..., second] - speeds[..., first]) / apart
    rates: NDArray[Any] = np.exp(np.median(slopes, axis=-1))
    return rates


def _draws(stack: NDArray[Any]) -> Any:
    """Yield pooled distances of resampled tensors, some resamples at a time."""
    import numpy as np

    tensors, points = stack.shape[:2]
    flat = stack.reshape(tensors, -1)
    random = np.random.default_rng(SEED)
    step = max(1, _AT_ONCE // (max(tensors, points * points) + points * points))
    for start in range(0, RESAMPLES, step):
        count = min(step, RESAMPLES - start)
        times = random.multinomial(tensors, np.full(tensors, 1 / tensors), count).astype(float)
        yield (times @ flat).reshape(count, points, points)


FIT = 6  # checkpoints from which the displacement can be fitted


class Motion(NamedTuple):
    """The moves between checkpoints, pooled over tensors; None is what they do not tell."""

    clock: Clock
    norms: list[float]  # ‖Δ_k‖
    speeds: list[float]  # ‖Δ_k‖ over the effort of its interval
    cosine: Known | None
    exponent: Known | None
    rate: Known | None
    rise: Trend  # of the speeds
    last_norm: float  # ‖W‖ of the last checkpoint
    newly_nonfinite: int

    @property
    def remaining(self) -> float | None:
        """Σ of the moves to come, ‖Δ_last‖ r / (1 - r), where they shrink by a constant ratio r."""
        if self.rate is None or self.rate.value >= 1:
            return None
        return self.norms[-1] * self.rate.value / (1 - self.rate.value)


def motion(path: Trajectory, log: Log | None) -> Motion | None:
    """Measure the moves; None if no tensor moved between any two checkpoints."""
    stack = stacked(path)
    if not len(stack):
        return None
    ticks = clock(path.steps, log)
    norms = move_norms(stack.sum(axis=0))
    speeds = norms / ticks.efforts
    enough = len(path.points) >= FIT
    return Motion(
        ticks,
        norms.tolist(),
        speeds.tolist(),
        over_tensors(stack, mean_cosine),
        over_tensors(stack, lambda each: displacement_exponent(each, ticks)) if enough else None,
        over_tensors(stack, lambda each: decay_rate(each, ticks)),
        mann_kendall(speeds, ticks.middles),
        norm_of_last(path),
        path.nonfinite[-1] - path.nonfinite[0],
    )
