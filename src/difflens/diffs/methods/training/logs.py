"""Columns of a training log: their points, whether they improve, and schedules of the rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from difflens.core.findings import Interval
from difflens.core.policy import Policy
from difflens.stats.trend import Slope, Trend, autocorrelation, mann_kendall, theil_sen

from ...evidence.records import Evidence, Log
from ...quality.margins import better

if TYPE_CHECKING:
    from numpy.typing import NDArray


Points = tuple[tuple[float, float], ...]

# In order of preference: what was held out tells more than what was trained on.
PROGRESS = tuple(
    """
    eval_loss val_loss valid_loss validation_loss test_loss loss train_loss train/loss
    training_loss eval_perplexity perplexity eval_accuracy val_accuracy accuracy
""".split()
)
RATES = ("learning_rate", "lr", "train/learning_rate", "train/lr")
NORMS = ("grad_norm", "gradient_norm", "train/grad_norm", "global_norm")


def column(log: Log | None, names: Sequence[str]) -> tuple[str, Points] | None:
    """Return the first of these columns that the log has, with its name."""
    if log is None:
        return None
    return next(((name, log.columns[name]) for name in names if log.columns.get(name)), None)


def between(points: Points, first: float | None, last: float | None) -> Points:
    """Keep the points from one step to another; an end that is not known cuts nothing off."""
    low = float("-inf") if first is None else first
    high = float("inf") if last is None else last
    low, high = min(low, high), max(low, high)
    return tuple(point for point in points if low <= point[0] <= high)


def at(points: Points, step: float) -> float | None:
    """Return the value in force at a step: the last one logged up to it, None before the first."""
    earlier = [value for when, value in points if when <= step]
    return earlier[-1] if earlier else None


def steps_of(evidence: Evidence) -> tuple[float | None, float | None]:
    """Say at which steps left and right were saved: as handed in, or as the checkpoints say."""
    left: float | None = evidence.left.step
    right: float | None = evidence.right.step
    if evidence.trajectory is not None and None in (left, right):
        known = evidence.trajectory.steps
        left, right = known[0] if left is None else left, known[-1] if right is None else right
    return left, right


LEAST = 5  # points below which not even a perfect trend reaches 5 %
LEVEL = 0.95
Direction = Literal["higher", "lower"]


class Movement(NamedTuple):
    """What a metric did over a window: a word, the slope a step, p, and how it was told."""

    word: str
    metric: str
    slope: float | None
    interval: Interval | str
    p: float | None
    basis: str


def better_way(metric: str, policy: Policy) -> Direction | None:
    """Say which way a metric is better: as the user says, else as its name tells."""
    return better(metric, policy).direction


def progress_column(
    log: Log | None, chosen: str | None, policy: Policy
) -> tuple[str, Points] | None:
    """Choose the column that tells progress: the one declared, else the first known by its name."""
    if log is None:
        return None
    names = [chosen] if chosen else [*PROGRESS, *policy.metrics]
    found = [(name, log.columns[name]) for name in names if log.columns.get(name)]
    full = [each for each in found if len(each[1]) >= LEAST]
    return next(iter(full or found), None)


def movement(
    column: tuple[str, Points],
    window: tuple[float | None, float | None],
    policy: Policy,
    *,
    margin: float,
    alpha: float = 0.05,
) -> Movement:
    """Judge a metric over the window, in the direction from left to right.

    It moved if Sen's interval of the slope, widened for autocorrelation, excludes zero and an
    AR(1)-surrogate Mann-Kendall test agrees; it is `stable` only if what the interval allows over
    the window lies within the margin, a part of the current value; else `inconclusive`.
    """
    metric, points = column
    kept = between(points, *window)
    steps, values = [step for step, _ in kept], [value for _, value in kept]
    line = theil_sen(steps, values) if len(kept) >= LEAST else None
    if line is None or line.low is None or line.high is None:
        few = f"{len(kept)} points of {metric} in the log, {LEAST} at different steps are needed"
        return Movement("inconclusive", metric, None, f"none_available: {few}", None, few)
    low, high, phi = _widened(line, steps, values)
    test = mann_kendall(values, steps)
    sign = -1 if _is_backwards(window) else 1
    low, high = sorted((sign * low, sign * high))
    now = abs(line.intercept + line.value * (steps[0] if sign < 0 else steps[-1]))
    rule, better = policy.metrics.get(metric), better_way(metric, policy)
    allowed = rule.margin if rule and rule.margin is not None else margin * now
    drift = max(abs(low), abs(high)) * (steps[-1] - steps[0])
    sure = Interval(low, high, LEVEL, "Theil-Sen, widened for autocorrelation", len(kept))
    word = _word((low, high), better, is_sure=test.p <= alpha, is_small=drift <= allowed)
    basis = _basis(metric, steps, test, phi, better)
    return Movement(word, metric, sign * line.value, sure, test.p, basis)


def _is_backwards(window: tuple[float | None, float | None]) -> bool:
    first, last = window
    return first is not None and last is not None and first > last


def _word(ends: tuple[float, float], better: str | None, *, is_sure: bool, is_small: bool) -> str:
    low, high = ends
    if is_sure and (low > 0 or high < 0):
        if better is None:
            return "rising" if low > 0 else "falling"
        return "improving" if (low > 0) == (better == "higher") else "degrading"
    return "stable" if is_small else "inconclusive"


def _widened(line: Slope, steps: list[float], values: list[float]) -> tuple[float, float, float]:
    """Widen Sen's interval: n points of autocorrelation φ tell as much as n (1 - φ)/(1 + φ)."""
    phi = autocorrelation(steps, values)
    factor = max(1.0, (1 + phi) / (1 - phi)) ** 0.5
    low, high = line.low or 0.0, line.high or 0.0
    return line.value - factor * (line.value - low), line.value + factor * (high - line.value), phi


