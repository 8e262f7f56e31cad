"""Data that is too little: how to tell it from noise in the targets, and how much more it takes."""

from __future__ import annotations

import numpy as np

from ...records.runs import Fix
from ..signs.degrees import FEW, HUNDREDFOLD, SHORT, SLIGHTLY, TWICE
from ..signs.losses import Losses
from .causes import Cause

_UNLEARNED = 0.45  # best held-back loss by guessing: stopping there leaves about half unlearned
WORTHLESS = 0.8  # the same: next to guessing, so that stopping there gives next to nothing
_BY_HEART = 0.45  # training loss by the best held-back loss, when that begins to suffer


def too_little(loss: Losses, held_back: Losses, usual: float, harmless: float) -> Cause | None:
    """Tell of data that is too little for what is to be learned, where stopping early is no help.

    Noise in the targets holds a held-back loss up as well, and no data takes it away. But it harms
    as soon as it is fitted, when the training loss is still half of the held-back loss. Examples
    that are merely few are learned by heart first: up to then some of it holds for others. Where
    nothing ever held for others, that order says nothing, and there is nothing to stop at.
    """
    low = float(held_back.values.min())
    if low < _UNLEARNED * usual:
        return None
    if low < WORTHLESS * usual and _when_it_suffers(loss, held_back) > _BY_HEART * low:
        return None
    return get_more(loss, held_back, usual, harmless)


def get_more(loss: Losses, held_back: Losses, usual: float, harmless: float) -> Cause:
    """Tell to get more data, and how much."""
    low = float(held_back.values.min())
    factor = _more(loss, held_back, usual, harmless)
    return Cause(
        f"the data is too little for what is to be learned: at its best the held-back loss was "
        f"still {low / usual:.0%} of what it costs to know nothing",
        [
            f"get more data, about {factor:.0f} times as much, or augment what there is",
            "use a smaller model, or one that was trained on other data before",
            "keep the weights of the best step until then: it is not enough, and the best there is",
        ],
        Fix("more_data", {"factor": factor}),
    )


def _when_it_suffers(loss: Losses, held_back: Losses) -> float:
    """Return the training loss when the held-back loss begins to rise, or the latest one."""
    best = int(np.argmin(held_back.values))
    values, steps = held_back.values[best:], held_back.steps[best:]
    level = SLIGHTLY * float(values[0])
    risen = np.flatnonzero(values > level)
    if not len(risen):
        return loss.now
    between = slice(int(risen[0]) - 1, int(risen[0]) + 1)
    place = int(np.searchsorted(loss.steps, np.interp(level, values[between], steps[between])))
    return float(np.mean(loss.values[max(place - SHORT, 0) : place + SHORT]))


def _more(loss: Losses, held_back: Losses, usual: float, harmless: float) -> float:
    """Return how many times the data it takes until what is learned holds for others.

    What held-back data costs beyond training data falls about as one by the number of examples, so
    that it takes as many times the data as it is above what does no harm. Where it falls slower
    that is too few, but of the right order.
    """
    excess = float(np.median(held_back.values[-FEW:]) - loss.mean_now)
    return float(round(min(max(excess / (harmless * usual), TWICE), HUNDREDFOLD)))
