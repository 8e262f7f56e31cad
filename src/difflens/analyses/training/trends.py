"""Whether a logged metric rose or fell, as one word with the slope behind it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...evidences import Log
from ...records import Interval, Policy
from ...stats.directions import direction
from ...stats.trend import Slope, Trend, autocorrelation, mann_kendall, theil_sen
from .series import PROGRESS, Points, between

LEAST = 5  # points below which not even a perfect trend reaches 5 %
LEVEL = 0.95


class Movement(NamedTuple):
    """What a metric did over a window: a word, the slope a step, p, and how it was told."""

    word: str
    metric: str
    slope: float | None
    interval: Interval | str
    p: float | None
    n: int
    basis: str

    def told(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {"trend": self.word, "metric": self.metric, "slope": self.slope, "p": self.p}


def progress_column(
    log: Log | None, chosen: str | None, policy: Policy
) -> tuple[str, Points] | None:
    """Choose the column that tells progress: the one declared, else the first known by its name."""
    if log is None:
        return None
    names = [chosen] if chosen else [*PROGRESS, *policy.metrics]
    found = [(name, log.columns[name]) for name in names if log.columns.get(name)]
    full = [each for each in found if len(each[1]) >= LEAST]
    return (full or found or [None])[0]


def movement(
    metric: str,
    points: Points,
    window: tuple[float | None, float | None],
    policy: Policy,
    margin: float,
    alpha: float = 0.05,
) -> Movement:
    """Judge a metric over the window, in the direction from left to right.

    It moved if Sen's interval of the slope, widened for autocorrelation, excludes zero and an
    AR(1)-surrogate Mann-Kendall test agrees; it is `stable` only if what the interval allows over
    the window lies within the margin, a part of the current value; else `inconclusive`.
    """
    rule = policy.metrics.get(metric)
    better = (rule.direction if rule else None) or direction(metric)
    kept = between(points, *window)
    backwards = None not in window and window[0] > window[1]  # type: ignore[operator]
    steps, values = [step for step, _ in kept], [value for _, value in kept]
    line = theil_sen(steps, values) if len(kept) >= 2 else None
    span = steps[-1] - steps[0] if line else 0.0
    if line is None or line.low is None or line.high is None:
        few = f"{len(kept)} points of {metric} in the log, {LEAST} are needed"
        return Movement("inconclusive", metric, line.value if line else None,
                        f"none_available: {few}", None, len(kept), few)  # fmt: skip
    low, high, phi = _widened(line, steps, values)
    test = mann_kendall(values, steps)
    sign = -1 if backwards else 1
    low, high = sorted((sign * low, sign * high))
    now = abs(line.intercept + line.value * (steps[0] if backwards else steps[-1]))
    allowed = rule.margin if rule and rule.margin is not None else margin * now
    word = _word((low, high), better, is_sure=test.p <= alpha, drift=span, allowed=allowed)
    return Movement(
        word, metric, sign * line.value,
        Interval(low, high, LEVEL, "Theil-Sen, widened for autocorrelation", len(kept)),
        test.p, len(kept), _basis(metric, steps, test, phi, better),
    )  # fmt: skip


def _word(
    ends: tuple[float, float], better: str | None, *, is_sure: bool, drift: float, allowed: float
) -> str:
    low, high = ends
    if is_sure and (low > 0 or high < 0):
        if better is None:
            return "rising" if low > 0 else "falling"
        return "improving" if (low > 0) == (better == "higher") else "degrading"
    return "stable" if max(abs(low), abs(high)) * drift <= allowed else "inconclusive"


def _widened(line: Slope, steps: list[float], values: list[float]) -> tuple[float, float, float]:
    """Widen Sen's interval: n points of autocorrelation φ tell as much as n (1 - φ)/(1 + φ)."""
    phi = autocorrelation(steps, values)
    factor = max(1.0, (1 + phi) / (1 - phi)) ** 0.5
    low, high = line.low or 0.0, line.high or 0.0
    return line.value - factor * (line.value - low), line.value + factor * (high - line.value), phi


def _basis(metric: str, steps: list[float], test: Trend, phi: float, better: str | None) -> str:
    way = f"{better} is better" if better else "which way is better is not known"
    note = f"; {test.note}" if test.note else ""
    return (
        f"log: {metric} ({way}), {len(steps)} points, steps {steps[0]:g} to {steps[-1]:g},"
        f" Theil-Sen and Mann-Kendall p={test.p:.3g}, autocorrelation {phi:.2f}{note}"
    )
