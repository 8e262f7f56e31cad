"""Whether a logged metric rose or fell, as one word with the slope behind it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ...evidences import Log
from ...records import Interval, Policy
from ...stats.directions import direction
from ...stats.trend import Slope, Trend, autocorrelation, mann_kendall, theil_sen
from .series import PROGRESS, Points, between

LEAST = 5  # points below which not even a perfect trend reaches 5 %
LEVEL = 0.95
Direction = Literal["higher", "lower"]


class Movement(NamedTuple):
    """What a metric did over a window: a word, the slope a step, p, and how it was told."""

    word: str
    metric: str
    slope: float | None
    interval: Interval | str
    p: float | None
    basis: str


def better_way(metric: str, policy: Policy) -> Direction | None:
    """Say which way a metric is better: as the user says, else as its name tells."""
    rule = policy.metrics.get(metric)
    return (rule.direction if rule else None) or direction(metric)


def progress_column(
    log: Log | None, chosen: str | None, policy: Policy
) -> tuple[str, Points] | None:
    """Choose the column that tells progress: the one declared, else the first known by its name."""
    if log is None:
        return None
    names = [chosen] if chosen else [*PROGRESS, *policy.metrics]
    found = [(name, log.columns[name]) for name in names if log.columns.get(name)]
    full = [each for each in found if len(each[1]) >= LEAST]
    return next(iter(full or found), None)


def movement(
    column: tuple[str, Points],
    window: tuple[float | None, float | None],
    policy: Policy,
    *,
    margin: float,
    alpha: float = 0.05,
) -> Movement:
    """Judge a metric over the window, in the direction from left to right.

    It moved if Sen's interval of the slope, widened for autocorrelation, excludes zero and an
    AR(1)-surrogate Mann-Kendall test agrees; it is `stable` only if what the interval allows over
    the window lies within the margin, a part of the current value; else `inconclusive`.
    """
    metric, points = column
    kept = between(points, *window)
    steps, values = [step for step, _ in kept], [value for _, value in kept]
    line = theil_sen(steps, values) if len(kept) >= LEAST else None
    if line is None or line.low is None or line.high is None:
        few = f"{len(kept)} points of {metric} in the log, {LEAST} at different steps are needed"
        return Movement("inconclusive", metric, None, f"none_available: {few}", None, few)
    low, high, phi = _widened(line, steps, values)
    test = mann_kendall(values, steps)
    sign = -1 if _is_backwards(window) else 1
    low, high = sorted((sign * low, sign * high))
    now = abs(line.intercept + line.value * (steps[0] if sign < 0 else steps[-1]))
    rule, better = policy.metrics.get(metric), better_way(metric, policy)
    allowed = rule.margin if rule and rule.margin is not None else margin * now
    drift = max(abs(low), abs(high)) * (steps[-1] - steps[0])
    sure = Interval(low, high, LEVEL, "Theil-Sen, widened for autocorrelation", len(kept))
    word = _word((low, high), better, is_sure=test.p <= alpha, is_small=drift <= allowed)
    basis = _basis(metric, steps, test, phi, better)
    return Movement(word, metric, sign * line.value, sure, test.p, basis)


def _is_backwards(window: tuple[float | None, float | None]) -> bool:
    first, last = window
    return first is not None and last is not None and first > last


def _word(ends: tuple[float, float], better: str | None, *, is_sure: bool, is_small: bool) -> str:
    low, high = ends
    if is_sure and (low > 0 or high < 0):
        if better is None:
            return "rising" if low > 0 else "falling"
        return "improving" if (low > 0) == (better == "higher") else "degrading"
    return "stable" if is_small else "inconclusive"


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
