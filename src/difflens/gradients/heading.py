"""Where training is heading: one word that needs loss, gradients and updates together.

Gradients that shrink are no convergence by themselves: they shrink as well where they vanish. So
the word `Converging` needs a loss that falls, and `Stable` one that is shown to be flat. Growing
norms are never called converging. What the gradients do without a loss is said in the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..history.frame import is_missing
from ..network_results import ConvergenceTrend, MeasuredTrend, PlateauDetection
from ..stats.mean import correlated_mean
from ..stats.oscillation import FEWEST, Oscillation, oscillation
from .slopes import ALPHA, TwoWays, measured, two_ways

if TYPE_CHECKING:
    from .signals import Signals
    from .totals import Totals

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


def evidence(found: Totals, signals: Signals, plateau: PlateauDetection, window: int) -> Evidence:
    """Measure everything once; an oscillation needs neighbours, which thinned points are not."""
    near = found.gradient.last(SWINGS_OVER * window).values
    judged = not signals.thinned and len(near) >= FEWEST
    cosines = found.cosine.last(window).values
    mean = correlated_mean(cosines) if len(cosines) else None
    return Evidence(
        two_ways(found.gradient, window, "the gradient norm"),
        measured(found.gradient, "the gradient norm"),
        two_ways(found.update, window, "the update norm"),
        two_ways(found.loss, window, "the loss"),
        oscillation(near) if judged else None,
        None if mean is None else mean.high,
        plateau,
        _broken_since(signals),
    )


def _broken_since(signals: Signals) -> int | None:
    """Give the step since which the loss is not finite, up to the last."""
    if signals.loss is None or not len(signals.loss):
        return None
    logged = ~is_missing(signals.loss)
    steps, loss = signals.steps[logged], np.asarray(signals.loss)[logged]
    fine = np.flatnonzero(np.isfinite(loss))
    after = int(fine[-1]) + 1 if len(fine) else 0
    return int(steps[after]) if after < len(loss) else None


def word(seen: Evidence) -> tuple[ConvergenceTrend, str]:
    """Give the word and why; loss first, then swings, then what gradients and updates say."""
    loss, gradient = seen.loss.way, seen.gradient.way
    if seen.broken_since is not None:
        why = f"the loss is not finite since step {seen.broken_since}"
        return ConvergenceTrend.DIVERGING, why
    if loss == "rises":
        return ConvergenceTrend.DIVERGING, f"the loss rises{_rate(seen.loss)}"
    if loss == "unknown" and gradient == "rises" and _beyond_band(seen.gradient.clearest):
        return ConvergenceTrend.DIVERGING, f"gradients grow{_rate(seen.gradient)}; loss unknown"
    if seen.swing is not None and seen.swing.p is not None and seen.swing.p <= ALPHA:
        why = f"the gradient norm swings (p = {seen.swing.p:.2g}); the loss {_said(loss)}"
        return ConvergenceTrend.OSCILLATING, why
    if seen.backward is not None and seen.backward < BACKWARD:
        why = f"successive gradients point backwards; the loss {_said(loss)}"
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
        also = "updates grow" if shrinks else f"the gradient norm {_said(gradient)}"
        return ConvergenceTrend.UNKNOWN, f"the loss falls while {also}: learning, not converging"
    return ConvergenceTrend.UNKNOWN, f"no trend of the loss is seen; gradients: {gradient}"


def _without_loss(seen: Evidence) -> tuple[ConvergenceTrend, str]:
    if _inside_band(seen.gradient.clearest):
        return ConvergenceTrend.STABLE, "gradients hold their size; loss unknown"
    words = {"falls": "gradients shrink", "rises": "gradients grow", "unknown": "no gradients"}
    told = words.get(seen.gradient.way, "no trend of the gradients is seen")
    return ConvergenceTrend.UNKNOWN, f"{told}; loss unknown"


def _said(way: str) -> str:
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
