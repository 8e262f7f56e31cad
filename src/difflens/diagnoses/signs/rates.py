"""What the learning rate did, and the remedy that follows: a lower one, or another schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runs import Fix
from .layers import initial_scales
from .losses import levels
from .sight import Sight

_BACK, _RISE = 10, 1.05  # points, and the rise over them of a rate that is on its way up
_CLIMBED = 2.0  # times its first value: less, and the climb is not what did the harm
_LEVEL = 10
_ENDED = 0.02  # of the highest rate: a schedule that is at its end
_WARM_UP = 10  # of the points so far: the part that a warm-up may take of a run
_LARGE = 2.0  # of the scale of kaiming: weights beyond it were made too large
_LIKE = 3.0  # times as much or as little: about the same
_HELD = 0.25  # of the rate at the lowest loss: at half of it 26 of 30 ramps were mended


def is_rising(rates: Any) -> bool:
    """Is the learning rate higher than ever before, and still on its way up?"""
    known = rates[np.isfinite(rates)]
    if len(known) <= 2 * _BACK or known[-1] < known.max():
        return False
    return bool(known[-1] > _RISE * known[-1 - _BACK])


def has_ended(seen: Sight) -> bool:
    """Is the learning rate next to nothing, by what it was for some points?"""
    rates = np.zeros(0) if seen.lr is None else seen.lr[np.isfinite(seen.lr)]
    if len(rates) < _BACK:
        return False
    return bool(rates[-1] < _ENDED * np.sort(rates)[-3])


def end_warm_up(seen: Sight) -> Fix | None:
    """Ask for a warm-up that ends soon, where the rate is still on its way up."""
    if not seen.is_warming_up:
        return None
    return Fix("warmup", {"steps": max(seen.points // _WARM_UP, 1)})


def lower(seen: Sight, factor: float) -> Fix:
    """Ask for a rate that is `factor` of what it was; where it goes on climbing, for a hold."""
    return hold(seen) or Fix("scale_lr", {"factor": float(f"{factor:.2g}")})


def hold(seen: Sight) -> Fix | None:
    """Ask for the rate to be held below that of the lowest loss; None where it does not climb.

    On a ramp the loss is lowest at the edge of what it can follow, so a part of that rate is asked
    for (Smith 2017, Cyclical learning rates, takes one from well before the lowest). A lower first
    value would only put the harm off.
    """
    rates = seen.lr
    known = np.zeros(0) if rates is None else rates[np.isfinite(rates)]
    if rates is None or not is_rising(rates) or known[-1] < _CLIMBED * known[0]:
        return None
    course = levels(seen.loss.values, _LEVEL)
    best = int(np.argmin(course)) + _LEVEL - 1 if len(course) else 0
    place = int(np.searchsorted(seen.steps, seen.loss.steps[best])) if seen.loss.n else 0
    return Fix("fix_schedule", {"hold": _HELD * float(rates[place])})


def is_summed(seen: Sight) -> bool:
    """Is the first loss larger than a mean can be, with weights of a usual size?

    Without classes, a squared error of about one and the square of the output is what scaled
    targets cost an example.
    """
    loss, batch, scales = seen.loss, seen.batch, initial_scales(seen.layers)
    if not batch or batch < 4 or not len(scales) or np.nanmax(scales) > _LARGE or not loss.n:
        return False
    first = float(loss.values[0])
    if loss.chance is not None and loss.spread is not None:
        return not loss.is_of_outputs
    outputs = _mean_square(seen)
    return (
        loss.chance is None
        and outputs is not None
        and batch >= 16
        and 1 / _LIKE < first / batch / (1 + outputs) < _LIKE
    )


def _mean_square(seen: Sight) -> float | None:
    """Give about the mean square of the first outputs: a batch spans some five deviations."""
    output: Any = seen.history.fact("output")
    if not isinstance(output, dict):
        return None
    low, high = output.get("min"), output.get("max")
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return None
    return float(low / 2 + high / 2) ** 2 + ((high - low) / 5) ** 2
