"""Whether weight decay takes more from the weights than gradients give them."""

from __future__ import annotations

import numpy as np

from .layers import median
from .sight import Sight

_LOST = 0.5  # of their first size: what decay of a usual strength leaves far behind a whole run
_STRONG = 1e-3  # a decay below it takes a thousandth a step at a rate of one


def decay_that_wins(seen: Sight) -> float | None:
    """Give the weight decay of the optimiser where the matrices lost half their size under it."""
    given, weights = seen.history.info.optimizer.get("weight_decay"), seen.layers.weights
    if not isinstance(given, (int, float)) or given < _STRONG or weights is None:
        return None
    trained = weights[:, seen.layers.trained]
    if len(trained) < 2 or not trained.size or not (trained[0] > 0).all():
        return None
    left = median(trained / trained[0], axis=1)
    return float(given) if bool(np.nanmin(left) < _LOST) else None
