"""How large the held-back loss is beside the training loss of the same time, look by look."""

from __future__ import annotations

from math import inf, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...history.history import History
from .degrees import HALF, SHORT, SOME
from .losses import Losses, output_shape

_LEAST_LOOKS = 2  # looks, and how far from minus one the ratio may be


class Proportions(NamedTuple):
    """Held-back by training loss at each look: least, middle and most; and how far it fell."""

    looks: int
    least: float
    middle: float
    most: float
    fall: float  # of the held-back loss since its first value, at its best
    training: NDArray[Any]  # its level at each look


def proportions(loss: Losses, held_back: Losses) -> Proportions | None:
    """Measure them; None if a loss is not positive, or a look has no training loss before it."""
    windows = [loss.values[loss.steps <= step][-SHORT:] for step in held_back.steps]
    if not windows or not all(len(each) for each in windows):
        return None
    training = np.array([np.mean(each) for each in windows])
    if training.min() <= 0 or held_back.values.min() <= 0:
        return None
    ratios = held_back.values / training
    first = float(held_back.values[0])
    fall = 1 - float(held_back.values.min()) / first
    least, middle, most = (float(each) for each in np.percentile(ratios, (0, 50, 100)))
    return Proportions(len(ratios), least, middle, most, fall, training)


def is_a_sum(ratio: float, history: History) -> bool:
    """Is the training loss about as many times larger as there are examples, or outputs, to sum?

    A loss of zero or below it is no multiple of anything.
    """
    if not 0 < ratio < inf:
        return False
    sizes = [each for each in output_shape(history) if each]
    counts = {*sizes, *(a * b for a in sizes for b in sizes), int(np.prod(sizes, dtype=np.int64))}
    return any(abs(log(ratio * count)) < SOME for count in counts if count > 1)


def is_mirrored(loss: Losses, held_back: Losses | None) -> bool:
    """Is the held-back loss positive, about the training loss with its sign turned, and rising?"""
    if held_back is None or held_back.n < _LEAST_LOOKS:
        return False
    places = np.searchsorted(loss.steps, held_back.steps, "right")
    training = np.array([np.mean(loss.values[max(at - SHORT, 0) : at]) for at in places if at])
    values = held_back.values[-len(training) :] if len(training) else held_back.values[:0]
    if len(training) < _LEAST_LOOKS or training.max() >= 0 or values.min() <= 0:
        return False
    off = np.abs(values[-_LEAST_LOOKS:] / training[-_LEAST_LOOKS:] + 1)
    return bool(np.median(off) < HALF and values[-1] > values[0])
