"""A learning rate that is too high: steps large beside the weights, and a loss that suffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..records import Policy, Threshold
from ..runs import RunFinding
from . import diagnosis
from .driving.apart import thrown_apart
from .driving.factors import rate_factor, remedy
from .driving.overshoot import BEFORE, suffered
from .signs.adaptive import is_replaced_by_rate
from .signs.decay import collapsed, decay_that_wins
from .signs.harms import Harm
from .signs.layers import initial_scales
from .signs.leaps import SOON, kicks
from .signs.limits import Limits
from .signs.losses import levels
from .signs.outliers import outlier
from .signs.radial import is_drawn_in, swelling
from .signs.rates import echoes, hold, is_summed, is_torn_by_momentum, larger
from .signs.sight import Sight, sight
from .signs.silence import is_out_of_reach
from .signs.starts import has_wild_weights
from .signs.wording import above, finding

if TYPE_CHECKING:
    from ..history.history import History

THRESHOLDS = {
    "update": Threshold(
        0.03, "median update by weight of the matrices: about 0.001 is usual, 0.05 still can work"
    ),
    "rise": Threshold(1.15, "loss over where it started: a level of five points above it"),
    "gradient": Threshold(50.0, "gradient by weight at the start above which the fault lies "
                          "in the weights or the data, not in the learning rate"),
    "first_loss": Threshold(20.0, "first loss by that of guessing above which the same holds"),
    "wild": Threshold(10.0, "first weights of a layer by kaiming's above which the same holds"),
    "patience": Threshold(20, "points before a rise is told of, unless updates are five times "
                          "too large: networks with normalisation come down by themselves"),
    "stood": Threshold(30, "points for which the loss stood still behind such a step"),
    "torn": Threshold(0.3, "update by weight of first steps behind which a loss that rests is "
                      "their work"),
    "replaced": Threshold(1.0, "update by weight of a step that leaves nothing of the weights"),
    "swing": Threshold(0.5, "spread of the loss over its level, where it does not rise"),
    "climbed": Threshold(0.05, "of what was won, and lost again for good behind torn weights"),
    "undone": Threshold(0.5, "of what was won, and lost again behind a rate that rose at once"),
}  # fmt: skip

_AFTER = 3  # points behind the beginning of the harm in which steps must be large


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
            yield _told(seen, limit, *found, told)
            return


def _large(seen: Sight, limit: Limits, told: Harm) -> tuple[float, int] | None:
    """Give the size of the large steps that came before the harm, and the first of them.

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
    about = values[low : at + _AFTER]
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


def _told(seen: Sight, limit: Limits, peak: float, since: int, told: Harm) -> RunFinding:
    ratios = seen.layers.update
    place = int(np.searchsorted(seen.steps, since))
    sizes = (np.zeros(0) if ratios is None
             else np.nan_to_num(ratios[place : place + 5], posinf=1e30).max(axis=0))  # fmt: skip
    worst = np.argsort(-sizes, kind="stable")
    factor, noise = rate_factor(seen, peak, told), larger(seen)
    return finding(
        "lr-high",
        "critical",
        f"a step changes the weights by up to {peak:.2g} of their size; {told.said}",
        {"update_by_weight": peak, "update_threshold": limit["update"], "harm": told.said,
         "harm_step": told.since, **_rate(seen)},
        since=since,
        layers=seen.layers.named(worst[:10]),
        cause="steps are larger than the valley they should follow: the learning rate, or the "
        "momentum, is too high" + (" for so few examples a step" if noise else ""),
        advice=[*(["take batches of 32, or add the gradients of as many up"] if noise else []),
                f"multiply the learning rate by about {factor:.1g}", "warm it up",
                "lower the momentum where it is above 0.95"],
        signs=[above(peak, limit["update"])],
        fix=remedy(seen, peak, told, limit["update"]),
    )  # fmt: skip


def _rate(seen: Sight) -> dict[str, float]:
    rates = seen.lr
    known = [] if rates is None else rates[np.isfinite(rates)]
    return {"lr": float(max(known))} if len(known) else {}
