"""Slopes of the network's series, measured and tested, and the two words they may earn."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ..network_results import MeasuredTrend
from ..records import Interval
from ..stats.trend import correlated_slope, mann_kendall
from .reasons import blank
from .totals import Series

LEAST = 20  # points below which no slope is judged
ALPHA = 0.01  # of a false "rises" or "falls": several are asked of every run
LEVEL = 1 - ALPHA
PER = 100  # steps to which slopes are told

Way = Literal["falls", "rises", "unclear", "unknown"]


def measured(series: Series, what: str) -> MeasuredTrend:
    """Measure the slope per 100 steps, interval and test allowing for autocorrelation."""
    n = len(series.steps)
    slope = correlated_slope(series.steps, series.values, LEVEL) if n >= LEAST else None
    if slope is None:
        why = f"{n} points of {what}, {LEAST} are needed"
        return blank(MeasuredTrend, f"more points of {what}", why, n=n)
    trend = mann_kendall(series.values, series.steps)
    ends = Interval(
        PER * slope.low, PER * slope.high, LEVEL, "Theil-Sen, widened for autocorrelation", n
    )
    return MeasuredTrend(
        slope=PER * slope.value, interval=ends, p_value=trend.p, autocorrelation=trend.phi,
        first_step=int(series.steps[0]), last_step=int(series.steps[-1]), n=n, note=trend.note,
    )  # fmt: skip


def way(trend: MeasuredTrend | None) -> Way:
    """Say which way a slope goes: by its interval and by the test, both."""
    if trend is None or trend.slope is None or trend.interval is None or trend.p_value is None:
        return "unknown"
    low, high = trend.interval.low, trend.interval.high
    if trend.p_value <= ALPHA and low is not None and high is not None:
        if high < 0:
            return "falls"
        if low > 0:
            return "rises"
    return "unclear"


class TwoWays(NamedTuple):
    """The same series now and over its later half: one window may be too short to tell."""

    recent: MeasuredTrend
    later: MeasuredTrend

    @property
    def way(self) -> Way:
        """Say which way it goes where one of both tells and the other does not deny."""
        ways = {way(self.recent), way(self.later)}
        if "rises" in ways and "falls" in ways:
            return way(self.recent)
        for word in ("rises", "falls", "unclear"):
            if word in ways:
                return word
        return "unknown"

    @property
    def clearest(self) -> MeasuredTrend:
        """The one that tells; the recent where both or neither do."""
        return self.recent if way(self.recent) in {"rises", "falls"} else self.later


def two_ways(series: Series, window: int, what: str) -> TwoWays:
    """Measure a series over its latest window and over its later half, whichever is longer."""
    recent = measured(series.last(window), what)
    later = series.later_half()
    return TwoWays(recent, measured(later, what) if len(later.steps) > window else recent)
