"""Three slopes that are measured apart, and how far it is to the floor of the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..network_results import ConvergenceIndicators, LossCurve
from ..records import Interval, Missing
from ..stats.decay import Decay, decay
from .heading import Evidence, word
from .reasons import because, blank
from .slopes import ALPHA, measured

if TYPE_CHECKING:
    from ..stats.oscillation import Oscillation
    from .totals import Series, Totals

TOLERANCE = 0.01  # of the floor, within which the loss counts as converged
_ABOVE = 0.8  # share of losses that must lie above the floor for their logarithm to be a series


def convergence(
    seen: Evidence, found: Totals, curve: Decay | None, *, forecast: bool
) -> ConvergenceIndicators:
    """Fill the record: scores, the word with its reason, and how far it is to the floor."""
    trend, reason = word(seen)
    above, no_loss = _above_floor(found.loss, curve)
    steps, reasons = _steps(curve, forecast=forecast)
    swing = seen.swing
    told: dict[str, Any] = {
        "gradient_convergence_score": seen.gradient.recent.slope,
        "parameter_convergence_score": seen.update.recent.slope,
        "loss_convergence_score": above,
        "convergence_trend": trend,
        "reason": reason,
        "gradient_trend": seen.gradient.recent,
        "gradient_course": seen.course,
        "update_trend": seen.update.recent,
        "loss_trend": seen.loss.recent,
        "loss_course": seen.loss.later,
        "loss_curve": curve_of(curve),
        "oscillation_period": _period(swing, found.gradient),
        "oscillation_p": None if swing is None else swing.p,
        "tolerance": TOLERANCE,
        **steps,
    }
    reasons += [
        *because("gradient norms at more steps", "too few points", "gradient_convergence_score"),
        *because("update norms at more steps", "too few points", "parameter_convergence_score"),
        *because("a loss whose floor is known", no_loss, "loss_convergence_score"),
        *because("the loss of more steps", "no falling curve could be fitted", "loss_curve"),
        *because("neighbouring steps", "none, too few, or thinned out", "oscillation_p"),
        *because("an oscillation", "none was found", "oscillation_period"),
    ]
    known = tuple(each for each in reasons if told.get(each.field) is None)
    return ConvergenceIndicators(**told, missing=known)


def fitted(loss: Series) -> Decay | None:
    """Fit the decay of the loss over all that was kept."""
    return decay(loss.steps, loss.values, TOLERANCE) if len(loss.steps) else None


def curve_of(found: Decay | None) -> LossCurve | None:
    """Tell the fitted curve as a record."""
    if found is None:
        return None
    return LossCurve(
        form=found.form, floor=found.floor, rate=found.rate, amplitude=found.amplitude,
        floor_interval=Interval(
            found.floor_low, found.floor_high, found.level, "bootstrap", found.n
        ),
        identified=found.identified, aicc_difference=found.aicc_difference,
        autocorrelation=found.phi, n=found.n,
    )  # fmt: skip


def _above_floor(loss: Series, curve: Decay | None) -> tuple[float | None, str]:
    """Give the slope of ln(loss - floor) per 100 steps over the later half, where it has one."""
    if curve is None or not curve.identified:
        return None, curve.note if curve else "no falling curve could be fitted to the loss"
    half = loss.later_half()
    above = half.values > curve.floor
    if above.mean() < _ABOVE:
        return None, "the loss scatters about its floor"
    series = half._replace(steps=half.steps[above], values=np.log(half.values[above] - curve.floor))
    return measured(series, "the loss above its floor").slope, "too few points"


def _steps(curve: Decay | None, *, forecast: bool) -> tuple[dict[str, Any], list[Missing]]:
    fields = ("estimated_steps_to_convergence", "steps_interval")
    if not forecast:
        return {}, list(because('depth="expert"', "this depth leaves it out", *fields))
    if curve is None or curve.steps is None:
        why = curve.note if curve else "no falling curve could be fitted to the loss"
        return {}, list(because("a loss whose floor is identified", why, *fields))
    ends = Interval(curve.steps_low, curve.steps_high, curve.level, "bootstrap", curve.n)
    return {fields[0]: round(curve.steps), fields[1]: ends}, []


def _period(swing: Oscillation | None, gradient: Series) -> float | None:
    if swing is None or swing.peak_p is None or swing.period is None or swing.peak_p > ALPHA:
        return None
    return swing.period * gradient.gap


def unknown_convergence(why: str) -> ConvergenceIndicators:
    """Say that nothing can be said."""
    return blank(ConvergenceIndicators, "gradient norms and the loss", why, reason=why)
