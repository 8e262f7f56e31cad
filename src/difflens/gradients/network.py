"""The network as a whole: every part of its analysis, as far as the depth asks for it.

Basic: health, distribution and sources of instability. Standard adds slopes, phase, plateau and
scatter; Comprehensive the pairs of layers that move together; Expert forecasts, steps to the floor
and early-warning signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..network_results import (
    Health,
    NetworkLevelAnalysis,
    PlateauDetection,
    StabilityAssessment,
)
from . import co_moving as moving
from . import convergence as converging
from . import forecast, heading, phases, plateau, slopes
from .co_moving import Directions, Moving, co_moving
from .convergence import convergence, fitted, unknown_convergence
from .depths import depth_of, not_before, reaches
from .distribution import distribution
from .forecast import no_outlook, outlook
from .phases import dynamics, unknown_dynamics
from .plateau import plateau_of
from .reasons import blank
from .sources import instability_sources
from .stability import stability, unknown_stability
from .totals import Totals, totals

if TYPE_CHECKING:
    from ..gradient_results import LayerGradientDetails
    from ..network_results import ConvergenceIndicators, TrainingDynamics
    from .signals import Signals
    from .thresholds import GradientThresholds

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
    spread = distribution(signals)
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
    found = totals(signals)
    trends = _trends(signals, found, window, level)
    pairs = _pairs(found, directions, level)
    return NetworkLevelAnalysis(
        **known,
        layer_interactions=pairs.interactions,
        pairs_tested=pairs.tested,
        pairs_co_moving=pairs.positive,
        pairs_counter_moving=pairs.negative,
        convergence_indicators=trends[0],
        training_dynamics=trends[1],
        stability_assessment=_stability(
            signals, found, instability_sources(signals, details, window, limits),
            (window, stability_threshold, level),
        ),
        notes=_notes(signals, found, pairs),
    )  # fmt: skip


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
    """Give one consistent answer where there is nothing to look at."""
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
    signals: Signals, found: Totals, window: int, level: Any
) -> tuple[ConvergenceIndicators, TrainingDynamics]:
    if not reaches(level, "Standard"):
        left, needs = "this depth leaves it out", 'depth="standard"'
        flat = blank(PlateauDetection, needs, left)
        return unknown_convergence(left), unknown_dynamics(left, flat)
    flat = plateau_of(found.loss)
    seen = heading.evidence(found, signals, flat, window)
    curve = fitted(found.loss)
    return (
        convergence(seen, found, curve, forecast=reaches(level, "Expert")),
        dynamics(seen, found, signals, curve, window),
    )


def _pairs(found: Totals, directions: Directions | None, level: Any) -> Moving:
    if not reaches(level, "Comprehensive"):
        return Moving((), 0, 0, 0, "this depth leaves the pairs out")
    return co_moving(found, directions, partial=reaches(level, "Expert"))


def _stability(
    signals: Signals, found: Totals, sources: Any, settings: tuple[int, float, Any]
) -> StabilityAssessment:
    window, threshold, level = settings
    if not reaches(level, "Standard"):
        left = no_outlook('depth="expert"', "this depth leaves it out")
        made = StabilityAssessment(
            instability_sources=sources, stability_forecast=left, threshold=threshold
        )
        fields = [each.field for each in made.missing]
        return StabilityAssessment(
            instability_sources=sources, stability_forecast=left, threshold=threshold,
            missing=not_before("Standard", *fields),
        )  # fmt: skip
    expert = reaches(level, "Expert")
    ahead = no_outlook('depth="expert"', "this depth leaves it out")
    if expert:
        ahead = outlook(found.gradient, window, thinned=signals.thinned)
    return stability(found, sources, ahead, threshold, expert=expert)


def _notes(signals: Signals, found: Totals, pairs: Moving) -> tuple[str, ...]:
    told = []
    if signals.thinned:
        told.append("a long run: its points stand for several frames each, and swings are not told")
    if found.left_out:
        told.append(f"{found.left_out} layers lack too many steps to be part of the whole")
    if pairs.why:
        told.append(f"pairs of layers: {pairs.why}")
    return tuple(told)


def _policy(level: str, window: int, threshold: float) -> dict[str, Any]:
    """Name every choice that a word of this analysis depends on."""
    return {
        "depth": level, "window": window, "stability_threshold": threshold,
        "alpha": slopes.ALPHA, "gradient_band_per_100_steps": heading.BAND,
        "backward_cosine": heading.BACKWARD, "flat_share_per_100_steps": plateau.FLAT,
        "floor_tolerance": converging.TOLERANCE, "forecast_level": forecast.LEVEL,
        "pairs_listed": moving.TOP, "pairs_alpha": 0.05,
        "phase_parts": [phases.STEEP, phases.SLOW],
        "health_shares": [CRITICAL_MANY, CRITICAL_SOME, WARNING_MANY],
    }  # fmt: skip
