"""A learning rate that is too high: steps large beside the weights, and a loss that suffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..records import Policy, Threshold
from ..runs import RunFinding
from . import diagnosis
from .signs.decay import collapsed, decay_that_wins
from .signs.harms import Harm, broke, lost, rests, stood, stuck
from .signs.held_back import held_back_loss
from .signs.layers import initial_scales
from .signs.leaps import SOON, kicks
from .signs.limits import Limits
from .signs.losses import Losses, levels
from .signs.outliers import outlier
from .signs.outputs import explains_nothing
from .signs.radial import is_drawn_in, swelling
from .signs.rates import (
    AIM,
    bound,
    echoes,
    first_step,
    gathered,
    hold,
    is_summed,
    larger,
    lighter,
    lower,
    momentum,
    stepped,
    usual_by_first,
)
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
    "climbed": Threshold(0.05, "of what was won, and lost again for good behind torn weights"),
    "undone": Threshold(0.5, "of what was won, and lost again behind a rate that rose at once"),
}  # fmt: skip

_APART = 0.7  # of where training began: a held-back loss below it was learned for
_WON = 0.2  # of the start: less may be the noise of batches
_LITTLE = 0.12  # share of a regression's targets explained, behind steps that left no weights
_NEAR = 0.1  # fall of a loss that may still be on its way off a saddle
_RESTS = 0.3  # of what the run began with: a loss that rests above it has learned little
_LONG = 60  # points: the fifth of so many is a level
_BATCHES = 2.0  # spreads of one loss: a level of a dozen of them lies five of its own off by then
_BEFORE, _AFTER = 20, 3  # points about the beginning of the harm in which steps must be large
_STARTS = 3  # values that make the start of a loss
_MILD = 1.5  # times the start: a rise below it must last
_BY_CHANCE = 3.0  # spreads of one loss: some level of five lies as far above the first three
_START_BY_CHANCE = 1.2  # the same: the first three may lie as far below what all come from
_EASES = 0.5  # of its peak: a loss that first steps threw up and that comes back
_FALLS = 0.7  # of the points before: a loss that is on its way down
_ENDED = 0.02  # of its highest: a rate that moves nothing any more
_STEEPEST = 10.0  # times: what a second step may say of the valley


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
    # A sum over the batch is large by itself, and makes the steps so.
    beyond = first is not None and first > limit["first_loss"] and not is_summed(seen)
    if gradient[0] > limit["gradient"] or beyond:
        return
    harms = (_rose(seen, limit), _broke(seen, limit), _undone(seen, limit),
             _swings(seen.loss, limit), _stays(seen, limit), _climbed(seen, limit))  # fmt: skip
    for told in harms:
        found = None if told is None or _slipped(seen, told) else _large(seen, limit, told)
        if told is not None and found is not None:
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
    low = max(at - max(_BEFORE, echoes(seen)), 0) if sudden else 0
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
    told = _dated(loss, told)
    far = bool((typical > 5 * limit["update"]).any())
    if not far and _may_be_chance(loss, told, limit):
        return None
    early = loss.n < limit["patience"]
    if early and not far:
        return None
    if early and loss.values[-1] < _EASES * loss.values.max():
        return None  # first steps throw a loss up that is back within ten
    # Asked of the first points alone: a loss that leaps about is on its way down half the time.
    if early or loss.n >= 3 * limit["patience"]:
        return told
    now, before = float(np.median(loss.values[-5:])), float(np.median(loss.values[-10:-5]))
    return None if now < _FALLS * before or now < loss.start / 2 else told


def _dated(loss: Losses, told: Harm) -> Harm:
    """Date a rise that seems to begin with the run to where half of it was made.

    The first values are the start itself, apart by chance: none of them was thrown up by steps.
    """
    if told.since > loss.steps[:_STARTS][-1]:
        return told
    half = loss.values > loss.start * told.figure**0.5
    return told._replace(since=int(loss.steps[int(np.argmax(half))])) if half.any() else told


def _may_be_chance(loss: Losses, told: Harm, limit: Limits) -> bool:
    """Is it so mild a rise that a few batches make it, or may the first ones have been easy?

    A few losses of batches lie as far apart by chance, the farther the more batches differ. What
    is no chance lasts.
    """
    if told.figure >= max(_MILD, 1 + _BY_CHANCE * loss.noise):
        return False
    late = float(np.median(loss.values[loss.n // 2 :]))
    lasting = max(limit["rise"], 1 + _START_BY_CHANCE * loss.noise)
    return bool(loss.n < 3 * limit["patience"] or late < lasting * loss.start)


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


def _undone(seen: Sight, limit: Limits) -> Harm | None:
    """Was most of what was won lost right behind a rate that rose at once, and to stay?

    Such a loss need not come near its start again: it was far below it.
    """
    at, loss = stepped(seen), seen.loss
    if at is None or loss.is_learned:
        return None
    behind = loss.steps > seen.steps[at]  # the loss of a step is measured before it
    before, after = loss.values[~behind][-_BEFORE:], loss.values[behind]
    if len(before) < _BEFORE or len(after) < limit["patience"]:
        return None
    low, late = float(np.median(before)), float(np.median(after[-_BEFORE // 2 :]))
    won = loss.reference - low
    learned = won > _WON * loss.size
    if not learned or late - low < limit["undone"] * won or late <= float(before.max()):
        return None
    said = f"the loss went from {low:.4g} to {late:.4g} behind a rate that rose at once"
    return Harm("above", int(loss.steps[behind][0]), (late - low) / won, said)


def _slipped(seen: Sight, told: Harm) -> bool:
    """Did the harm come soon behind one step whose rate, or batch, was far beyond the others?"""
    slips = [] if seen.lr is None else [int(seen.steps[at]) for at in kicks(seen.lr)]
    struck = outlier(seen)
    slips += [] if struck is None else [struck.step]
    if struck is not None and told.kind == "swings":
        return True  # before that batch steps were small and losses sound: they swing behind it
    return any(step < told.since <= step + SOON for step in slips)


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
    return Harm("swings", int(loss.steps[0]), float((high - low) / middle), said)


def _stays(seen: Sight, limit: Limits) -> Harm | None:
    """Is the loss stuck for long although the first steps were large?"""
    first = _first_steps(seen)
    if first >= limit["replaced"]:
        told = stuck(seen.loss, limit["patience"]) or stood(seen.loss, limit["stood"])
        told = told or rests(seen.loss, 40, _resting(seen.loss))
        return told or explains_nothing(seen, 60, _LITTLE)
    tears = first >= limit["torn"] or gathered(seen) >= limit["replaced"]
    told = stuck(seen.loss, 60) or (rests(seen.loss, 60) if tears else None)
    # Recurrent networks rest long before they learn, whatever their steps.
    if is_recurrent(seen.history):
        return None
    # What steps tore apart does not wake.
    waking = seen.is_waking and seen.loss.fall < _NEAR and first < limit["torn"]
    if told is None or waking or _is_learned_for(seen) or (_has_ended(seen) and not tears):
        return None
    return told if first >= limit["update"] else None


def _has_ended(seen: Sight) -> bool:
    """Is next to nothing left of the rate? Then the loss stands for want of steps."""
    rates = np.zeros(0) if seen.lr is None else seen.lr[np.isfinite(seen.lr)]
    return len(rates) > 0 and bool(rates[-1] < _ENDED * rates.max())


def _climbed(seen: Sight, limit: Limits) -> Harm | None:
    """Did a loss climb off its lowest level again, and stay there, behind steps that tear?

    Steps that fit the valley lose nothing of what they won; batches alone make less of a rise.
    """
    first, loss = _first_steps(seen), seen.loss
    if first < limit["torn"] or loss.n < _LONG or loss.is_learned:
        return None
    fifth = loss.n // 5
    low, late = float(levels(loss.values, fifth).min()), float(np.median(loss.values[-fifth:]))
    won = loss.reference - low
    by_chance = _BATCHES * loss.noise * loss.size
    if won <= 0 or late < _RESTS * loss.reference:
        return None
    if late - low < max(limit["climbed"] * won, by_chance):
        return None
    said = f"the loss climbed from {low:.4g} to {late:.4g} again"
    return Harm("above", int(loss.steps[0]), (late - low) / won, said)


def _first_steps(seen: Sight) -> float:
    """Give the largest update by weight of the first points, until a heavy momentum gathered."""
    typical, points = seen.layers.typical_update, max(3, echoes(seen))
    return 0.0 if typical is None else float(np.nan_to_num(typical[:points]).max(initial=0.0))


def _resting(loss: Losses) -> float:
    """Give the share of the start above which a loss rests too high behind replaced weights.

    They throw the second value up already, and what they cost is no start: the first value, or
    guessing, is what the run began with.
    """
    began = min(loss.reference, float(loss.values[0])) if loss.n else 0.0
    return _RESTS * began / loss.start if loss.start > 0 else _RESTS


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
    factor, noise = _factor(seen, peak), larger(seen)
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
        fix=noise or lighter(seen) or bound(seen, told.since, limit["update"])
        or lower(seen, factor),
    )  # fmt: skip


def _factor(seen: Sight, peak: float) -> float:
    """Give the factor that would make updates about a hundredth of the weights.

    The first update tells best: later ones grew with the harm. Momentum m adds up to 1/(1 - m)
    of it. Where the learning rate itself grew, its first value was not the fault, and the peak
    counts.
    """
    rates = seen.lr
    known = np.zeros(0) if rates is None else rates[np.isfinite(rates)]
    rising = len(known) > 0 and float(known.max()) > 2 * float(known[0])
    first = first_step(seen)
    if rising or first <= 0:
        return float(np.clip(0.003 / peak, 0.001, 0.3))
    if is_summed(seen) and seen.batch:
        return 1 / seen.batch
    usual = first * usual_by_first(seen) * _steeper(seen) ** 0.5
    return float(np.clip(AIM * max(1 - momentum(seen), 0.0) / usual, 0.001, 0.3))


def _steeper(seen: Sight) -> float:
    """Say how many times as large the first step made the second, beyond what momentum adds.

    So much steeper is the valley beside the start. A step that threw the weights out of it says
    less: ten times are counted at most.
    """
    typical = seen.layers.typical_update
    if typical is None or len(typical) < 2 or not typical[0] > 0 or not np.isfinite(typical[1]):
        return 1.0
    alone = float(typical[0]) * (1 + momentum(seen))
    return float(np.clip(typical[1] / alone, 1.0, _STEEPEST))


def _rate(seen: Sight) -> dict[str, float]:
    rates = seen.lr
    known = [] if rates is None else rates[np.isfinite(rates)]
    return {"lr": float(max(known))} if len(known) else {}
