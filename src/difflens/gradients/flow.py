"""How the norm of one layer moves: on a logarithmic scale, against real steps, about a trend.

The trend is what medians of neighbours draw, not one straight line: every learning curve bends,
and the bend would count as instability. Slopes are of a line all the same (Theil-Sen), for one
number has to say which way it goes.
"""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from ..gradient_results import FlowCharacteristics
from ..records import Interval, Missing
from ..stats.oscillation import oscillation
from ..stats.trend import mann_kendall, theil_sen
from .depths import not_before

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .signals import LayerSignal

CONDENSED = 128  # points a slope is taken over: longer series are told by medians of neighbours
STRETCH = 25  # records that one median of the trend stands for
LEAST = 3  # records with a logarithm below which nothing is said
NEAR = log(2)  # |ln g - trend| of a record that counts as steady
_TESTS = ("trend_p", "kendall_tau", "oscillation_p", "lag1", "lag1_interval", "period_steps",
          "peak_p")  # fmt: skip


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
    """Give what is left beside the trend: medians of stretches, joined by straight lines.

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
    told: dict[str, Any] = {"samples": n, **_shape(series), **_slope(series)}
    if tests:
        told |= _tested(series)
    else:
        told["missing"] = not_before("Expert", *_TESTS)
    return _explained(FlowCharacteristics(**told), "the norms do not vary, or are too few")


def no_flow() -> FlowCharacteristics:
    """Say that the depth leaves the flow out."""
    empty = FlowCharacteristics()
    return msgspec.structs.replace(empty, missing=not_before("Standard", *empty.unexplained()))


def _shape(series: LogNorms) -> dict[str, Any]:
    from ..stats.oscillation import turning_points

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
