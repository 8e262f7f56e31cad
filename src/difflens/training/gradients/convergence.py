"""Where training is heading, and how far it is to the floor of the loss.

Gradients that shrink do not show convergence by themselves: they also shrink where they vanish. So
the word `Converging` needs a loss that falls, and `Stable` one that is shown to be flat. Growing
norms are never called converging. What the gradients do without a loss is said in the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from difflens.core.findings import Interval, Missing
from difflens.stats.decay import Decay, decay
from difflens.stats.oscillation import FEWEST, Oscillation, oscillation
from difflens.stats.steadiness import correlated_mean

from ..history.frame import is_missing
from ..records.network import (
    ConvergenceIndicators,
    ConvergenceTrend,
    LossCurve,
    MeasuredTrend,
    PlateauDetection,
)
from .series import ALPHA, TwoWays, because, blank, measured, two_ways

if TYPE_CHECKING:
    from .series import Series, Totals
    from .signals import Signals

BAND = 0.1  # change of ln g per 100 steps that still is holding its size
BACKWARD = -0.3  # mean cosine of successive gradients below which they undo each other
SWINGS_OVER = 5  # windows over which an oscillation is looked for


class Evidence(NamedTuple):
    """All that the word is made of."""

    gradient: TwoWays
    course: MeasuredTrend  # the gradient over all that was kept
    update: TwoWays
    loss: TwoWays
    swing: Oscillation | None
    backward: float | None  # upper end of the mean cosine of successive gradients
    plateau: PlateauDetection
    broken_since: int | None  # step since which the loss is not finite


def heading_evidence(
    course: Totals, signals: Signals, plateau: PlateauDetection, window: int
) -> Evidence:
    """Measure everything once; an oscillation needs neighbours, which thinned points are not."""
    near = course.gradient.last(SWINGS_OVER * window).values
    judged = not signals.thinned and len(near) >= FEWEST
    cosines = course.cosine.last(window).values
    mean = correlated_mean(cosines) if len(cosines) else None
    return Evidence(
        two_ways(course.gradient, window, "the gradient norm"),
        measured(course.gradient, "the gradient norm"),
        two_ways(course.update, window, "the update norm"),
        two_ways(course.loss, window, "the loss"),
        oscillation(near) if judged else None,
        None if mean is None else mean.high,
        plateau,
        _broken_since(signals),
    )


def _broken_since(signals: Signals) -> int | None:
    """Return the step since which the loss is not finite, up to the last."""
    if signals.loss is None or not len(signals.loss):
        return None
    logged = ~is_missing(signals.loss)
    steps, loss = signals.steps[logged], np.asarray(signals.loss)[logged]
    fine = np.flatnonzero(np.isfinite(loss))
    after = int(fine[-1]) + 1 if len(fine) else 0
    return int(steps[after]) if after < len(loss) else None


def word(seen: Evidence) -> tuple[ConvergenceTrend, str]:
    """Return the word and why; loss first, then swings, then what gradients and updates say."""
    loss, gradient = seen.loss.way, seen.gradient.way
    if seen.broken_since is not None:
        why = f"the loss is not finite since step {seen.broken_since}"
        return ConvergenceTrend.DIVERGING, why
    if loss == "rises":
        return ConvergenceTrend.DIVERGING, f"the loss rises{_rate(seen.loss)}"
    if loss == "unknown" and gradient == "rises" and _beyond_band(seen.gradient.clearest):
        return ConvergenceTrend.DIVERGING, f"gradients grow{_rate(seen.gradient)}; loss unknown"
    if seen.swing is not None and seen.swing.p is not None and seen.swing.p <= ALPHA:
        why = f"the gradient norm swings (p = {seen.swing.p:.2g}); the loss {_describe(loss)}"
        return ConvergenceTrend.OSCILLATING, why
    if seen.backward is not None and seen.backward < BACKWARD:
        why = f"successive gradients point backwards; the loss {_describe(loss)}"
        return ConvergenceTrend.OSCILLATING, why
    return _steady(seen)


def _steady(seen: Evidence) -> tuple[ConvergenceTrend, str]:
    loss, gradient = seen.loss.way, seen.gradient.way
    shrinks = gradient == "falls" and (seen.course.slope or 0.0) < 0
    if loss == "unknown":
        return _without_loss(seen)
    if seen.plateau.outcome == "plateau":
        if gradient == "rises":
            return ConvergenceTrend.UNKNOWN, "the loss is flat while gradients grow"
        return ConvergenceTrend.STABLE, f"the loss is flat since step {seen.plateau.since_step}"
    if loss == "falls" and shrinks and seen.update.way != "rises":
        return ConvergenceTrend.CONVERGING, f"the loss falls{_rate(seen.loss)} and gradients shrink"
    if loss == "falls":
        also = "updates grow" if shrinks else f"the gradient norm {_describe(gradient)}"
        return ConvergenceTrend.UNKNOWN, f"the loss falls while {also}: learning, not converging"
    return ConvergenceTrend.UNKNOWN, f"no trend of the loss is seen; gradients: {gradient}"


def _without_loss(seen: Evidence) -> tuple[ConvergenceTrend, str]:
    if _inside_band(seen.gradient.clearest):
        return ConvergenceTrend.STABLE, "gradients hold their size; loss unknown"
    words = {"falls": "gradients shrink", "rises": "gradients grow", "unknown": "no gradients"}
    text = words.get(seen.gradient.way, "no trend of the gradients is seen")
    return ConvergenceTrend.UNKNOWN, f"{text}; loss unknown"


def _describe(way: str) -> str:
    words = {"unclear": "shows no clear trend", "unknown": "is unknown"}
    return words.get(way, way)


def _rate(both: TwoWays) -> str:
    slope = both.clearest.slope
    return "" if slope is None else f" by {abs(slope):.3g} per 100 steps"


def _beyond_band(trend: MeasuredTrend) -> bool:
    return trend.slope is not None and abs(trend.slope) > BAND


def _inside_band(trend: MeasuredTrend) -> bool:
    ends = trend.interval
    if ends is None or ends.low is None or ends.high is None:
        return False
    return ends.low > -BAND and ends.high < BAND


TOLERANCE = 0.01  # of the floor, within which the loss counts as converged
_ABOVE = 0.8  # share of losses that must lie above the floor for their logarithm to be a series


def measure_convergence(
    seen: Evidence, course: Totals, curve: Decay | None, *, forecast: bool
) -> ConvergenceIndicators:
    """Fill the record: scores, the word with its reason, and how far it is to the floor."""
    trend, reason = word(seen)
    above, no_loss = _above_floor(course.loss, curve)
    steps, reasons = _steps(curve, forecast=forecast)
    swing = seen.swing
    fields: dict[str, Any] = {
        "gradient_convergence_score": seen.gradient.clearest.slope,
        "parameter_convergence_score": seen.update.clearest.slope,
        "loss_convergence_score": above,
        "convergence_trend": trend,
        "reason": reason,
        "gradient_trend": seen.gradient.clearest,
        "gradient_course": seen.course,
        "update_trend": seen.update.clearest,
        "loss_trend": seen.loss.recent,
        "loss_course": seen.loss.later,
        "loss_curve": curve_of(curve),
        "oscillation_period": _period(swing, course.gradient),
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
    known = tuple(each for each in reasons if fields.get(each.field) is None)
    return ConvergenceIndicators(**fields, missing=known)


def fitted(loss: Series) -> Decay | None:
    """Fit the decay of the loss over all that was kept."""
    return decay(loss.steps, loss.values, TOLERANCE) if len(loss.steps) else None


def curve_of(fit: Decay | None) -> LossCurve | None:
    """Tell the fitted curve as a record."""
    if fit is None:
        return None
    return LossCurve(
        form=fit.form,
        floor=fit.floor,
        rate=fit.rate,
        amplitude=fit.amplitude,
        floor_interval=Interval(fit.floor_low, fit.floor_high, fit.level, "bootstrap", fit.n),
        identified=fit.identified,
        aicc_difference=fit.aicc_difference,
        autocorrelation=fit.phi,
        n=fit.n,
    )


def _above_floor(loss: Series, curve: Decay | None) -> tuple[float | None, str]:
    """Return the slope of ln(loss - floor) per 100 steps over the later half, where it has one."""
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
