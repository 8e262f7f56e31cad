"""How many times higher a rate should be whose steps are too small; warm-ups that should end."""

from __future__ import annotations

import numpy as np

from ...records.runs import Fix
from .degrees import FEW, LONG, PART, SHORT, SOME, TWICE
from .layers import SOUND_UPDATE, initial_scales
from .losses import levels
from .sight import Sight

_MOST = 1e6
_NEAR = 0.8  # of the height of a rate: about at it


def end_warm_up(seen: Sight) -> Fix | None:
    """Ask for a warm-up that ends soon, where the rate is still on its way up."""
    if not seen.is_warming_up:
        return None
    return Fix("warmup", {"steps": max(seen.points // SHORT, 1)})


def raised(seen: Sight) -> float | None:
    """Return the factor that makes steps at the height of the rate as large as sound ones.

    Changes of layers multiply, so that of a deep stack each should be smaller (Bernstein et al.
    2020, On the distance between two neural networks). First gradients are often several times
    those of later: the first steps may not tear the weights, nor those of the layer that moves
    most. Where gradients are divided by their size all layers move alike; plain steps, and those
    with an epsilon far above the gradients, move some ten times as much. None if no step is
    known.
    """
    pace, typical = pace_at_height(seen), seen.layers.typical_update
    if pace is None or typical is None:
        return None
    deep = max(min(SHORT / max(int(seen.layers.trained.sum()), 1), 1.0), PART)
    factor = deep * TWICE * SOUND_UPDATE / pace
    course = levels(typical[np.isfinite(typical)], FEW)
    largest = max(float(course.max(initial=0.0)), _fastest(seen))
    bound = PART / largest if largest > 0 else _MOST
    return float(f"{min(factor, bound, _MOST):.2g}")


def _fastest(seen: Sight) -> float:
    """Return the largest first step of a layer that starts at a usual size; 0 if none is known.

    Beside weights that start at next to nothing every step is large.
    """
    updates, scales = seen.layers.update, initial_scales(seen.layers)
    if updates is None or not len(scales):
        return 0.0
    # Frameworks start at 0.4 and more.
    usual = seen.layers.trained & (np.nan_to_num(scales) >= PART)
    first = updates[:FEW][:, usual]
    return float(first[np.isfinite(first)].max(initial=0.0))


def pace_at_height(seen: Sight) -> float | None:
    """Return what late steps change of the weights, had the rate still been at its height.

    A factor raises the whole schedule: one that was made for the small steps of its end is far too
    high for its beginning.
    """
    typical = seen.layers.typical_update
    if typical is None:
        return None
    rates = np.ones(len(typical)) if seen.lr is None else np.nan_to_num(seen.lr)
    known = np.isfinite(typical) & (typical > 0) & (rates > 0)
    if not known.any():
        return None
    height = float(np.sort(rates[known])[-min(FEW, int(known.sum()))])
    with np.errstate(over="ignore"):
        pace = float(np.median((typical[known] * (height / rates[known]))[-LONG:]))
    return pace if 0 < pace < np.inf else None


def sound_height(seen: Sight) -> float:
    """Return the rate to hold where a schedule went wrong after it had come down: 0 if none is.

    Its height, where the loss fell by a good share while the rate was about there and steps were
    sound: held lower, a run that was made to begin there does not come as far. Half of it
    elsewhere.
    """
    rates = np.zeros(0) if seen.lr is None else np.nan_to_num(seen.lr)
    height, typical, loss = float(rates.max(initial=0.0)), seen.layers.typical_update, seen.loss
    if height <= 0 or typical is None or not loss.n:
        return height / 2
    near = rates >= _NEAR * height
    steps = typical[near & np.isfinite(typical)]
    then = loss.values[loss.steps <= seen.steps[near][-1]][-loss.width :]
    sound = len(steps) > 0 and float(np.median(steps)) < TWICE * SOUND_UPDATE
    fell = len(then) > 0 and float(np.median(then)) < (1 - SOME) * loss.start
    return height if sound and fell else height / 2
