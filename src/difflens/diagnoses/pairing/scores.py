"""Whether a loss without a floor is made of scores that nobody has normalised.

A cross entropy costs what guessing costs at the start, or more, so with its sign turned it begins
at minus that or below. Scores taken for logarithms of probabilities begin at about nothing. Both
grow with the outputs; an error with its sign turned grows with their square.
"""

from __future__ import annotations

import numpy as np

from ..signs.sight import Sight

_UNDER = 0.9  # of guessing: a negated cross entropy begins deeper
_RECENT = 20  # points
_POWER = 1.5  # of the outputs' spread: between what grows with it, and with its square
_FAR = 100.0  # spread from which on the two are told apart


def are_scores(seen: Sight) -> bool:
    """Did it begin too near to zero for a negated cross entropy, and grow with the outputs?"""
    loss, spread = seen.loss, seen.layers.field("act_std")
    if loss.chance is None or spread is None or not loss.n:
        return False
    known = spread[-_RECENT:, -1]
    known = known[np.isfinite(known)]
    depth, size = -loss.now, float(np.median(known)) if len(known) else 0.0
    return bool(loss.values[0] > -_UNDER * loss.chance and size > _FAR and depth < size**_POWER)
