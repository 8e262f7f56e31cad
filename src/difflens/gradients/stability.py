"""How much the ln norms scatter about their course, and whether the scatter changes.

The reference squashes std/mean into 1/(1 + x), which calls every healthy decay unstable. Here the
course is taken out first, and the number is the range that holds the middle half of the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..network_results import (
    CriticalSlowing,
    InstabilitySource,
    StabilityAssessment,
    StabilityForecast,
    StabilityTrend,
)
from ..records import Interval, Missing
from ..stats.drift import without_drift
from ..stats.scatter import Scatter, scatter_ratio
from ..stats.slowing import slowing
from .reasons import because, blank

if TYPE_CHECKING:
    from .totals import Totals

LEAST = 20  # points below which the scatter is not told
LATEST = 4000  # points over which it is told
SURROGATES = 199
CUT = 4.0  # robust deviations at which a spike is cut off, which would else bend the course
_CHANGE = ("stability_trend", "scatter_ratio", "scatter_interval")


def stability(
    found: Totals,
    sources: tuple[InstabilitySource, ...],
    outlook: StabilityForecast,
    threshold: float,
    *,
    expert: bool,
) -> StabilityAssessment:
    """Fill the record; ratios from `threshold` to 1/threshold count as no change."""
    told: dict[str, Any] = {"instability_sources": sources, "stability_forecast": outlook,
                            "threshold": threshold}  # fmt: skip
    reasons: list[Missing] = []
    table = found.table[-LATEST:]
    if len(table) < LEAST:
        why = f"{len(table)} points at which every layer has a norm, {LEAST} are needed"
        reasons += because("a longer run", why, "overall_stability", *_CHANGE)
    else:
        low, high = np.quantile(without_drift(table, CUT), (0.25, 0.75), axis=0)
        told["overall_stability"] = float(np.median(high - low))
        ratio = scatter_ratio(without_drift(found.gradient.values[-LATEST:, None], CUT)[:, 0])
        told |= _change(ratio, threshold)
        if ratio is None:
            reasons += because("more points that vary", "the halves are too short", *_CHANGE)
    signs = _slowing(found, expert=expert)
    missing = (*reasons, *signs[1])
    return StabilityAssessment(critical_slowing=signs[0], missing=missing, **told)


def _change(ratio: Scatter | None, threshold: float) -> dict[str, Any]:
    if ratio is None:
        return {}
    word = StabilityTrend.INCONCLUSIVE
    if ratio.low >= threshold and ratio.high <= 1 / threshold:
        word = StabilityTrend.STABLE
    elif ratio.low > 1:
        word = StabilityTrend.DEGRADING
    elif ratio.high < 1:
        word = StabilityTrend.IMPROVING
    ends = Interval(ratio.low, ratio.high, ratio.level, "moving-block bootstrap", ratio.n)
    return {"stability_trend": word, "scatter_ratio": ratio.value, "scatter_interval": ends}


def _slowing(found: Totals, *, expert: bool) -> tuple[CriticalSlowing | None, tuple[Missing, ...]]:
    if not expert:
        why = "this depth leaves it out"
        return None, because('depth="expert"', why, "critical_slowing")
    made = slowing(found.gradient.values, surrogates=SURROGATES)
    if made is None:
        return None, because("a longer run", "too few points", "critical_slowing")
    return CriticalSlowing(
        autocorrelation_tau=made.autocorrelation_tau, autocorrelation_p=made.autocorrelation_p,
        variance_tau=made.variance_tau, variance_p=made.variance_p, surrogates=SURROGATES,
    ), ()  # fmt: skip


def unknown_stability(why: str, outlook: StabilityForecast) -> StabilityAssessment:
    """Say that nothing can be said."""
    return blank(StabilityAssessment, "gradient norms", why, stability_forecast=outlook)
