"""What held-back data says of a loss that stands still: it has no noise of batches.

The start of a training loss is the mean of a few batches. Where these differ much, a start that
was lucky, or was not, hides how little was learned since.
"""

from __future__ import annotations

import numpy as np

from .degrees import SEVERAL, SOME
from .harms import Harm
from .held_back import held_back_loss
from .sight import Sight


def stood_held_back(seen: Sight, least: float) -> Harm | None:
    """Did held-back data get no better for a good part of the run, before it did?"""
    held_back, loss = held_back_loss(seen.history), seen.loss
    if held_back is None or held_back.n < SEVERAL or loss.is_learned or held_back.values[0] <= 0:
        return None
    first = float(held_back.values[0])
    better = np.flatnonzero(held_back.values < (1 - SOME) * first)
    until = held_back.steps[better[0] - 1] if len(better) else held_back.steps[-1]
    still = int((loss.steps <= until).sum())
    if len(better) == 0 or still < least:
        return None
    said = f"held-back data cost {first:.4g}, and no less for {still} of {loss.n} points"
    return Harm("stood", int(loss.steps[0]), still / loss.n, said)
