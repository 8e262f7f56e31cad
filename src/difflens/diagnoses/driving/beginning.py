"""How large the first steps of a run were, and what the loss was before them."""

from __future__ import annotations

import numpy as np

from ..signs.limits import Limits
from ..signs.losses import START, Losses
from ..signs.rates import echoes
from ..signs.sight import Sight

_FAR = 5  # times a large update: steps that show in the very next loss
_THROWN = 1.5  # times the first loss: what the steps behind it made of the next three


def begun(seen: Sight, limit: Limits) -> tuple[Losses, bool]:
    """Give the loss as it was before any step, and whether first steps threw it up.

    The start of a loss is the mean of its first values, and all but the first are behind a step.
    Where steps far too large threw these up, a loss that merely came back would count as learning.
    """
    loss, large = seen.loss, first_steps(seen) >= _FAR * limit["update"]
    if not large or loss.n <= START or loss.values[0] <= 0:
        return loss, False
    first = float(loss.values[0])
    if float(np.mean(loss.values[1 : START + 1])) < _THROWN * first:
        return loss, False
    return loss._replace(values=np.append([first] * START, loss.values[START:])), True


def first_steps(seen: Sight) -> float:
    """Give the largest update by weight of the first points, until a heavy momentum gathered."""
    typical, points = seen.layers.typical_update, max(3, echoes(seen))
    return 0.0 if typical is None else float(np.nan_to_num(typical[:points]).max(initial=0.0))


def way(seen: Sight) -> float:
    """Give what the first steps add up to: those of adaptive optimisers go one way at first."""
    typical = seen.layers.typical_update
    return 0.0 if typical is None else float(np.nan_to_num(typical[:START]).sum())
