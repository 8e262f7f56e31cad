"""One batch, or one step, far beyond all before it, in a run that was as usual until then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .leaps import broke_behind, update_before
from .losses import Losses, levels
from .sight import Sight

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TIMES = 50.0  # times all gradients before it, and as far as losses before it lay off their median
_BEFORE = 20  # points before it
_NEAR = 5  # points before it whose steps are asked
_AFTER = 4  # points behind it that must be back
_BACK = 5.0  # times nearer to those before: what made its loss has gone with it
_USUAL = 3.0  # largest update before it by the usual one: more, and a step did it
_SMALL = 0.03  # update by weight of the steps before it: such steps throw no loss by themselves
_HUGE = 5.0  # times all steps of the points before it; one of 220 healthy runs does that, unharmed
_COURSE = 30  # points before such a step
_STEADY = 2.0  # times the rates before it: a schedule did no more
_USUAL_LOSS = 1.2  # times the highest loss before it: the step came out of a clear sky
_ECHO, _LESS = 3, 0.9  # points behind it, and what momentum leaves of it by then
_LEARNED = 0.3  # of the start: a loss that fell by as much was on its way
_LOWEST = 1.3  # times the lowest level so far: nothing was lost yet
_CLEAR = 1.5  # times the start: losses before it are lower, or it is not the first harm


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
    if norms is None or loss.n <= _BEFORE:
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
    if typical is None or rates is None or loss.n <= _BEFORE:
        return None
    sizes = np.nan_to_num(typical, nan=0.0, posinf=0.0)
    highest = _highest_before(sizes)
    for at in np.flatnonzero((sizes / _HUGE > highest) & (highest > 0)):
        place = int(np.searchsorted(loss.steps, seen.steps[at]))
        if place >= loss.n or loss.steps[place] != seen.steps[at] or not np.isfinite(rates[at]):
            continue
        steady = rates[at] <= _STEADY * np.nanmax(rates[max(at - _COURSE, 0) : at], initial=0.0)
        before = loss.values[max(place - _COURSE, 0) : place]
        clear = len(before) >= _BEFORE and before.max() <= _CLEAR * loss.start
        follow = sizes[at + 1 : at + 1 + _ECHO]
        alone = len(follow) == _ECHO and follow.min() < _LESS * sizes[at]
        if alone and steady and clear and loss.values[place] <= _USUAL_LOSS * before.max():
            return Outlier(place, int(seen.steps[at]), float(sizes[at] / highest[at]))
    return None


def was_sound(loss: Losses, step: int) -> bool:
    """Had the run learned before that step, and lost nothing of it? Then what is wrong came later.

    Findings that look at a whole run date what they see to its beginning.
    """
    course = levels(loss.values[loss.steps <= step], _BEFORE)
    if not len(course) or loss.start <= 0:
        return False
    low, late = float(course.min()), float(course[-1])
    fell = loss.reference - late
    return fell > _LEARNED * loss.size and late - low <= (_LOWEST - 1) * max(low, fell)


def _highest_before(sizes: NDArray[Any]) -> NDArray[Any]:
    """Give the highest of the points before each point; infinite where they are too few."""
    if len(sizes) <= _BEFORE:
        return np.full(len(sizes), np.inf)
    padded = np.concatenate([np.zeros(_COURSE), sizes[:-1]])
    highest = np.lib.stride_tricks.sliding_window_view(padded, _COURSE).max(axis=1)
    return np.where(np.arange(len(sizes)) < _BEFORE, np.inf, highest)


def _leap_out(norms: NDArray[Any]) -> NDArray[Any]:
    """Say of each point whether its gradient is far beyond all before it."""
    known = np.where(np.isfinite(norms), norms, 0.0)
    highest = np.concatenate([[np.inf], np.maximum.accumulate(known)[:-1]])
    found = (known > _TIMES * highest) & (highest > 0)
    found[:_BEFORE] = False
    return np.asarray(found)


def _is_off(loss: Losses, place: int) -> bool:
    """Does a loss lie far farther from the median of those before than any of them, all sound?"""
    before = loss.values[max(place - _BEFORE, 0) : place]
    if len(before) < _BEFORE or before.max() > _CLEAR * loss.start:
        return False
    middle = float(np.median(before))
    return bool(abs(loss.values[place] - middle) > _TIMES * np.abs(before - middle).max())


def _is_calm(seen: Sight, at: int) -> bool:
    """Were the steps before it as usual, and small beside the weights?"""
    size, _, _ = update_before(seen, int(seen.steps[at]))
    typical = seen.layers.typical_update
    if size is None or typical is None or size > _USUAL:
        return False
    return bool(np.nan_to_num(typical[max(at - _NEAR, 0) : at], nan=np.inf).max() < _SMALL)


def _is_back(loss: Losses, place: int) -> bool:
    """Are the losses behind it far nearer to those before, however far it threw the weights?"""
    usual = float(np.median(loss.values[max(place - _BEFORE, 0) : place]))
    off = np.abs(loss.values[place : place + 1 + _AFTER] - usual)
    return len(off) > 1 and bool(np.median(off[1:]) < off[0] / _BACK)
