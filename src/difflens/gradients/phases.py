"""How training moves: the phase by the loss curve, and three speeds, each measured by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..network_results import LearningPhase, MeasuredTrend, PlateauDetection, TrainingDynamics
from ..records import Interval, Missing
from ..stats.mean import correlated_mean
from ..stats.trend import theil_sen
from .convergence import TOLERANCE
from .heading import Evidence
from .reasons import because, blank
from .slopes import LEAST, PER, two_ways
from .totals import Series

if TYPE_CHECKING:
    from ..stats.decay import Decay
    from .signals import Signals
    from .totals import Totals

STEEP, SLOW = 0.5, 0.1  # parts of the slope at the start: above is initial, below is refinement


def dynamics(
    seen: Evidence, found: Totals, signals: Signals, curve: Decay | None, window: int
) -> TrainingDynamics:
    """Fill the record: phase, momentum, velocity, adaptation rate and the plateau."""
    held_back = _held_back(signals)
    phase, reason = phase_of(seen, found.loss, held_back, curve, window)
    momentum = (
        correlated_mean(cosines) if len(cosines := found.cosine.last(window).values) else None
    )
    trend = seen.loss.recent
    ratios = found.relative_update.last(window).values
    told: dict[str, Any] = {
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
    missing = tuple(each for each in _reasons(reason) if told[each.field] is None)
    return TrainingDynamics(plateau_detection=seen.plateau, missing=missing, **told)


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
    """Name the phase and say why; None where the loss does not show it."""
    if _overfits(seen, held_back):
        return LearningPhase.OVERFITTING, "the validation loss rises while the loss falls"
    if seen.plateau.outcome == "plateau":
        return LearningPhase.PLATEAU, f"the loss is flat since step {seen.plateau.since_step}"
    if curve is not None and curve.identified and _is_near(loss, curve, window):
        why = f"the loss is within {100 * TOLERANCE:g} % of its floor {curve.floor:.4g}"
        return LearningPhase.CONVERGENCE, why
    n = len(loss.steps)
    if n < 2 * max(window, LEAST):
        told = f"{n} loss{'' if n == 1 else 'es'} recorded; start and present need {window} each"
        return None, told if n else "no loss was recorded"
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
    told = f"the loss falls at {part:.2g} of its speed at the start"
    if now.interval.high < STEEP * steepest:
        return LearningPhase.INITIAL_LEARNING, told
    return (LearningPhase.REFINEMENT if part < SLOW else LearningPhase.RAPID_LEARNING), told


def unknown_dynamics(why: str, plateau: PlateauDetection) -> TrainingDynamics:
    """Say that nothing can be said."""
    return blank(TrainingDynamics, "a recorded run", why, plateau_detection=plateau, reason=why)
