"""How training moves: its phase and speeds, and since when the loss is flat.

A plateau is asked of the loss, never of gradient norms: these may be steady all along a long
descent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from difflens.core.findings import Interval, Missing
from difflens.stats.steadiness import SMALLEST, Plateau, correlated_mean, plateau
from difflens.stats.trend import theil_sen

from ..records.network import (
    LearningPhase,
    MeasuredTrend,
    PlateauDetection,
    PlateauSeverity,
    TrainingDynamics,
)
from .convergence import TOLERANCE, Evidence
from .series import LEAST, PER, Series, because, blank, two_ways

if TYPE_CHECKING:
    from difflens.stats.decay import Decay

    from .series import Totals
    from .signals import Signals

STEEP, SLOW = 0.5, 0.1  # parts of the slope at the start: above is initial, below is refinement


def dynamics(
    seen: Evidence, course: Totals, signals: Signals, curve: Decay | None, window: int
) -> TrainingDynamics:
    """Fill the record: phase, momentum, velocity, adaptation rate and the plateau."""
    held_back = _held_back(signals)
    phase, reason = phase_of(seen, course.loss, held_back, curve, window)
    momentum = (
        correlated_mean(cosines) if len(cosines := course.cosine.last(window).values) else None
    )
    trend = seen.loss.recent
    ratios = course.relative_update.last(window).values
    fields: dict[str, Any] = {
        "learning_phase": phase,
        "reason": reason,
        "gradient_momentum": None if momentum is None else momentum.value,
        "momentum_interval": None
        if momentum is None or momentum.low is None
        else Interval(momentum.low, momentum.high, 0.95, "t, effective n", len(cosines)),
        "learning_velocity": None if trend.slope is None else -trend.slope / PER,
        "velocity_interval": _turned(trend),
        "adaptation_rate": float(np.median(ratios)) if len(ratios) else None,
    }
    missing = tuple(each for each in _reasons(reason) if fields[each.field] is None)
    return TrainingDynamics(plateau_detection=seen.plateau, missing=missing, **fields)


def _reasons(reason: str) -> tuple[Missing, ...]:
    return (
        *because("a loss curve that shows it", reason, "learning_phase"),
        *because("cosines of successive gradients", "none were recorded", "gradient_momentum"),
        *because("eight cosines or more", "too few", "momentum_interval"),
        *because("the loss of more steps", "too few", "learning_velocity", "velocity_interval"),
        *because("update and weight norms", "not recorded of every layer", "adaptation_rate"),
    )


def _held_back(signals: Signals) -> Series:
    if signals.validation_loss is None or signals.validation_steps is None:
        return Series(np.empty(0), np.empty(0))
    values = np.asarray(signals.validation_loss, np.float64)
    there = np.isfinite(values)
    return Series(np.asarray(signals.validation_steps, np.float64)[there], values[there])


def _turned(trend: MeasuredTrend) -> Interval | None:
    """Turn the interval of a slope per 100 steps into that of a fall per step."""
    ends = trend.interval
    if ends is None or ends.low is None or ends.high is None:
        return None
    return Interval(-ends.high / PER, -ends.low / PER, ends.level, ends.method, ends.n)


def phase_of(
    seen: Evidence, loss: Series, held_back: Series, curve: Decay | None, window: int
) -> tuple[LearningPhase | None, str]:
    """Name the phase and say why; None if the loss does not show it."""
    if _overfits(seen, held_back):
        return LearningPhase.OVERFITTING, "the validation loss rises while the loss falls"
    if seen.plateau.outcome == "plateau":
        return LearningPhase.PLATEAU, f"the loss is flat since step {seen.plateau.since_step}"
    if curve is not None and curve.identified and _is_near(loss, curve, window):
        why = f"the loss is within {100 * TOLERANCE:g} % of its floor {curve.floor:.4g}"
        return LearningPhase.CONVERGENCE, why
    n = len(loss.steps)
    if n < 2 * max(window, LEAST):
        text = f"{n} loss{'' if n == 1 else 'es'} recorded; start and present need {window} each"
        return None, text if n else "no loss was recorded"
    if seen.loss.way != "falls":
        return None, "the loss neither falls for certain nor is shown to be flat"
    return _by_speed(seen.loss.clearest, loss, window)


def _overfits(seen: Evidence, held_back: Series) -> bool:
    """Does the validation loss rise while the loss falls?"""
    n = len(held_back.steps)
    if n < LEAST or seen.loss.way != "falls":
        return False
    return two_ways(held_back, max(LEAST, n // 2), "the validation loss").way == "rises"


def _is_near(loss: Series, curve: Decay, window: int) -> bool:
    now = float(np.median(loss.last(window).values))
    return curve.floor_high <= 0 or now <= curve.floor_low * (1 + TOLERANCE)


def _by_speed(now: MeasuredTrend, loss: Series, window: int) -> tuple[LearningPhase | None, str]:
    start = theil_sen(loss.steps[:window], loss.values[:window])
    steepest = 0.0 if start is None else PER * start.value
    if not steepest < 0 or now.slope is None or now.interval is None or now.interval.high is None:
        return None, "the loss did not fall at the start, so that there is nothing to hold it to"
    part = now.slope / steepest
    text = f"the loss falls at {part:.2g} of its speed at the start"
    if now.interval.high < STEEP * steepest:
        return LearningPhase.INITIAL_LEARNING, text
    return (LearningPhase.REFINEMENT if part < SLOW else LearningPhase.RAPID_LEARNING), text


def unknown_dynamics(why: str, plateau: PlateauDetection) -> TrainingDynamics:
    """Say that nothing can be said."""
    return blank(TrainingDynamics, "a recorded run", why, plateau_detection=plateau, reason=why)


FLAT = 0.001  # share of the loss that it may move per 100 steps and still be flat
MODERATE, SEVERE = 0.1, 0.3  # share of the run from which a plateau is so called


def plateau_of(loss: Series) -> PlateauDetection:
    """Judge the loss; the margin is 0.1 % of it as it is now, per 100 steps."""
    n = len(loss.steps)
    if n < 2 * SMALLEST:
        why = f"{n} finite losses, {2 * SMALLEST} are needed"
        return blank(PlateauDetection, "the loss of more steps", why)
    now = abs(float(np.median(loss.values[-SMALLEST:])))
    margin = FLAT * now / PER
    if margin <= 0:
        return blank(PlateauDetection, "a loss that is not zero", "the loss is zero")
    flat = plateau(loss.steps, loss.values, margin)
    fields: dict[str, Any] = {
        "outcome": flat.outcome,
        "margin": margin * PER,
        "slope": None if flat.slope is None else flat.slope * PER,
        "interval": _interval(flat),
        "points_needed": flat.needed,
    }
    if flat.outcome == "plateau":
        return _flat(flat, loss, fields)
    if flat.outcome == "moving":
        why = "the loss moves"
        return blank(PlateauDetection, "a loss that does not move", why, is_plateau=False, **fields)
    why = (
        f"the slope is not known to better than the margin; "
        f"a window of about {flat.needed} points would tell"
    )
    reasons = because(f"{flat.needed} points", why, "is_plateau")
    return blank(PlateauDetection, "a plateau", "none was shown", missing=reasons, **fields)


def _interval(plateau: Plateau) -> Interval | None:
    if plateau.low is None or plateau.high is None:
        return None
    return Interval(
        PER * plateau.low,
        PER * plateau.high,
        plateau.level,
        "Theil-Sen, widened for autocorrelation",
        plateau.points,
    )


def _flat(plateau: Plateau, loss: Series, fields: dict[str, Any]) -> PlateauDetection:
    start, last = plateau.start or 0.0, float(loss.steps[-1])
    duration = int(last - start)
    share = duration / max(last - float(loss.steps[0]), 1.0)
    severity = PlateauSeverity.MILD
    if share >= MODERATE:
        severity = PlateauSeverity.SEVERE if share >= SEVERE else PlateauSeverity.MODERATE
    since = f"the loss has moved by less than {100 * FLAT:g} % per 100 steps since step {start:.0f}"
    actions = (
        f"change the learning rate, and see whether the loss answers: {since}",
        f"stop here if the loss is where it should be: {since}",
    )
    return blank(
        PlateauDetection,
        "a window that did not tell",
        "one did",
        is_plateau=True,
        plateau_duration=duration,
        plateau_severity=severity,
        suggested_actions=actions,
        since_step=int(start),
        **fields,
    )
