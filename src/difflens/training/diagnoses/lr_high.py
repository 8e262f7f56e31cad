"""A learning rate that is too high: steps large beside the weights, and a loss that suffers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.driving.apart import thrown_apart
from ..detectors.driving.overshoot import BEFORE, suffered
from ..detectors.signs.adaptive import is_replaced_by_rate
from ..detectors.signs.decay import collapsed, decay_that_wins
from ..detectors.signs.degrees import FEW, PART, TENFOLD, TWICE
from ..detectors.signs.harms import Harm
from ..detectors.signs.layers import initial_scales
from ..detectors.signs.leaps import SOON, kicks
from ..detectors.signs.limits import Limits
from ..detectors.signs.losses import levels, output_shape
from ..detectors.signs.outliers import outlier
from ..detectors.signs.radial import is_drawn_in, swelling
from ..detectors.signs.rates import (
    AIM,
    bound,
    echoes,
    first_step,
    hold,
    is_summed,
    is_torn_by_momentum,
    larger,
    lighter,
    lower,
    momentum,
    usual_by_first,
)
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.silence import is_out_of_reach
from ..detectors.signs.starts import has_wild_weights
from ..detectors.signs.wording import above, finding
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "update": Threshold(
        0.03, "median update by weight of the matrices: about 0.001 is usual, 0.05 still can work"
    ),
    "rise": Threshold(1.15, "loss over where it started: a level of five points above it"),
    "gradient": Threshold(
        50.0,
        "gradient by weight at the start above which the fault lies "
        "in the weights or the data, not in the learning rate",
    ),
    "first_loss": Threshold(20.0, "first loss by that of guessing above which the same holds"),
    "wild": Threshold(10.0, "first weights of a layer by kaiming's above which the same holds"),
    "patience": Threshold(
        20,
        "points before a rise is told of, unless updates are five times "
        "too large: networks with normalisation come down by themselves",
    ),
    "stood": Threshold(30, "points for which the loss stood still behind such a step"),
    "torn": Threshold(
        0.3, "update by weight of first steps behind which a loss that rests is their work"
    ),
    "replaced": Threshold(1.0, "update by weight of a step that leaves nothing of the weights"),
    "swing": Threshold(0.5, "spread of the loss over its level, where it does not rise"),
    "climbed": Threshold(0.05, "of what was won, and lost again for good behind torn weights"),
    "undone": Threshold(0.5, "of what was won, and lost again behind a rate that rose at once"),
}


@diagnosis(needs=("update_l2", "weight_l2", "loss"), window=8, thresholds=THRESHOLDS)
def lr_high(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find updates that are large beside the weights where the loss rises or does not settle."""
    limit = Limits("lr-high", policy, THRESHOLDS)
    seen = sight(history)
    # A first step is what it is, whatever decay did to the weights since.
    apart = thrown_apart(seen, limit)
    yield from apart or _beside_weights(seen, limit)


def _beside_weights(seen: Sight, limit: Limits) -> Iterator[RunFinding]:
    """Find steps of all layers that are large, where nothing else makes them so."""
    typical, gradient = seen.layers.typical_update, seen.layers.typical_gradient
    if typical is None or gradient is None or seen.points < 4:
        return
    if decay_that_wins(seen) is not None or collapsed(seen) is not None or is_drawn_in(seen):
        return  # beside weights that decay takes away every step is large
    if swelling(seen) is not None and not is_torn_by_momentum(seen):
        return  # what makes weights grow along themselves makes the steps large, too
    wild = has_wild_weights(initial_scales(seen.layers), limit["wild"], limit["wild"])
    if wild or is_out_of_reach(seen):
        return  # what no gradient ever reached, no step did harm to
    first = seen.loss.first_by_chance
    # A sum over the batch is large by itself, and makes the steps so.
    beyond = first is not None and first > limit["first_loss"] and not is_summed(seen)
    if (gradient[0] > limit["gradient"] or beyond) and not is_replaced_by_rate(seen):
        return
    for told in suffered(seen, limit):
        found = None if _slipped(seen, told) else _large(seen, limit, told)
        if found is not None:
            yield from _finding(seen, limit, *found, told)
            return


def _large(seen: Sight, limit: Limits, told: Harm) -> tuple[float, int] | None:
    """Return the size of the large steps that came before the harm, and the first of them.

    A step shows in the loss of the next one: steps that are large only since the loss is high
    follow from it. They must last, too: a single one is a leap, and has another name. A heavy
    momentum gathers them first, and lets them echo.
    """
    typical = seen.layers.typical_update
    if typical is None:
        return None
    known = np.isfinite(typical)
    values, steps = typical[known], seen.steps[known]
    at = max(int(np.searchsorted(steps, told.since)), echoes(seen) - 1)
    # A rate that climbs kills units first and lifts the loss much later.
    sudden = told.kind == "above" and hold(seen) is None
    low = max(at - max(BEFORE, echoes(seen)), 0) if sudden else 0
    cause = low + np.flatnonzero(values[low : max(at, 1)] >= limit["update"])
    about = values[low : at + FEW]
    course = levels(about, min(3, len(about)))
    if not len(cause) or not len(course) or course.max() < limit["update"]:
        return None
    first = int(cause[0])
    while first and np.median(values[max(first - 5, 0) : first]) >= limit["update"]:
        first -= 1
    return float(course.max()), int(steps[first])


