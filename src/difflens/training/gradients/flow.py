"""How the norm of one layer moves: on a logarithmic scale, against real steps, about a trend.

The trend is what medians of neighbours draw, not one straight line: every learning curve bends,
and the bend would count as instability. Slopes are of a line all the same (Theil-Sen), for one
number has to say which way it goes. A jump is far beyond the layer's own changes and far above its
past.
"""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from difflens.core.findings import Interval, Missing
from difflens.stats.explosion import Rise, rises
from difflens.stats.oscillation import oscillation
from difflens.stats.samples import robust_deviation
from difflens.stats.trend import mann_kendall, theil_sen

from ..records.gradients import FlowCharacteristics
from .settings import not_before

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .settings import GradientThresholds
    from .signals import LayerSignal

CONDENSED = 128  # points a slope is taken over: longer series are told by medians of neighbours
STRETCH = 25  # records that one median of the trend stands for
LEAST = 3  # records with a logarithm below which nothing is said
NEAR = log(2)  # |ln g - trend| of a record that counts as steady
_TESTS = (
    "trend_p",
    "kendall_tau",
    "oscillation_p",
    "lag1",
    "lag1_interval",
    "period_steps",
    "peak_p",
)


class LogNorms(NamedTuple):
    """The logarithms of a layer's norms, where they have one: finite and above zero."""

    steps: NDArray[np.float64]
    values: NDArray[np.float64]


def log_norms(signal: LayerSignal) -> LogNorms:
    """Take the logarithm of what is finite and above zero."""
    norms = signal.norms
    there = np.isfinite(norms) & (norms > 0)
    return LogNorms(signal.steps[there].astype(np.float64), np.log(norms[there]))


