"""What a loss suffers behind steps that are too large: each harm with the steps it takes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..signs.degrees import (
    CLEARLY,
    FEW,
    HALF,
    HARDLY,
    LASTING,
    MOST,
    PART,
    SEVERAL,
    SLIGHTLY,
    SOME,
    THRICE,
    TWICE,
)
from ..signs.harms import Harm, broke, lost, rests, stood, stuck
from ..signs.held_back import held_back_loss
from ..signs.limits import Limits
from ..signs.losses import START, Losses, levels
from ..signs.rates import ENDED, echoes, gathered, stepped
from ..signs.recurrence import is_recurrent
from ..signs.sight import Sight

_TORN_LONG = 40  # points for which a loss is stuck behind torn weights
BEFORE = 20  # points before the harm in which steps must be large
_SOON = 15  # points behind which gradients may be called gone: torn weights, large steps


def suffered(seen: Sight, limit: Limits) -> Iterator[Harm]:
    """Return each harm that steps may have done, the plainest first."""
    harms = (
        _rose(seen, limit),
        _broke(seen, limit),
        _undone(seen, limit),
        swings(seen.loss, limit),
        _stays(seen, limit),
        _climbed(seen, limit),
        _silenced(seen, limit),
    )
    return (told for told in harms if told is not None)


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
    if early and loss.values[-1] < HALF * loss.values.max():
        return None  # first steps throw a loss up that is back within ten
    # Asked of the first points alone: a loss that leaps about is on its way down half the time.
    if early or loss.n >= 3 * limit["patience"]:
        return told
    now, before = float(np.median(loss.values[-5:])), float(np.median(loss.values[-10:-5]))
    return None if now < MOST * before or now < loss.start / 2 else told


def _dated(loss: Losses, told: Harm) -> Harm:
    """Date a rise that seems to begin with the run to where half of it was made.

    The first values are the start itself, apart by chance: none of them was thrown up by steps.
    """
    if told.since > loss.steps[:START][-1]:
        return told
    half = loss.values > loss.start * told.figure**0.5
    return told._replace(since=int(loss.steps[int(np.argmax(half))])) if half.any() else told


def _may_be_chance(loss: Losses, told: Harm, limit: Limits) -> bool:
    """Is it so mild a rise that a few batches make it, or may the first ones have been easy?

    A few losses of batches lie as far apart by chance, the farther the more batches differ. What
    is no chance lasts.
    """
    if told.figure >= max(CLEARLY, 1 + THRICE * loss.noise):  # a rise below it must last
        return False
    late = float(np.median(loss.values[loss.n // 2 :]))
    lasting = max(limit["rise"], 1 + SLIGHTLY * loss.noise)
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
    before, after = loss.values[~behind][-BEFORE:], loss.values[behind]
    if len(before) < BEFORE or len(after) < limit["patience"]:
        return None
    low, late = float(np.median(before)), float(np.median(after[-BEFORE // 2 :]))
    won = loss.reference - low
    learned = won > PART * loss.size  # less may be the noise of batches
    if not learned or late - low < limit["undone"] * won or late <= float(before.max()):
        return None
    said = f"the loss went from {low:.4g} to {late:.4g} behind a rate that rose at once"
    return Harm("above", int(loss.steps[behind][0]), (late - low) / won, said)


def swings(loss: Losses, limit: Limits) -> Harm | None:
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
    first = first_steps(seen)
    if first >= limit["replaced"]:
        told = stuck(seen.loss, limit["patience"]) or stood(seen.loss, limit["stood"])
        return told or rests(seen.loss, 40, _resting(seen.loss))
    loss, thrown = begun(seen, limit)
    tears = first >= limit["torn"] or gathered(seen) >= limit["replaced"]
    tears = tears or (thrown and way(seen) >= limit["torn"])
    told = stuck(loss, _TORN_LONG if tears else LASTING) or (
        rests(loss, LASTING) if tears else None
    )
    # Recurrent networks rest long before they learn, whatever their steps.
    if is_recurrent(seen.history):
        return None
    # What steps tore apart does not wake.
    waking = seen.is_waking and seen.loss.fall < SOME and first < limit["torn"]
    learned = _is_learned_for(seen, loss, thrown)
    if told is None or waking or learned or (_has_ended(seen) and not tears):
        return None
    return told if first >= limit["update"] else None


def _silenced(seen: Sight, limit: Limits) -> Harm | None:
    """Are the gradients of most layers gone behind large first steps, with nothing learned?

    Gradients that were sound before the first step are lost by the steps themselves: units died
    or saturated. Where the loss came down, small gradients are its due.
    """
    first, gradient = first_steps(seen), seen.layers.typical_gradient
    least = SEVERAL if first >= limit["torn"] else _SOON
    if gradient is None or first < limit["update"] or seen.points <= least:
        return None
    loss, _ = begun(seen, limit)
    if loss.n <= least or loss.fall > SOME or loss.is_learned or is_recurrent(seen.history):
        return None
    left = float(np.nan_to_num(gradient[-FEW:]).max()) / max(float(gradient[0]), 1e-300)
    if not left < HARDLY:  # what is left where steps silenced the network
        return None
    said = f"gradients fell to {left:.2g} of what they were, and the loss is at {loss.now:.4g}"
    return Harm("silenced", int(seen.loss.steps[0]), left, said)


def _has_ended(seen: Sight) -> bool:
    """Is next to nothing left of the rate? Then the loss stands for want of steps."""
    rates = seen.rates
    return len(rates) > 0 and bool(rates[-1] < ENDED * rates.max())


def _climbed(seen: Sight, limit: Limits) -> Harm | None:
    """Did a loss climb off its lowest level again, and stay there, behind steps that tear?

    Steps that fit the valley lose nothing of what they won; batches alone make less of a rise.
    """
    first, loss = first_steps(seen), seen.loss
    if first < limit["torn"] or loss.n < LASTING or loss.is_learned:
        return None
    fifth = loss.n // 5
    low, late = float(levels(loss.values, fifth).min()), float(np.median(loss.values[-fifth:]))
    won = loss.reference - low
    by_chance = TWICE * loss.noise * loss.size
    if won <= 0 or late < PART * loss.reference:  # a loss that rests above it has learned little
        return None
    if late - low < max(limit["climbed"] * won, by_chance):
        return None
    said = f"the loss climbed from {low:.4g} to {late:.4g} again"
    return Harm("above", int(loss.steps[0]), (late - low) / won, said)


def _resting(loss: Losses) -> float:
    """Return the share of the start above which a loss rests too high behind replaced weights.

    They throw the second value up already, and what they cost is no start: the first value, or
    guessing, is what the run began with.
    """
    began = min(loss.reference, float(loss.values[0])) if loss.n else 0.0
    if loss.chance is not None and loss.is_of_outputs:
        began = min(began, loss.chance)  # raw inputs make a first loss many times that
    return PART * began / loss.start if loss.start > 0 else PART


def _is_learned_for(seen: Sight, loss: Losses, thrown: bool) -> bool:
    """Is the held-back loss far below where training began?

    Labels that are noisy keep the loss of small batches high, and it seems to rest. Where first
    steps threw the loss up, what lies below it was learned only if the first look lay higher.
    """
    held_back = held_back_loss(seen.history)
    latest = np.zeros(0) if held_back is None else held_back.values[-3:]
    if held_back is None or len(latest) < 3:
        return False
    level = min(loss.reference, float(held_back.values[0])) if thrown else loss.reference
    return float(latest.max()) < MOST * level  # a held-back loss below it was learned for


def begun(seen: Sight, limit: Limits) -> tuple[Losses, bool]:
    """Return the loss as it was before any step, and whether first steps threw it up.

    The start of a loss is the mean of its first values, and all but the first are behind a step.
    Where steps far too large threw these up, a loss that merely came back would count as learning.
    """
    loss, large = seen.loss, first_steps(seen) >= SEVERAL * limit["update"]
    if not large or loss.n <= START or loss.values[0] <= 0:
        return loss, False
    first = float(loss.values[0])
    if float(np.mean(loss.values[1 : START + 1])) < CLEARLY * first:
        return loss, False
    return loss._replace(values=np.append([first] * START, loss.values[START:])), True


def first_steps(seen: Sight) -> float:
    """Return the largest update by weight of the first points, until a heavy momentum gathered."""
    typical, points = seen.layers.typical_update, max(3, echoes(seen))
    return 0.0 if typical is None else float(np.nan_to_num(typical[:points]).max(initial=0.0))


def way(seen: Sight) -> float:
    """Return what the first steps add up to: those of adaptive optimisers go one way at first."""
    typical = seen.layers.typical_update
    return 0.0 if typical is None else float(np.nan_to_num(typical[:START]).sum())
