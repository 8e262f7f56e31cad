"""Whether weight decay takes more from the weights than gradients give them."""

from __future__ import annotations

import numpy as np

from .layers import median
from .sight import Sight

_LOST = 0.5  # of their first size: what decay of a usual strength leaves far behind a whole run
_LOSING = 0.9  # the same, where what decay pulls is known to be more than what gradients do
_STRONG = 1e-3  # a decay below it takes a thousandth a step at a rate of one
_MORE = 3.0  # times the pull of the gradient: trained weights rest where both are alike
_POINTS = 10


def decay_that_wins(seen: Sight) -> float | None:
    """Give the weight decay of the optimiser where it took the matrices away.

    Either half of their size is gone, or they shrink while decay pulls several times as hard as
    the gradient: w * decay is added to it, so r = |g|/|w| compares with the decay itself. Where
    decay is decoupled (AdamW) that says nothing, since gradients are scaled there.
    """
    given, weights = seen.history.info.optimizer.get("weight_decay"), seen.layers.weights
    if not isinstance(given, (int, float)) or given < _STRONG or weights is None:
        return None
    trained = weights[:, seen.layers.trained]
    if len(trained) < 2 or not trained.size or not (trained[0] > 0).all():
        return None
    left = median(trained / trained[0], axis=1)
    if bool(np.nanmin(left) < _LOST):
        return float(given)
    return float(given) if left[-1] < _LOSING and _outpulls(seen, float(given)) else None


def _outpulls(seen: Sight, decay: float) -> bool:
    pull = seen.layers.recent(seen.layers.gradient, _POINTS)
    if pull is None or str(seen.history.info.optimizer.get("name", "")).lower() == "adamw":
        return False
    known = pull[seen.layers.trained]
    known = known[np.isfinite(known)]
    return bool(len(known) and decay > _MORE * float(np.median(known)))