def condensed(series: LogNorms, most: int = CONDENSED) -> LogNorms:
    """Shorten a series to medians of equal numbers of neighbours; a spike moves none of them."""
    n = len(series.values)
    if n <= most:
        return series
    size = -(-n // most)
    whole = n - n % size
    values = np.median(series.values[:whole].reshape(-1, size), axis=1)
    steps = series.steps[:whole].reshape(-1, size).mean(axis=1)
    if whole < n:
        values = np.append(values, np.median(series.values[whole:]))
        steps = np.append(steps, series.steps[whole:].mean())
    return LogNorms(steps, values)


def residuals(series: LogNorms) -> NDArray[np.float64]:
    """Return what is left beside the trend: medians of stretches, joined by straight lines.

    Below four stretches it is the line of Theil and Sen.
    """
    n = len(series.values)
    stretches = min(n // STRETCH, CONDENSED)
    if stretches < 4:
        line = theil_sen(series.steps, series.values)
        rest = series.values - (line.value * series.steps if line else 0.0)
        return rest - np.median(rest)
    knots = condensed(series, stretches)
    trend = np.interp(series.steps, knots.steps, knots.values)
    # Beyond the first and last middle the trend goes on as it went, where interp would stay flat.
    for end, inner, part in (
        (0, 1, series.steps < knots.steps[0]),
        (-1, -2, series.steps > knots.steps[-1]),
    ):
        run = knots.steps[end] - knots.steps[inner]
        slope = (knots.values[end] - knots.values[inner]) / run
        trend[part] = knots.values[end] + slope * (series.steps[part] - knots.steps[end])
    return series.values - trend


def flow(series: LogNorms, *, tests: bool = True) -> FlowCharacteristics:
    """Say how the norm moves; `tests` adds what takes longest: trend and oscillation in p."""
    n = len(series.values)
    if n < LEAST:
        return _explained(
            FlowCharacteristics(samples=n), f"{n} norms above zero, {LEAST} are needed"
        )
    fields: dict[str, Any] = {"samples": n, **_shape(series), **_slope(series)}
    if tests:
        fields |= _tested(series)
    else:
        fields["missing"] = not_before("Expert", *_TESTS)
    return _explained(FlowCharacteristics(**fields), "the norms do not vary, or are too few")


def no_flow() -> FlowCharacteristics:
    """Say that the depth leaves the flow out."""
    empty = FlowCharacteristics()
    return msgspec.structs.replace(empty, missing=not_before("Standard", *empty.unexplained()))


def _shape(series: LogNorms) -> dict[str, Any]:
    from difflens.stats.oscillation import turning_points

    values, rest = series.values, residuals(series)
    changes = np.diff(values)
    variance = float(values.var(ddof=1))
    low, high = np.quantile(rest, (0.25, 0.75)).tolist()
    turning = turning_points(values)
    turns = turning.n > 2
    flat = variance <= (1e-12 * max(1.0, float(np.abs(values).max()))) ** 2
    return {
        "consistency_score": float(np.median(np.abs(changes))),
        "smoothness_index": None if flat else float((changes**2).mean()) / variance,
        "stability_measure": float((np.abs(rest) <= NEAR).mean()),
        "residual_iqr": high - low,
        "oscillation_frequency": turning.rate if turns else None,
        "turning_z": turning.z if turns else None,
        "turning_p": turning.p if turns else None,
    }


def _slope(series: LogNorms) -> dict[str, Any]:
    short = condensed(series)
    line = theil_sen(short.steps, short.values)
    if line is None:
        return {}
    ends = None
    if line.low is not None and line.high is not None:
        ends = Interval(100 * line.low, 100 * line.high, method="Sen 1968", n=len(series.values))
    rise = line.value * float(series.steps[-1] - series.steps[0])
    return {
        "trend_strength": 100 * line.value,
        "trend_interval": ends,
        "growth": exp(min(max(rise, -700.0), 700.0)),
    }


def _tested(series: LogNorms) -> dict[str, Any]:
    short = condensed(series)
    trend = mann_kendall(short.values, short.steps)
    n = len(short.values)
    swing = oscillation(series.values)
    gap = float(np.median(np.diff(series.steps)))
    ends = None
    if swing.lag1_low is not None:
        ends = Interval(swing.lag1_low, swing.lag1_high, method="Fisher 1915", n=len(series.values))
    return {
        "trend_p": trend.p,
        "kendall_tau": 2 * trend.s / (n * (n - 1)),
        "lag1": swing.lag1,
        "lag1_interval": ends,
        "oscillation_p": swing.p,
        "period_steps": None if swing.period is None else swing.period * gap,
        "peak_p": swing.peak_p,
    }


def _explained(found: FlowCharacteristics, why: str) -> FlowCharacteristics:
    # These three are filled once all layers are known.
    later = {"trend_q", "oscillation_q", "is_oscillating"}
    reasons = [
        Missing(field, "more records", why) for field in found.unexplained() if field not in later
    ]
    return msgspec.structs.replace(found, missing=(*found.missing, *reasons))


MOST = 20  # jumps looked at, the largest
_LEAST_BEFORE = 5  # records that make a past
_LEAST_AFTER = 3  # records that show whether it lasts


class Jump(NamedTuple):
    """One jump of a norm: when, how far above the records before it, and what came after."""

    step: int
    ratio: float
    z: float
    lasts: bool  # the records after it stay up
    holds: bool  # and so do the latest


def jumps(series: LogNorms, limits: GradientThresholds) -> list[Jump]:
    """Find the jumps, in the order of steps: z of one change, and the ratio to the past."""
    changes = np.diff(series.values)
    if len(changes) < _LEAST_BEFORE:
        return []
    usual = changes - np.median(changes)
    z = usual / _scale(usual)
    places = np.flatnonzero(z > limits.jump_z)
    if len(places) > MOST:
        z[places[np.argsort(-changes[places], kind="stable")[MOST:]]] = 0.0
    trailing = limits.trailing
    steps_up = rises(series.values, z, z=limits.jump_z, window=trailing, hold=trailing)
    candidates = (_jump(series, each, log(limits.jump_ratio)) for each in steps_up)
    return [each for each in candidates if each is not None]


def risen(whole: LogNorms, late: LogNorms, limits: GradientThresholds) -> Jump | None:
    """Find norms that end far above their course, however many records they took to get there.

    No single change need be large: ten records that climb ten thousand times show no jump among
    them, and are too few for a trend. So the end is held against the median of all records, which
    a rise of less than half of them does not move. One record alone up there is no rise.
    """
    end = late.values[-_LEAST_AFTER:]
    if len(whole.values) < 2 * _LEAST_BEFORE or len(end) < _LEAST_AFTER:
        return None
    level = float(np.median(whole.values))
    ratio = float(end[-1]) - level
    z = ratio / _scale(whole.values - level)
    is_up = late.values - level >= log(limits.jump_ratio)
    if ratio < log(limits.growth_critical) or z < limits.jump_z or is_up[-2:].sum() < 2:
        return None
    low = np.flatnonzero(~is_up)
    start = int(low[-1]) + 1 if len(low) else 0
    return Jump(int(late.steps[start]), exp(min(ratio, 700.0)), z, lasts=True, holds=True)


def _scale(usual: NDArray[np.float64]) -> float:
    """Return the robust deviation of the changes; their mean size where half of them are zero."""
    apart = np.abs(usual)
    spread = float(robust_deviation(apart, 0.0)) or 1.2533 * float(apart.mean())
    return max(spread, 1e-6)


def _jump(series: LogNorms, rise: Rise, up: float) -> Jump | None:
    """Return a step up as a jump if its norm is far enough above the records before."""
    values, level = series.values, rise.before
    ratio = float(values[rise.place]) - level
    if rise.count_before < _LEAST_BEFORE or ratio < up:
        return None
    lasts = rise.count_after >= _LEAST_AFTER and rise.after - level >= up
    holds = lasts and float(np.median(values[-_LEAST_BEFORE:])) - level >= up
    return Jump(int(series.steps[rise.place]), exp(min(ratio, 700.0)), rise.z, lasts, holds)
