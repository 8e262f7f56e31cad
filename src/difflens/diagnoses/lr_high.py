"""A learning rate that is too high: steps large beside the weights, and a loss that suffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..records import Policy, Threshold
from ..runs import Fix, RunFinding
from . import diagnosis
from .signs.decay import collapsed, decay_that_wins
from .signs.harms import Harm, broke, lost, rests, stood, stuck
from .signs.held_back import held_back_loss
from .signs.layers import initial_scales
from .signs.limits import Limits
from .signs.losses import Losses, levels
from .signs.radial import is_drawn_in, swelling
from .signs.rates import ECHO, bound, hold, is_summed, lighter, lower, momentum
from .signs.recurrence import is_recurrent
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
}  # fmt: skip

_APART = 0.7  # of where training began: a held-back loss below it was learned for
_NEAR = 0.1  # fall of a loss that may still be on its way off a saddle
_BEFORE, _AFTER = 20, 3  # points about the beginning of the harm in which steps must be large
_AIM = 0.015  # of the weights: what a first update of a sound run changes
_MILD = 1.5  # times the start: a rise below it must last
_EASES = 0.5  # of its peak: a loss that first steps threw up and that comes back
_FALLS = 0.7  # of the points before: a loss that is on its way down
_HEAVY = 0.95  # momentum above which a step echoes for longer than twenty steps


@diagnosis(needs=("update_l2", "weight_l2", "loss"), window=8, thresholds=THRESHOLDS)
def lr_high(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find updates that are large beside the weights where the loss rises or does not settle."""
    limit = Limits("lr-high", policy, THRESHOLDS)
    seen = sight(history)
    typical, gradient = seen.layers.typical_update, seen.layers.typical_gradient
    if typical is None or gradient is None or seen.points < 4:
        return
    if decay_that_wins(seen) is not None or collapsed(seen) is not None or is_drawn_in(seen):
        return  # beside weights that decay takes away every step is large
    if swelling(seen) is not None:
        return  # what makes weights grow along themselves makes the steps large, too
    wild = has_wild_weights(initial_scales(seen.layers), limit["wild"], limit["wild"])
    if wild or is_out_of_reach(seen):
        return  # what no gradient ever reached, no step did harm to
    first = seen.loss.first_by_chance
    if gradient[0] > limit["gradient"] or (first is not None and first > limit["first_loss"]):
        return
    harms = (_rose(seen, limit), _broke(seen, limit), _swings(seen.loss, limit),
             _stays(seen, limit))  # fmt: skip
    for told in harms:
        found = None if told is None else _large(seen, limit, told)
        if told is not None and found is not None:
            yield _told(seen, limit, *found, told)
            return


def _large(seen: Sight, limit: Limits, told: Harm) -> tuple[float, int] | None:
    """Give the size of the large steps that came before the harm, and the first of them.

    A step shows in the loss of the next one: steps that are large only since the loss is high
    follow from it. They must last, too: a single one is a leap, and has another name.
    """
    typical = seen.layers.typical_update
    if typical is None:
        return None
    known = np.isfinite(typical)
    values, steps = typical[known], seen.steps[known]
    at = int(np.searchsorted(steps, told.since))
    # A rate that climbs kills units first and lifts the loss much later.
    sudden = told.kind == "above" and hold(seen) is None
    low = max(at - _BEFORE, 0) if sudden else 0
    cause = low + np.flatnonzero(values[low : max(at, 1)] >= limit["update"])
    about = values[low : at + _AFTER]
    course = levels(about, min(3, len(about)))
    if not len(cause) or not len(course) or course.max() < limit["update"]:
        return None
    first = int(cause[0])
    while first and np.median(values[max(first - 5, 0) : first]) >= limit["update"]:
        first -= 1
    return float(course.max()), int(steps[first])


