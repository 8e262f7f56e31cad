"""What the gradient norm will do next, and whether such forecasts have held so far.

The outlook is of the ln norm over all layers. Its level is 80 %, so that the interval of a norm
that goes on as before lies inside the band of 5 to 95 % of its past; at 90 % it would fill it.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np

from ..network_results import OutlookForecast, StabilityForecast, StabilityOutlook
from ..records import Interval
from ..stats.forecast import FEWEST, Forecast, forecast
from .reasons import because, blank

if TYPE_CHECKING:
    from .totals import Series

LEVEL = 0.8
LATEST = 2000  # points forecast from
WIDER = 2.0  # by which the far interval may be wider than the near one and still be of one band
EXPLODED = log(10.0)  # above the median of the window before


def outlook(gradient: Series, window: int, *, thinned: bool) -> StabilityForecast:
    """Forecast a hundredth and a tenth of the series ahead, and say what that means."""
    values = gradient.last(LATEST).values
    n = len(values)
    if n < FEWEST:
        why = f"{n} points at which every layer has a norm, {FEWEST} are needed"
        return blank(StabilityForecast, "a longer run", why)
    before = values[:-window] if n >= 2 * window else values
    bound = float(np.median(before[-window:])) + EXPLODED
    low, high = (float(each) for each in np.quantile(values, (0.05, 0.95)))
    near, far = (forecast(values, max(1, n // part), LEVEL) for part in (100, 10))
    now = float(values[-1])
    words = [_word(each, now, (low, high), bound) for each in (near, far)]
    if words[1] == StabilityOutlook.STABLE and near and far and _spreads(near, far):
        words[1] = StabilityOutlook.UNCERTAIN
    return StabilityForecast(
        short_term_outlook=words[0],
        long_term_outlook=words[1],
        confidence_level=LEVEL,
        recommended_monitoring=_monitoring(words, near, far, gradient.gap, thinned=thinned),
        empirical_coverage=near.empirical_coverage if near else None,
        short_term=_told(near),
        long_term=_told(far),
        band=(low, high),
        explosion_bound=bound,
    )


def _word(
    made: Forecast | None, now: float, band: tuple[float, float], bound: float
) -> StabilityOutlook | None:
    if made is None:
        return None
    if not made.is_calibrated:
        return StabilityOutlook.UNCERTAIN
    if made.low > bound:
        return StabilityOutlook.DETERIORATING
    if now > bound > made.high:
        return StabilityOutlook.IMPROVING
    if band[0] <= made.low and made.high <= band[1]:
        return StabilityOutlook.STABLE
    return StabilityOutlook.UNCERTAIN


def _spreads(near: Forecast, far: Forecast) -> bool:
    """Does the interval widen with the horizon, as where nothing pulls a norm back to its past?"""
    return far.high - far.low > WIDER * (near.high - near.low)


def _told(made: Forecast | None) -> OutlookForecast | None:
    if made is None:
        return None
    ends = Interval(made.low, made.high, made.level, "adaptive conformal", made.n)
    return OutlookForecast(
        horizon=made.horizon, method=made.method, value=made.value, interval=ends,
        empirical_coverage=made.empirical_coverage, origins=made.origins,
    )  # fmt: skip


def _monitoring(
    words: list[StabilityOutlook | None],
    near: Forecast | None,
    far: Forecast | None,
    gap: float,
    *,
    thinned: bool,
) -> tuple[str, ...]:
    """Say what to look at and when: only what the forecast gives a reason for."""
    told = []
    for word, made in zip(words, (near, far), strict=True):
        if made is None or word in {None, StabilityOutlook.STABLE}:
            continue
        ahead = f"within {made.horizon * gap:.0f} steps"
        interval = f"{made.low:.3g} to {made.high:.3g}"
        told.append(f"the gradient norm {ahead}: its logarithm is forecast at {interval}")
    if thinned and told:
        told.append("the latest frames one by one: these points stand for several frames each")
    return tuple(told)


def no_outlook(needs: str, why: str) -> StabilityForecast:
    """Say that nothing was forecast."""
    made = StabilityForecast()
    fields = [each.field for each in made.missing]
    return StabilityForecast(missing=because(needs, why, *fields))
