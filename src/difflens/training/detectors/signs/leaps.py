"""Where a loss leaves its course at one step, and whether a step before it was to blame."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflens.core.policy import Threshold
from difflens.stats.samples import robust_deviation

from .degrees import FIVEFOLD, SEVERAL, TWICE
from .limits import Limits
from .losses import Losses
from .sight import Sight

LEAP = {
    "before": Threshold(20, "points before it, from which the usual course is known"),
    "deviations": Threshold(8.0, "height over the course before, in robust deviations"),
    "rise": Threshold(1.2, "height over the highest of the points before"),
    "lasting": Threshold(3, "points for which the loss must stay above all before"),
}
SOON = 20  # steps within which what a huge one did shows, or breaks the loss


class Leap(NamedTuple):
    """The point and the step of a leap, its height over the highest before, and in deviations."""

    at: int
    step: int
    height: float
    deviations: float


def leap(loss: Losses, limit: Limits) -> Leap | None:
    """Find the first point that leaves its course: above all before it, far and for long."""
    values, before, lasting = loss.values, int(limit["before"]), int(limit["lasting"])
    if len(values) < before + lasting:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(values, before)[:-lasting]
    after = np.lib.stride_tricks.sliding_window_view(values, lasting)[before:].min(axis=1)
    count = min(len(windows), len(after))
    windows, after = windows[:count], after[:count]
    top, middle = windows.max(axis=1), np.median(windows, axis=1)
    spread = robust_deviation(windows, middle[:, None], axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        far = (after - middle) / np.maximum(spread, 1e-9 * np.abs(middle))
        height = np.where(top > 0, after / top, 0.0)
    found = np.flatnonzero((far > limit["deviations"]) & (height > limit["rise"]))
    if not len(found):
        return None
    at = int(found[0])
    place = at + before
    peak = float(values[place : place + 5].max())
    return Leap(place, int(loss.steps[place]), peak / float(top[at]), float(far[at]))


def stays_out(loss: Losses, at: int, points: int, level: float, before: int = 20) -> bool:
    """Is the loss still above all that was before the leap, and a share of its start, after it?"""
    after = loss.values[at : at + points]
    highest = float(loss.values[max(at - before, 0) : at].max())
    return len(after) >= points and float(np.median(after[-4:])) > max(highest, level * loss.start)


def update_before(seen: Sight, step: int) -> tuple[float | None, int | None, list[str]]:
    """Return the largest update of the points before a leap, by the usual one, and its layers.

    The update of the leap itself comes after its loss: it is what the leap does, not what did it.
    """
    ratios, typical = seen.layers.update, seen.layers.typical_update
    if ratios is None or typical is None:
        return None, None, []
    place = int(np.searchsorted(seen.steps, step))
    low = max(place - SEVERAL, 0)
    near, usual = typical[low:place], typical[max(low - 20, 0) : low]
    if not np.isfinite(near).any() or not np.isfinite(usual).any():
        return None, None, []
    at = low + int(np.nanargmax(near))
    base = float(np.nanmedian(usual))
    columns = np.argsort(-np.nan_to_num(ratios[at]), kind="stable")[:10]
    size = float(typical[at]) / base if base > 0 else None
    return size, int(seen.steps[at]), seen.layers.named(columns)


def is_alone(seen: Sight, where: int | None, leapt: int | None = None) -> bool:
    """Was the step larger than all before it, and than those that follow?

    A warm restart takes the steps up to where they were before, and there they stay. A rate that
    is too high, or climbs, goes on as well. Where the loss leapt right behind it, at a rate that
    stays the same, steps that follow answer to the leap, and say nothing.
    """
    typical = seen.layers.typical_update
    if typical is None or where is None:
        return False
    if is_kick(seen, where):
        return True  # momentum lets what follows be large as well
    place = int(np.searchsorted(seen.steps, where))
    size, before, after = typical[place], typical[:place], typical[place + 1 : place + 4]
    highest = float(before[np.isfinite(before)].max(initial=0.0))
    follows = after[np.isfinite(after)]
    if size <= TWICE * highest or not len(follows):
        return False
    at_once = place + 1 < seen.points and leapt == int(seen.steps[place + 1])
    return bool((at_once and _is_steady(seen, place)) or size > TWICE * np.median(follows))


def _is_steady(seen: Sight, place: int) -> bool:
    """Is the learning rate known there, and about the one before?"""
    rates = seen.lr
    return rates is not None and place > 0 and bool(rates[place] < TWICE * rates[place - 1])


def broke_behind(loss: Losses, step: int) -> bool:
    """Did the loss cease to be a number soon behind that step?"""
    return loss.broken is not None and step < loss.broken <= step + SOON


def is_kick(seen: Sight, where: int) -> bool:
    """Was the learning rate of that step far above the rates before it and after it?"""
    rates = seen.lr
    if rates is None:
        return False
    place = int(np.searchsorted(seen.steps, where))
    return any(place - SEVERAL <= at <= place for at in kicks(rates))


def kicks(rates: NDArray[Any]) -> list[int]:
    """Return the points at which the rate is far above those before and after it.

    The first has none before it: the two after it must be alike.
    """
    if len(rates) < 3:
        return []
    with np.errstate(invalid="ignore"):
        beside = np.maximum(rates[:-2], rates[2:])
        found = (rates[1:-1] > FIVEFOLD * beside) & (rates[1:-1] > 0)  # schedules do not do that
        at_once = rates[0] > FIVEFOLD * max(rates[1:3]) and max(rates[1:3]) < FIVEFOLD * min(
            rates[1:3]
        )
    return [0] * bool(at_once) + [int(at) + 1 for at in np.flatnonzero(found)]
