"""One batch, or one step, far beyond all before it, in a run that was as usual until then."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .degrees import (
    CLEARLY,
    FAR,
    FEW,
    FIVEFOLD,
    LITTLE,
    LONG,
    NEARLY,
    PART,
    RECENT,
    SEVERAL,
    SLIGHTLY,
    THRICE,
    TWICE,
)
from .leaps import broke_behind, update_before
from .losses import Losses, levels
from .sight import Sight


class Outlier(NamedTuple):
    """The place of its loss among all, its step, and its gradient by the highest before."""

    at: int
    step: int
    times: float


def outlier(seen: Sight) -> Outlier | None:
    """Find the first batch whose gradient and loss are far beyond all before it, the loss once.

    What explodes grows from step to step, and what is fed otherwise from a step on stays out, or
    breaks the loss at once. The loss may lie far below the others as well: not every loss has a
    floor.
    """
    norms, loss = seen.history.course.global_norm(), seen.loss
    if norms is None or loss.n <= RECENT:
        return None
    for at in np.flatnonzero(_leap_out(norms)):
        step = int(seen.steps[at])
        place = int(np.searchsorted(loss.steps, step))
        if place >= loss.n or loss.steps[place] != step or not _is_off(loss, place):
            continue
        if _is_calm(seen, int(at)) and (_is_back(loss, place) or broke_behind(loss, step)):
            return Outlier(place, step, float(norms[at] / np.nanmax(norms[:at])))
    return None


def blow(seen: Sight) -> Outlier | None:
    """Find the first step far larger than those before it, at their rate, with a loss as theirs.

    What blows up lifts the loss first and the step then, and a bad batch shows in its own loss. A
    gradient that is multiplied on its way to the optimiser shows in the step alone, and in what
    momentum keeps of it: that dies away. Steps that stay large have another reason.
    """
    typical, rates, loss = seen.layers.typical_update, seen.lr, seen.loss
    if typical is None or rates is None or loss.n <= RECENT:
        return None
    sizes = np.nan_to_num(typical, nan=0.0, posinf=0.0)
    highest = _highest_before(sizes)
    for at in np.flatnonzero((sizes / FIVEFOLD > highest) & (highest > 0)):
        place = int(np.searchsorted(loss.steps, seen.steps[at]))
        if place >= loss.n or loss.steps[place] != seen.steps[at] or not np.isfinite(rates[at]):
            continue
        steady = rates[at] <= TWICE * np.nanmax(rates[max(at - LONG, 0) : at], initial=0.0)
        before = loss.values[max(place - LONG, 0) : place]
        clear = len(before) >= RECENT and before.max() <= CLEARLY * loss.start
        follow = sizes[at + 1 : at + 1 + FEW]
        alone = len(follow) == FEW and follow.min() < NEARLY * sizes[at]
        if alone and steady and clear and loss.values[place] <= SLIGHTLY * before.max():
            return Outlier(place, int(seen.steps[at]), float(sizes[at] / highest[at]))
    return None


def was_sound(loss: Losses, step: int) -> bool:
    """Had the run learned before that step, and lost nothing of it? Then what is wrong came later.

    Findings that look at a whole run date what they see to its beginning.
    """
    course = levels(loss.values[loss.steps <= step], RECENT)
    if not len(course) or loss.start <= 0:
        return False
    low, late = float(course.min()), float(course[-1])
    fell = loss.reference - late
    return fell > PART * loss.size and late - low <= (CLEARLY - 1) * max(low, fell)


def _highest_before(sizes: NDArray[Any]) -> NDArray[Any]:
    """Return the highest of the points before each point; infinite where they are too few."""
    if len(sizes) <= RECENT:
        return np.full(len(sizes), np.inf)
    padded = np.concatenate([np.zeros(LONG), sizes[:-1]])
    highest = np.lib.stride_tricks.sliding_window_view(padded, LONG).max(axis=1)
    return np.where(np.arange(len(sizes)) < RECENT, np.inf, highest)


def _leap_out(norms: NDArray[Any]) -> NDArray[Any]:
    """Say of each point whether its gradient is far beyond all before it."""
    known = np.where(np.isfinite(norms), norms, 0.0)
    highest = np.concatenate([[np.inf], np.maximum.accumulate(known)[:-1]])
    found = (known > FAR * highest) & (highest > 0)
    found[:RECENT] = False
    return np.asarray(found)


def _is_off(loss: Losses, place: int) -> bool:
    """Does a loss lie far farther from the median of those before than any of them, all sound?"""
    before = loss.values[max(place - RECENT, 0) : place]
    if len(before) < RECENT or before.max() > CLEARLY * loss.start:
        return False
    middle = float(np.median(before))
    return bool(abs(loss.values[place] - middle) > FAR * np.abs(before - middle).max())


def _is_calm(seen: Sight, at: int) -> bool:
    """Were the steps before it as usual, and small beside the weights?"""
    size, _, _ = update_before(seen, int(seen.steps[at]))
    typical = seen.layers.typical_update
    if size is None or typical is None or size > THRICE:  # more, and a step did it
        return False
    return bool(np.nan_to_num(typical[max(at - SEVERAL, 0) : at], nan=np.inf).max() < LITTLE)


def _is_back(loss: Losses, place: int) -> bool:
    """Are the losses behind it far nearer to those before, however far it threw the weights?"""
    usual = float(np.median(loss.values[max(place - RECENT, 0) : place]))
    off = np.abs(loss.values[place : place + 1 + SEVERAL] - usual)
    return len(off) > 1 and bool(np.median(off[1:]) < off[0] / FIVEFOLD)