def _rose(seen: Sight, limit: Limits) -> Harm | None:
    """Did the loss rise above its start, and is it neither back nor on its way down?"""
    told, loss = lost(seen.loss, limit["rise"]), seen.loss
    typical = seen.layers.typical_update
    if told is None or typical is None:
        return None
    # A few losses of batches lie as far apart by chance.
    late = float(np.median(loss.values[loss.n // 2 :]))
    mild = told.figure < _MILD and not (typical > 5 * limit["update"]).any()
    if mild and (loss.n < 3 * limit["patience"] or late < limit["rise"] * loss.start):
        return None
    early = loss.n < limit["patience"]
    if early and not (typical > 5 * limit["update"]).any():
        return None
    if early and loss.values[-1] < _EASES * loss.values.max():
        return None  # first steps throw a loss up that is back within ten
    # Asked of the first points alone: a loss that leaps about is on its way down half the time.
    if early or loss.n >= 3 * limit["patience"]:
        return told
    now, before = float(np.median(loss.values[-5:])), float(np.median(loss.values[-10:-5]))
    return None if now < _FALLS * before or now < loss.start / 2 else told


def _broke(seen: Sight, limit: Limits) -> Harm | None:
    """Did the loss cease to be a number right after steps as large as the weights?

    A bad sample or a logarithm of zero break it as well, after steps of any size: smaller ones
    do not take numbers to where floats end.
    """
    told, typical = broke(seen.loss), seen.layers.typical_update
    if told is None or typical is None:
        return None
    before = typical[seen.steps < told.since][-5:]
    before = before[np.isfinite(before)]
    return told if len(before) and float(before.max()) >= limit["replaced"] else None


def _swings(loss: Losses, limit: Limits) -> Harm | None:
    """Does the loss swing widely without getting anywhere?"""
    if loss.n < 40 or loss.start <= 0 or loss.is_signed:
        return None
    late = loss.values[-max(loss.n // 2, 30) :]
    low, middle, high = np.percentile(late, [25, 50, 75])
    half = len(late) // 2
    falls = float(np.median(late[half:])) < 0.8 * float(np.median(late[:half]))
    if falls or middle <= 0 or middle < 0.4 * loss.start or (high - low) < limit["swing"] * middle:
        return None
    said = f"the loss swings between {low:.3g} and {high:.3g} (it started at {loss.start:.3g})"
    return Harm("above", int(loss.steps[0]), float((high - low) / middle), said)


def _stays(seen: Sight, limit: Limits) -> Harm | None:
    """Is the loss stuck for long although the first steps were large?"""
    typical = seen.layers.typical_update
    first = 0.0 if typical is None else float(np.nan_to_num(typical[:3]).max(initial=0.0))
    if first >= limit["replaced"]:
        told = stuck(seen.loss, limit["patience"]) or stood(seen.loss, limit["stood"])
        return told or rests(seen.loss, 40)
    told = stuck(seen.loss, 60) or (rests(seen.loss, 60) if first >= limit["torn"] else None)
    # Recurrent networks rest long before they learn, whatever their steps.
    if is_recurrent(seen.history):
        return None
    # What steps tore apart does not wake.
    waking = seen.is_waking and seen.loss.fall < _NEAR and first < limit["torn"]
    if told is None or waking or _is_learned_for(seen):
        return None
    return told if first >= limit["update"] else None


def _is_learned_for(seen: Sight) -> bool:
    """Is the held-back loss far below where training began?

    Labels that are noisy keep the loss of small batches high, and it seems to rest.
    """
    held_back = held_back_loss(seen.history)
    latest = np.zeros(0) if held_back is None else held_back.values[-3:]
    return len(latest) == 3 and float(latest.max()) < _APART * seen.loss.reference


def _told(seen: Sight, limit: Limits, peak: float, since: int, told: Harm) -> RunFinding:
    ratios = seen.layers.update
    place = int(np.searchsorted(seen.steps, since))
    sizes = (np.zeros(0) if ratios is None
             else np.nan_to_num(ratios[place : place + 5], posinf=1e30).max(axis=0))  # fmt: skip
    worst = np.argsort(-sizes, kind="stable")
    factor = _factor(seen, peak)
    return finding(
        "lr-high",
        "critical",
        f"a step changes the weights by up to {peak:.2g} of their size; {told.said}",
        {"update_by_weight": peak, "update_threshold": limit["update"], "harm": told.said,
         "harm_step": told.since, **_rate(seen)},
        since=since,
        layers=seen.layers.named(worst[:10]),
        cause="steps are larger than the valley they should follow: the learning rate, or the "
        "momentum, is too high",
        advice=[f"multiply the learning rate by about {factor:.1g}", "warm it up",
                "lower the momentum where it is above 0.95"],
        signs=[above(peak, limit["update"])],
        fix=_lighter(seen) or bound(seen, told.since, limit["update"]) or lower(seen, factor),
    )  # fmt: skip


def _lighter(seen: Sight) -> Fix | None:
    """Ask for less momentum where that alone makes the steps large; None where it does not.

    A rate made for a heavy momentum takes hundreds of steps to show anything.
    """
    held, typical = momentum(seen), seen.layers.typical_update
    first = 0.0 if typical is None or not len(typical) else float(typical[0])
    if held <= _HEAVY or not 0 < first < ECHO / 2 or hold(seen) is not None:
        return None
    return lighter(seen)


def _factor(seen: Sight, peak: float) -> float:
    """Give the factor that would make updates about a hundredth of the weights.

    The first update tells best: later ones grew with the harm. Momentum m adds up to 1/(1 - m)
    of it. Where the learning rate itself grew, its first value was not the fault, and the peak
    counts.
    """
    rates, typical = seen.lr, seen.layers.typical_update
    known = np.zeros(0) if rates is None else rates[np.isfinite(rates)]
    rising = len(known) > 0 and float(known.max()) > 2 * float(known[0])
    first = np.zeros(0) if typical is None else typical[:2][np.isfinite(typical[:2])]
    if rising or not len(first) or float(first[0]) <= 0:
        return float(np.clip(0.003 / peak, 0.001, 0.3))
    if is_summed(seen) and seen.batch:
        return 1 / seen.batch
    usual = float(first[0]) * _by_first(seen)
    return float(np.clip(_AIM * max(1 - momentum(seen), 0.0) / usual, 0.001, 0.3))


def _by_first(seen: Sight) -> float:
    """Give the usual step by the first: RMSprop's first divides by a tenth of the gradient."""
    given = seen.history.info.optimizer
    kept = given.get("alpha", given.get("rho"))
    if str(given.get("name", "")).lower() != "rmsprop" or not isinstance(kept, (int, float)):
        return 1.0
    return float(max(1 - kept, 1e-6) ** 0.5)


def _rate(seen: Sight) -> dict[str, float]:
    rates = seen.lr
    known = [] if rates is None else rates[np.isfinite(rates)]
    return {"lr": float(max(known))} if len(known) else {}
