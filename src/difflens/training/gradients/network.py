"""The network as a whole: every part of its analysis, as far as the depth asks for it.

Basic: health, distribution and sources of instability. Standard adds slopes, phase, plateau and
scatter; Comprehensive the pairs of layers that move together; Expert forecasts, steps to the floor
and early-warning signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from difflens.core.findings import Interval, Missing
from difflens.stats.oscillation import without_drift
from difflens.stats.steadiness import Scatter, scatter_ratio, slowing

from ..records.network import (
    CriticalSlowing,
    Health,
    InstabilitySource,
    NetworkLevelAnalysis,
    PlateauDetection,
    StabilityAssessment,
    StabilityForecast,
    StabilityTrend,
)
from . import convergence, distribution, phases, series, stability
from .convergence import fitted, heading_evidence, measure_convergence, unknown_convergence
from .distribution import Directions, Moving, co_moving, measure_distribution
from .phases import dynamics, plateau_of, unknown_dynamics
from .series import Totals, because, blank, totals
from .settings import depth_of, not_before, reaches
from .stability import instability_sources, no_outlook, outlook

if TYPE_CHECKING:
    from ..records.gradients import LayerGradientDetails
    from ..records.network import ConvergenceIndicators, TrainingDynamics
    from .settings import GradientThresholds
    from .signals import Signals

CRITICAL_MANY, CRITICAL_SOME, WARNING_MANY = 0.3, 0.1, 0.5  # shares of the layers that were judged


def network_level(
    signals: Signals,
    details: Mapping[str, LayerGradientDetails],
    *,
    depth: str = "Standard",
    window: int = 100,
    stability_threshold: float = 0.8,
    directions: Directions | None = None,
    limits: GradientThresholds | None = None,
) -> NetworkLevelAnalysis:
    """Analyse the network; without any norm everything is unknown for one reason.

    `directions` maps pairs of layers to cosines between the gradients that both give to shared
    parameters; without them nobody is called cooperative or competitive.
    """
    level = depth_of(depth)
    spread = measure_distribution(signals)
    counts = _counted(details)
    known: dict[str, Any] = {
        "layers_by_health": counts,
        "gradient_distribution": spread,
        "overall_gradient_health": overall_health(counts, nonfinite=spread.nonfinite),
        "policy": _policy(level, window, stability_threshold),
        "missing": not_before("Standard", "depth_profile"),  # the analyser fills it
    }
    if not spread.n:
        return _nothing(known, signals)
    course = totals(signals)
    trends = _trends(signals, course, window, level)
    pairs = _pairs(course, directions, level)
    return NetworkLevelAnalysis(
        **known,
        layer_interactions=pairs.interactions,
        pairs_tested=pairs.tested,
        pairs_co_moving=pairs.positive,
        pairs_counter_moving=pairs.negative,
        convergence_indicators=trends[0],
        training_dynamics=trends[1],
        stability_assessment=_stability(
            signals,
            course,
            instability_sources(signals, details, window, limits),
            (window, stability_threshold, level),
        ),
        notes=_notes(signals, course, pairs),
    )


def overall_health(counts: Mapping[str, int], *, nonfinite: int = 0) -> Health:
    """Judge the network by the shares of its layers; a norm that is not finite is critical."""
    if nonfinite:
        return "Critical"
    judged = sum(counts.get(word, 0) for word in ("Healthy", "Warning", "Critical"))
    if not judged:
        return "Unknown"
    critical, warning = (counts.get(word, 0) / judged for word in ("Critical", "Warning"))
    if critical > CRITICAL_MANY:
        return "Critical"
    return "Warning" if critical > CRITICAL_SOME or warning > WARNING_MANY else "Healthy"


def _counted(details: Mapping[str, LayerGradientDetails]) -> dict[str, int]:
    words = [str(each.health_metrics.overall_health) for each in details.values()]
    return {word: words.count(word) for word in ("Healthy", "Warning", "Critical", "Unknown")}


def _nothing(known: dict[str, Any], signals: Signals) -> NetworkLevelAnalysis:
    """Return one consistent answer where there is nothing to look at."""
    why = "no layer has a finite norm" if signals.layers else "there are no layers"
    needs = "gradient norms"
    return NetworkLevelAnalysis(
        **known,
        layer_interactions=(),
        convergence_indicators=unknown_convergence(why),
        training_dynamics=unknown_dynamics(why, blank(PlateauDetection, needs, why)),
        stability_assessment=unknown_stability(why, no_outlook(needs, why)),
        notes=(why,),
    )


def _trends(
    signals: Signals, course: Totals, window: int, level: Any
) -> tuple[ConvergenceIndicators, TrainingDynamics]:
    if not reaches(level, "Standard"):
        left, needs = "this depth leaves it out", 'depth="standard"'
        flat = blank(PlateauDetection, needs, left)
        return unknown_convergence(left), unknown_dynamics(left, flat)
    flat = plateau_of(course.loss)
    seen = heading_evidence(course, signals, flat, window)
    curve = fitted(course.loss)
    return (
        measure_convergence(seen, course, curve, forecast=reaches(level, "Expert")),
        dynamics(seen, course, signals, curve, window),
    )


def _pairs(course: Totals, directions: Directions | None, level: Any) -> Moving:
    if not reaches(level, "Comprehensive"):
        return Moving((), 0, 0, 0, "this depth leaves the pairs out")
    return co_moving(course, directions, partial=reaches(level, "Expert"))


def _stability(
    signals: Signals, course: Totals, sources: Any, settings: tuple[int, float, Any]
) -> StabilityAssessment:
    window, threshold, level = settings
    if not reaches(level, "Standard"):
        left = no_outlook('depth="expert"', "this depth leaves it out")
        made = StabilityAssessment(
            instability_sources=sources, stability_forecast=left, threshold=threshold
        )
        fields = [each.field for each in made.missing]
        return StabilityAssessment(
            instability_sources=sources,
            stability_forecast=left,
            threshold=threshold,
            missing=not_before("Standard", *fields),
        )
    expert = reaches(level, "Expert")
    ahead = no_outlook('depth="expert"', "this depth leaves it out")
    if expert:
        ahead = outlook(course.gradient, window, thinned=signals.thinned)
    return assess_stability(course, sources, ahead, threshold, expert=expert)


def _notes(signals: Signals, course: Totals, pairs: Moving) -> tuple[str, ...]:
    notes = []
    if signals.thinned:
        notes.append(
            "a long run: its points stand for several frames each, and swings are not told"
        )
    if course.left_out:
        notes.append(f"{course.left_out} layers lack too many steps to be part of the whole")
    if pairs.why:
        notes.append(f"pairs of layers: {pairs.why}")
    return tuple(notes)


def _policy(level: str, window: int, threshold: float) -> dict[str, Any]:
    """Name every choice that a word of this analysis depends on."""
    return {
        "depth": level,
        "window": window,
        "stability_threshold": threshold,
        "alpha": series.ALPHA,
        "gradient_band_per_100_steps": convergence.BAND,
        "backward_cosine": convergence.BACKWARD,
        "flat_share_per_100_steps": phases.FLAT,
        "floor_tolerance": convergence.TOLERANCE,
        "forecast_level": stability.LEVEL,
        "pairs_listed": distribution.TOP,
        "pairs_alpha": 0.05,
        "phase_parts": [phases.STEEP, phases.SLOW],
        "health_shares": [CRITICAL_MANY, CRITICAL_SOME, WARNING_MANY],
    }


# The reference squashes std/mean into 1/(1 + x), which calls every healthy decay unstable. Here the
# course is taken out first, and the number is the range that holds the middle half of the rest.

LEAST = 20  # points below which the scatter is not told
LATEST = 4000  # points over which it is told
SURROGATES = 199
CUT = 4.0  # robust deviations at which a spike is cut off, which would else bend the course
_CHANGE = ("stability_trend", "scatter_ratio", "scatter_interval")


def assess_stability(
    course: Totals,
    sources: tuple[InstabilitySource, ...],
    outlook: StabilityForecast,
    threshold: float,
    *,
    expert: bool,
) -> StabilityAssessment:
    """Fill the record; ratios from `threshold` to 1/threshold count as no change."""
    fields: dict[str, Any] = {
        "instability_sources": sources,
        "stability_forecast": outlook,
        "threshold": threshold,
    }
    reasons: list[Missing] = []
    table = course.table[-LATEST:]
    if len(table) < LEAST:
        why = f"{len(table)} points at which every layer has a norm, {LEAST} are needed"
        reasons += because("a longer run", why, "overall_stability", *_CHANGE)
    else:
        low, high = np.quantile(without_drift(table, CUT), (0.25, 0.75), axis=0)
        fields["overall_stability"] = float(np.median(high - low))
        ratio = scatter_ratio(without_drift(course.gradient.values[-LATEST:, None], CUT)[:, 0])
        fields |= _change(ratio, threshold)
        if ratio is None:
            reasons += because("more points that vary", "the halves are too short", *_CHANGE)
    signs = _slowing(course, expert=expert)
    missing = (*reasons, *signs[1])
    return StabilityAssessment(critical_slowing=signs[0], missing=missing, **fields)


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


def _slowing(course: Totals, *, expert: bool) -> tuple[CriticalSlowing | None, tuple[Missing, ...]]:
    if not expert:
        why = "this depth leaves it out"
        return None, because('depth="expert"', why, "critical_slowing")
    made = slowing(course.gradient.values, surrogates=SURROGATES)
    if made is None:
        return None, because("a longer run", "too few points", "critical_slowing")
    return CriticalSlowing(
        autocorrelation_tau=made.autocorrelation_tau,
        autocorrelation_p=made.autocorrelation_p,
        variance_tau=made.variance_tau,
        variance_p=made.variance_p,
        surrogates=SURROGATES,
    ), ()


def unknown_stability(why: str, outlook: StabilityForecast) -> StabilityAssessment:
    """Say that nothing can be said."""
    return blank(StabilityAssessment, "gradient norms", why, stability_forecast=outlook)
