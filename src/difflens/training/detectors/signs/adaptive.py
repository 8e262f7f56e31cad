"""What steps of optimisers say that divide gradients by their size: they are the rate's alone."""

from __future__ import annotations

import numpy as np

from .sight import Sight

_NAMES = ("adam", "rmsprop", "adagrad", "lion", "adafactor", "lamb")  # and AdamW, NAdam, Adamax
_REPLACED = 1.0  # of the weights: a step that leaves nothing of them


def divides_gradients(seen: Sight) -> bool:
    """Does the optimiser divide gradients by their own size?"""
    name = str(seen.history.info.optimizer.get("name", "")).lower()
    return any(each in name for each in _NAMES)


def is_replaced_by_rate(seen: Sight) -> bool:
    """Did the rate alone replace the weights at the first step, whatever was fed?

    Such steps are as large with sound inputs, losses and gradients as with any others.
    """
    typical = seen.layers.typical_update
    first = np.zeros(0) if typical is None else np.nan_to_num(typical[:1])
    return divides_gradients(seen) and bool((first >= _REPLACED).any())
