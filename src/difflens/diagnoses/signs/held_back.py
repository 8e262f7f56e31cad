"""What the loss on held-back data says of whether anything is learned at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...runs import VALIDATION_LOSSES
from .limits import Limits
from .losses import Losses

if TYPE_CHECKING:
    from ...history.history import History


def held_back_loss(history: History) -> Losses | None:
    """Give the loss on held-back data under the first name that is known."""
    found = history.course.first_scalar(VALIDATION_LOSSES)
    return None if found is None else Losses.of(history, found[0])


def is_blind(held_back: Losses | None, loss: Losses, limit: Limits) -> bool:
    """Was held-back data never told better than by guessing, and does it not get better?

    A slow start looks the same for a while: there held-back and training loss fall together. So
    the best held-back value must lie back, or the training loss must have left it behind.
    """
    if held_back is None or held_back.n < limit["blind_values"] or loss.chance is None:
        return False
    if not 0.9 * loss.chance <= loss.start <= 10 * loss.chance:
        return False
    values = held_back.values
    if values.min() <= limit["blind"] * loss.chance:
        return False
    rests = int(np.argmin(values)) <= len(values) - 3
    # Of the same time: between two held-back values a run that learns gets far.
    then = loss.values[loss.steps <= held_back.steps[-1]][-10:]
    return rests or float(np.median(then)) < limit["blind_gap"] * float(values[-1])


def is_flat(held_back: Losses | None, limit: Limits) -> bool:
    """Has the held-back loss, which has no noise of batches, not moved since it is measured?"""
    if held_back is None or held_back.n <= limit["blind_values"]:
        return False
    first = float(held_back.values[0])
    return first > 0 and first - float(held_back.values.min()) < limit["flat"] * first