def _slipped(seen: Sight, told: Harm) -> bool:
    """Did the harm come soon behind one step whose rate, or batch, was far beyond the others?"""
    slips = [] if seen.lr is None else [int(seen.steps[at]) for at in kicks(seen.lr)]
    struck = outlier(seen)
    slips += [] if struck is None else [struck.step]
    if struck is not None and told.kind == "swings":
        return True  # before that batch steps were small and losses sound: they swing behind it
    return any(step < told.since <= step + SOON for step in slips)


def _finding(seen: Sight, limit: Limits, peak: float, since: int, told: Harm) -> list[RunFinding]:
    ratios = seen.layers.update
    place = int(np.searchsorted(seen.steps, since))
    sizes = (
        np.zeros(0)
        if ratios is None
        else np.nan_to_num(ratios[place : place + 5], posinf=1e30).max(axis=0)
    )
    worst = np.argsort(-sizes, kind="stable")
    factor, noise = rate_factor(seen, peak, told), larger(seen)
    return finding(
        "lr-high",
        "critical",
        f"a step changes the weights by up to {peak:.2g} of their size; {told.said}",
        {
            "update_by_weight": peak,
            "update_threshold": limit["update"],
            "harm": told.said,
            "harm_step": told.since,
            **_rate(seen),
        },
        since=since,
        layers=seen.layers.named(worst[:10]),
        cause="steps are larger than the valley they should follow: the learning rate, or the "
        "momentum, is too high" + (" for so few examples a step" if noise else ""),
        advice=[
            *(["take batches of 32, or add the gradients of as many up"] if noise else []),
            f"multiply the learning rate by about {factor:.1g}",
            "warm it up",
            "lower the momentum where it is above 0.95",
        ],
        signs=[above(peak, limit["update"])],
        fix=remedy(seen, peak, told, limit["update"]),
    )


def _rate(seen: Sight) -> dict[str, float]:
    rates = seen.lr
    known = [] if rates is None else rates[np.isfinite(rates)]
    return {"lr": float(max(known))} if len(known) else {}


_LEAST = 1e-5  # a factor: below, steps are lost in rounding


def remedy(seen: Sight, peak: float, told: Harm, sound: float) -> Fix:
    """Ask for what brings first steps to a sound size: batches, momentum, bounds, or the rate."""
    factor = rate_factor(seen, peak, told)
    found = larger(seen) or lighter(seen) or bound(seen, told.since, sound)
    return found or lower(seen, factor)


def rate_factor(seen: Sight, peak: float, told: Harm) -> float:
    """Return the factor that would make updates about a hundredth of the weights.

    The first update tells best: later ones grew with the harm. Momentum m adds up to 1/(1 - m)
    of it. Where the learning rate itself grew, its first value was not the fault, and the peak
    counts, unless the first step tore the weights already: then its height is brought to where
    that step would have been sound.
    """
    first, climb = first_step(seen), _climb(seen)
    if is_summed(seen):
        return 1 / _summands(seen)
    if first <= 0 or (climb > TWICE and first < PART):
        return float(np.clip(0.003 / peak, 0.001, PART))
    usual = first * usual_by_first(seen) * _steeper(seen, told)
    higher = climb if climb > TWICE else 1.0
    return float(np.clip(AIM * max(1 - momentum(seen), 0.0) / usual / higher, _LEAST, PART))


def _climb(seen: Sight) -> float:
    """Return the highest rate by the first; 1 where they are not known."""
    rates = seen.rates
    return float(rates.max() / rates[0]) if len(rates) and rates[0] > 0 else 1.0


def _summands(seen: Sight) -> int:
    """Return how many answers a sum goes over: the examples, and the places of each of classes."""
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
    if typical is None or len(typical) < 2 or not 0 < typical[0] < PART:
        return 1.0
    until = max(int(np.searchsorted(seen.steps, told.since)), 2)
    sizes = np.nan_to_num(typical[:until], posinf=0.0)
    gathered = np.cumsum(held ** np.arange(len(sizes))) if held < 1 else np.arange(len(sizes)) + 1.0
    broke = seen.loss.broken is not None
    grown = (np.minimum(sizes, PART) if broke else sizes) / typical[0] / gathered
    return float(np.clip(grown.max(), 1.0, TENFOLD) ** (1.0 if broke else 0.5))
