"""How far steps go along the weights themselves: what a penalty does, and data hardly do.

From w' = w + u follows |w'|^2 = |w|^2 + 2 w.u + |u|^2: three recorded norms give the cosine of a
step and the weights it changes. Gradients of data stand about at right angles to the weights (where
a norm follows, exactly); what is a function of the weights alone points along them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .degrees import CLEARLY, ENDURING, FEW, HALF, LONG, NEARLY, SEVERAL, SHORT, SLIGHTLY, TWICE
from .layers import initial_scales, median
from .losses import levels
from .rates import momentum
from .sight import Sight

_SEEN = 1e-5  # of the weights: the cosine of a smaller step drowns in the rounding of 32-bit norms
_PART = 0.4  # the same of all matrices that grow as one: large steps to anywhere grow them at zero
_AS_ONE = 0.35  # of their pace: what the fastest and the slowest differ by; healthy ones by 0.6
_ALL = 0.6  # cosine of each matrix: a penalty is on all of them
_MOST = 0.6  # share of the matrices
_SIGNS = 0.8  # cosine of weights and their signs: optimisers that divide gradients leave but these
_SLOWER = 0.8  # of the pace before: what ends by itself slows down (ln t, where classes part)
_FALLS = 0.95  # of its lowest level before: a loss that still falls
_INWARD = -0.6  # cosine of first steps and weights: healthy ones stay above -0.4


class Swelling(NamedTuple):
    """Weights that grow along themselves: since when, by what share a step, how straight."""

    since: int
    per_step: float
    cosine: float
    times: float  # by then, of their first size


def along(seen: Sight) -> NDArray[Any] | None:
    """Return the cosine of step and weights of each trained matrix at each point.

    Where only some steps were recorded, those between are taken to be like the one that was.
    """
    weights, updates = seen.layers.field("weight_l2"), seen.layers.field("update_l2")
    if weights is None or updates is None or len(weights) < 2 or not seen.layers.trained.any():
        return None
    chosen = seen.layers.trained
    after, before = (each[:, chosen].astype(np.float64) for each in (weights[1:], weights[:-1]))
    steps = np.diff(seen.steps).astype(np.float64)[:, None] * updates[1:, chosen]
    with np.errstate(all="ignore"):
        cosine = (after**2 - before**2 - steps**2) / (2 * before * steps)
        cosine = np.where(steps > _SEEN * before, cosine, np.nan)
    return np.concatenate([np.full((1, cosine.shape[1]), np.nan), cosine])


def swelling(seen: Sight) -> Swelling | None:
    """Find weights that grow along themselves, ever on, while the loss has ceased to fall.

    A penalty with the wrong sign does that, to every matrix. Weights that start tiny grow along
    themselves as well, and so do those of classes that come apart: the loss falls then, or the
    growth slows down. Where gradients of data are as strong as the penalty, steps are not straight,
    and that all matrices grow at one pace tells.
    """
    cosine, weights = along(seen), seen.layers.field("weight_l2")
    if cosine is None or weights is None or len(cosine) <= 2 * SHORT:
        return None
    sizes = weights[:, seen.layers.trained].astype(np.float64)
    with np.errstate(all="ignore"):
        logs = np.log(sizes / sizes[0])
        grown = median(logs, axis=1)
        middle = median(cosine, axis=1)
        # Healthy runs stay below 0.65 over so many points.
        straight = _lowest(middle) > NEARLY * _straightest(seen)
        straight &= _lowest(cosine.min(axis=1)) > _ALL * _straightest(seen)
        straight |= _are_at_one_pace(logs) & (_means(middle) > _PART)
        found = np.flatnonzero(straight & (grown[SHORT - 1 :] > np.log(CLEARLY)))
    for first in found[found > SHORT]:
        last = int(first) + SHORT - 1
        pace = _lasting_pace(grown, seen.steps, last)
        if _is_small(seen, grown[last]):
            continue
        still = _still_falls(seen, int(seen.steps[last])) or not _is_fed(seen, int(first), last)
        if pace is not None and not still:
            usual = float(np.median(middle[first : last + 1]))
            return Swelling(int(seen.steps[first]), pace, usual, float(np.exp(grown[last])))
    return None


def _are_at_one_pace(logs: NDArray[Any]) -> NDArray[Any]:
    """Say for each stretch of points if it ends a longer one in which all sizes grow as one.

    What a penalty on squares makes of ln |w| is the same in every matrix and at every step, the
    first ones too: growth that was faster before has another cause.
    """
    paces = logs[SHORT:] - logs[:-SHORT]
    alike = np.full(len(logs) - SHORT + 1, False)
    if logs.shape[1] < FEW or len(paces) <= LONG:
        return alike
    windows = np.lib.stride_tricks.sliding_window_view(paces, LONG - SHORT + 1, axis=0)
    low, high = windows.min(axis=(1, 2)), windows.max(axis=(1, 2))
    pace = (high + low) / 2
    before = pace / SHORT * np.arange(LONG, len(logs))
    alike[-len(low) :] = (low > 0) & (high - low < _AS_ONE * pace)
    alike[-len(low) :] &= median(logs, axis=1)[LONG:] < CLEARLY * before  # growth until then
    return alike


def multiplied(seen: Sight) -> Swelling | None:
    """Find weights that all grow at one pace, by more than their steps: no optimiser does that.

    |w'| - |w| is at most the size of the step. What is beyond it was written by something else.
    """
    weights, updates = seen.layers.field("weight_l2"), seen.layers.field("update_l2")
    chosen = seen.layers.trained
    if weights is None or updates is None or len(weights) <= SHORT or chosen.sum() < 2:
        return None
    if seen.history.fact("estimated_weights"):
        return None
    sizes = weights[:, chosen].astype(np.float64)
    with np.errstate(all="ignore"):
        taken = np.cumsum(updates[:, chosen].astype(np.float64), axis=0)
        grown = sizes[SHORT:] - sizes[:-SHORT]
        # With the steps at both ends: some frameworks' weights are those before a step.
        made = taken[SHORT:] - taken[:-SHORT] + updates[:-SHORT, chosen]
        beyond = grown > SLIGHTLY * made
        paces = np.log(sizes[SHORT:] / sizes[:-SHORT]) / SHORT
    whole = seen.steps[SHORT:] - seen.steps[:-SHORT] == SHORT
    fast = median(paces, axis=1) * ENDURING > np.log(2)
    found = np.flatnonzero((beyond.mean(axis=1) > _MOST) & whole & fast)
    if not len(found):
        return None
    first = int(found[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        times = float(median(sizes[first + SHORT] / sizes[0], axis=0))
    return Swelling(int(seen.steps[first]), float(median(paces[first], axis=0)), 1.0, times)


def is_drawn_in(seen: Sight) -> bool:
    """Do the very first steps take weights straight towards nothing, as a penalty does?"""
    cosine = along(seen)
    first = np.zeros(0) if cosine is None else median(cosine[1 : SEVERAL + 1], axis=1)
    updates = seen.layers.typical_update
    if updates is None or len(first) < SEVERAL or not np.isfinite(first).all():
        return False
    # Steps as large as the weights leave nothing that a direction could be known from.
    return bool(first.max() < _INWARD and np.nan_to_num(updates[:SEVERAL]).max() < HALF)


def _lowest(values: NDArray[Any]) -> NDArray[Any]:
    """Return the lowest value of each stretch of points."""
    return np.asarray(np.lib.stride_tricks.sliding_window_view(values, SHORT).min(axis=1))


def _means(values: NDArray[Any]) -> NDArray[Any]:
    """Return the mean of each stretch of points."""
    return np.asarray(np.lib.stride_tricks.sliding_window_view(values, SHORT).mean(axis=1))


def _straightest(seen: Sight) -> float:
    """Return the cosine of a step made by the penalty alone: 1 for SGD, that of signs for Adam."""
    name = str(seen.history.info.optimizer.get("name", "")).lower()
    return 1.0 if "sgd" in name else _SIGNS


def _is_fed(seen: Sight, first: int, last: int) -> bool:
    """Do gradients of a penalty's size make these steps, not the momentum of others long past?

    What a penalty c |w|^2 pulls by the weights is 2 c, and none is as strong as a loss. That steps
    are in proportion to gradients holds for SGD alone.
    """
    typical, gradient, rates = seen.layers.typical_update, seen.layers.typical_gradient, seen.lr
    held = momentum(seen)
    if typical is None or gradient is None or np.median(gradient[first : last + 1]) > TWICE:
        return False
    if _straightest(seen) < 1 or rates is None:
        return held < 1
    made = np.median((gradient * rates)[first : last + 1]) / max(1 - held, 1e-9)
    return bool(held < 1 and made > HALF * np.median(typical[first : last + 1]))


def _lasting_pace(grown: NDArray[Any], steps: NDArray[Any], last: int) -> float | None:
    """Return the growth of ln |w| a step; None if it is slow, or slows down."""
    half = SHORT // 2
    spans = [(last - half, last), (last - 2 * half, last - half)]
    late, early = (
        (float(grown[b]) - float(grown[a])) / max(int(steps[b] - steps[a]), 1) for a, b in spans
    )
    if not np.isfinite([late, early]).all() or late < _SLOWER * early:
        return None
    return float(late) if late * ENDURING > np.log(2) else None


def _still_falls(seen: Sight, step: int) -> bool:
    """Was the loss of the latest points lower than all levels before?"""
    values = seen.loss.values[seen.loss.steps <= step]
    course = levels(values, SHORT)
    if len(course) <= SHORT:
        return True
    return bool(course[-1] < _FALLS * course[:-SHORT].min())  # a loss that still falls


def _is_small(seen: Sight, grown: float) -> bool:
    """Are weights that grew still small beside what a network starts from? Then they had to."""
    scales = initial_scales(seen.layers)
    if not len(scales):
        return False
    # Frameworks start at 0.4, and by then it grew by a half.
    return bool(median(scales[seen.layers.trained], axis=0) * np.exp(grown) < HALF)
