"""How much lower a rate must be whose steps are too large, and the remedy that says so."""

from __future__ import annotations

import numpy as np

from ...runs import Fix
from ..signs.harms import Harm
from ..signs.losses import output_shape
from ..signs.rates import (
    AIM,
    bound,
    first_step,
    is_summed,
    larger,
    lighter,
    lower,
    momentum,
    usual_by_first,
)
from ..signs.sight import Sight

_STEEPEST = 10.0  # times: what later steps may say of the valley
_TORN = 0.3  # of the weights: a step that throws them out of the valley they were in
_CLIMBS = 2.0  # times its first value: a rate that was not at its height when it began
_LEAST, _MOST = 1e-5, 0.3  # factors: below, steps are lost in rounding; above, little would change


def remedy(seen: Sight, peak: float, told: Harm, sound: float) -> Fix:
    """Ask for what brings first steps to a sound size: batches, momentum, bounds, or the rate."""
    factor = rate_factor(seen, peak, told)
    found = larger(seen) or _whole(seen, factor) or lighter(seen) or bound(seen, told.since, sound)
    return found or lower(seen, factor)


def rate_factor(seen: Sight, peak: float, told: Harm) -> float:
    """Give the factor that would make updates about a hundredth of the weights.

    The first update tells best: later ones grew with the harm. Momentum m adds up to 1/(1 - m)
    of it. Where the learning rate itself grew, its first value was not the fault, and the peak
    counts, unless the first step tore the weights already: then its height is brought to where
    that step would have been sound.
    """
    first, climb = first_step(seen), _climb(seen)
    if is_summed(seen):
        return 1 / _summands(seen)
    if first <= 0 or (climb > _CLIMBS and first < _TORN):
        return float(np.clip(0.003 / peak, 0.001, _MOST))
    usual = first * usual_by_first(seen) * _steeper(seen, told)
    higher = climb if climb > _CLIMBS else 1.0
    return float(np.clip(AIM * max(1 - momentum(seen), 0.0) / usual / higher, _LEAST, _MOST))


def _whole(seen: Sight, factor: float) -> Fix | None:
    """Ask for the whole schedule to be scaled, where not even its beginning was sound."""
    torn = _climb(seen) > _CLIMBS and first_step(seen) >= _TORN
    if momentum(seen) >= 1 or not (torn or (is_summed(seen) and _climb(seen) > _CLIMBS)):
        return None
    return Fix("scale_lr", {"factor": float(f"{factor:.2g}")})


def _climb(seen: Sight) -> float:
    """Give the highest rate by the first; 1 where they are not known."""
    rates = np.zeros(0) if seen.lr is None else seen.lr[np.isfinite(seen.lr)]
    return float(rates.max() / rates[0]) if len(rates) and rates[0] > 0 else 1.0


def _summands(seen: Sight) -> int:
    """Give how many answers a sum goes over: the examples, and the places of each of classes."""
    shape, first = output_shape(seen.history), seen.loss.first_by_chance
    batch = max(seen.batch or 1, 1)
    places = int(np.prod([max(each, 1) for each in shape[1:-1]], initial=1))
    return batch * places if first is not None and first > 2 * batch else batch


def _steeper(seen: Sight, told: Harm) -> float:
    """Say how many times as steep the valley is beside the start, by what steps became there.

    Those before the harm are counted, beyond what momentum adds, ten times at most, and the root
    of it: as they grew they came down again. Where the loss broke nothing held them, and all of
    it counts, up to the step that threw the weights out: its own size says nothing of the valley.
    """
    typical, held = seen.layers.typical_update, momentum(seen)
    if typical is None or len(typical) < 2 or not 0 < typical[0] < _TORN:
        return 1.0
    until = max(int(np.searchsorted(seen.steps, told.since)), 2)
    sizes = np.nan_to_num(typical[:until], posinf=0.0)
    gathered = np.cumsum(held ** np.arange(len(sizes))) if held < 1 else np.arange(len(sizes)) + 1.0
    broke = seen.loss.broken is not None
    grown = (np.minimum(sizes, _TORN) if broke else sizes) / typical[0] / gathered
    return float(np.clip(grown.max(), 1.0, _STEEPEST) ** (1.0 if broke else 0.5))