def _basis(metric: str, steps: list[float], test: Trend, phi: float, better: str | None) -> str:
    way = f"{better} is better" if better else "which way is better is not known"
    note = f"; {test.note}" if test.note else ""
    return (
        f"log: {metric} ({way}), {len(steps)} points, steps {steps[0]:g} to {steps[-1]:g},"
        f" Theil-Sen and Mann-Kendall p={test.p:.3g}, autocorrelation {phi:.2f}{note}"
    )


# A warm-up is the rise to the peak; what follows is one of constant, linear, inverse square root,
# steps or cosine. The simplest kind wins where two fit alike.

_LEAST = 4  # points after the warm-up below which any two-parameter curve fits
_ALIKE = 1e-6  # of R²: a kind with more freedom must fit better by so much
_EVEN = 1e-9  # relative spread of rates that are one number


class Schedule(NamedTuple):
    """The kind that fits best, its R², that of every kind, and where the warm-up ended."""

    kind: str
    r2: float
    fits: dict[str, float]
    warmup_until: float | None
    n: int

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "kind": self.kind,
            "r2": self.r2,
            "warmup_until": self.warmup_until,
            "fits": [{"kind": kind, "r2": r2} for kind, r2 in self.fits.items()],
        }


def schedule(points: Points, least_r2: float) -> Schedule | None:
    """Classify a series of learning rates; None below four points after the warm-up."""
    import numpy as np

    steps, rates = np.array(points, float).reshape(-1, 2).T
    peak = _peak(rates)
    warmup = float(steps[peak]) if peak else None
    if peak == len(rates) - 1 and len(rates) >= _LEAST:
        r2 = _r2(rates, _line(steps, rates))
        return Schedule("warmup", r2, {"warmup": r2}, warmup, len(rates))
    steps, rates = steps[peak:], rates[peak:]
    if len(rates) < _LEAST:
        return None
    if np.ptp(rates) <= _EVEN * np.abs(rates).max():
        return Schedule("constant", 1.0, {"constant": 1.0}, warmup, len(rates))
    fits = {name: _r2(rates, fitted) for name, fitted in _fitted(steps, rates).items()}
    best = max(fits.values())
    kind = next(name for name, r2 in fits.items() if r2 >= best - _ALIKE)
    return Schedule(
        kind if best >= least_r2 else "unrecognised", fits[kind], fits, warmup, len(rates)
    )


def _peak(rates: NDArray[Any]) -> int:
    """Return the place at which a rise from the start ends; 0 if there is none."""
    at = 0
    while at + 1 < len(rates) and rates[at + 1] > rates[at] * (1 + _EVEN):
        at += 1
    return at


def _fitted(steps: NDArray[Any], rates: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Fit every kind, the simplest first."""
    found = {"linear": _line(steps, rates)}
    if (rates > 0).all():
        found["inverse_sqrt"] = _inverse_root(steps, rates)
    levels = _levels(rates)
    if levels is not None:
        found["step"] = levels
    found["cosine"] = _cosine(steps, rates)
    return found


def _line(steps: NDArray[Any], rates: NDArray[Any]) -> NDArray[Any]:
    return _projected(steps - steps.mean(), rates)


def _inverse_root(steps: NDArray[Any], rates: NDArray[Any]) -> NDArray[Any]:
    """Fit a/sqrt(t + s): 1/lr² is a line in t."""
    import numpy as np

    line = np.polyfit(steps - steps[0], rates**-2.0, 1)
    below = np.polyval(line, steps - steps[0])
    fitted: NDArray[Any] = np.where(below > 0, np.abs(below), np.inf) ** -0.5
    return fitted


def _levels(rates: NDArray[Any]) -> NDArray[Any] | None:
    """Fit a constant to every run of equal rates; None if most rates differ from the last."""
    import numpy as np

    jumps = np.abs(np.diff(rates)) > _EVEN * np.abs(rates).max()
    if jumps.sum() + 1 > len(rates) / 3:
        return None
    runs = np.concatenate([[0], np.cumsum(jumps)])
    means = np.bincount(runs, rates) / np.bincount(runs)
    return np.asarray(means[runs])


def _cosine(steps: NDArray[Any], rates: NDArray[Any]) -> NDArray[Any]:
    """Fit a + b cos(π (t - t0)/T), T from the length of the series on, as the log may end early."""
    import numpy as np
    from scipy.optimize import minimize_scalar

    since = steps - steps[0]
    span = float(since[-1])

    def fitted(stretch: float) -> NDArray[Any]:
        return _projected(np.cos(np.pi * since / (span * stretch)), rates)

    def lack(log_stretch: float) -> float:
        return float(((rates - fitted(float(np.exp(log_stretch)))) ** 2).sum())

    grid = np.log(np.geomspace(1.0, 20.0, 60))
    best = int(np.argmin([lack(each) for each in grid]))
    ends = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    found = minimize_scalar(lack, bounds=ends, method="bounded", options={"xatol": 1e-9})
    chosen = found.x if found.fun < lack(float(grid[best])) else grid[best]
    return fitted(float(np.exp(chosen)))


def _projected(shape: NDArray[Any], rates: NDArray[Any]) -> NDArray[Any]:
    """Fit a + b shape by least squares."""
    centred = shape - shape.mean()
    energy = float(centred @ centred)
    slope = float(centred @ (rates - rates.mean())) / energy if energy else 0.0
    fitted: NDArray[Any] = rates.mean() + slope * centred
    return fitted


def _r2(rates: NDArray[Any], fitted: NDArray[Any]) -> float:
    residual, spread = rates - fitted, rates - rates.mean()
    whole = float(spread @ spread)
    return 1 - float(residual @ residual) / whole if whole else 1.0
