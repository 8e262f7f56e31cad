"""What the learning rate did, and the remedy that follows: a lower one, or another schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...records.runs import Fix
from .degrees import (
    ENDURING,
    FEW,
    HALF,
    NEARLY,
    PART,
    SEVERAL,
    SHORT,
    SLIGHTLY,
    SOME,
    THRICE,
    TWICE,
)
from .layers import SOUND_UPDATE, initial_scales
from .losses import Losses, levels
from .sight import Sight

_RISE = 1.05  # points, and the rise over them of a rate that is on its way up
ENDED = 0.02  # of the highest rate: a schedule that is at its end
_FEW, _MANY = 4, 32  # examples: so few that a step is mostly noise, and as many as are usual
AIM = 0.015  # of the weights: what a first update of a sound run changes
ECHO = 0.1  # of the weights: what a first update may change with all that momentum adds to it
HEAVY = 0.95  # momentum: one that echoes for longer than twenty steps, and a usual one
_LEAP = 1.3  # times the first values: one loss that steps threw up, not batches
_HELD = 0.25  # of the rate at the lowest loss: at half of it 26 of 30 ramps were mended


def is_rising(rates: Any) -> bool:
    """Is the learning rate higher than ever before, and still on its way up?"""
    known = rates[np.isfinite(rates)]
    if len(known) <= 2 * SHORT or known[-1] < known.max():
        return False
    return bool(known[-1] > _RISE * known[-1 - SHORT])


def has_ended(seen: Sight) -> bool:
    """Is the learning rate next to nothing, by what it was for some points?"""
    rates = seen.rates
    if len(rates) < SHORT:
        return False
    return bool(rates[-1] < ENDED * np.sort(rates)[-3])


def lower(seen: Sight, factor: float) -> Fix:
    """Ask for a rate that is `factor` of what it was; where it climbed, for a hold.

    What a heavy momentum adds up is too slow a matter to wait for.
    """
    return hold(seen) or lighter(seen) or _scaled(factor)


def _scaled(factor: float) -> Fix:
    return Fix("scale_lr", {"factor": _rounded(factor)})


def _rounded(factor: float) -> float:
    return float(f"{factor:.2g}")


def momentum(seen: Sight) -> float:
    """Return the momentum of the optimiser, 0 if it has none."""
    given = seen.history.info.optimizer.get("momentum")
    return float(given) if isinstance(given, (int, float)) and given > 0 else 0.0


def first_step(seen: Sight) -> float:
    """Return the first update by weight as the rate alone made it; 0 if it is not known.

    Nesterov's first step is made as if the second were there already: it is 1 + m times that of
    plain momentum, and both add up to the same.
    """
    typical = seen.layers.typical_update
    known = np.zeros(0) if typical is None else typical[:2][np.isfinite(typical[:2])]
    first = float(known[0]) if len(known) else 0.0
    ahead = seen.history.info.optimizer.get("nesterov") is True
    return first / (1 + momentum(seen)) if ahead else first


def echoes(seen: Sight) -> int:
    """Return the points over which a heavy momentum adds steps up; 1 where it is none."""
    heavy = HEAVY < momentum(seen) < 1
    return min(round(1 / (1 - momentum(seen))), ENDURING) if heavy else 1


def gathered(seen: Sight) -> float:
    """Return what a heavy momentum makes of the first step; 0 if there is none."""
    return first_step(seen) * echoes(seen) if echoes(seen) > 1 else 0.0


def lighter(seen: Sight) -> Fix | None:
    """Ask for a usual momentum where a heavy one makes the steps large; None if it does not.

    A rate made for a heavy momentum takes hundreds of steps to show anything, so the momentum goes
    first, and the rate where first steps, added up, would still change more than a tenth of the
    weights, or a sound step where the loss leapt while no more was added up than a usual momentum
    does. Where the loss rose before the momentum had gathered, the rate is too high without it.
    """
    first, loss = first_step(seen), seen.loss
    if momentum(seen) <= HEAVY or first <= 0 or hold(seen) is not None:
        return None
    ungathered = loss.values[FEW:][:SEVERAL]
    rose = len(ungathered) > 0 and np.median(ungathered) > SLIGHTLY * loss.start
    if rose and momentum(seen) < 1:
        return None
    sound = AIM if _leapt(loss) else ECHO
    slower = sound * (1 - NEARLY) / first
    rate = {"lr_factor": _rounded(slower)} if slower < 1 else {}
    return Fix("lower_momentum", {"value": NEARLY} | rate)


def _leapt(loss: Losses) -> bool:
    """Did the loss leap within the points over which a usual momentum adds steps up, too?"""
    early, first = loss.values[: round(1 / (1 - NEARLY))], loss.values[:FEW]
    return len(early) > FEW and bool(early.max() > _LEAP * max(float(first.max()), 0.0))


def larger(seen: Sight) -> Fix | None:
    """Ask for larger batches, where steps that go too far see a few examples each.

    Noise grows with the rate by the batch (Smith & Le 2018). Where a step sees next to nothing, a
    rate low enough for its noise sees too little within the run. Steps that are too large whatever
    they point at stay so with more examples: then a lower rate is asked for as well. None if
    the rate climbed: noise is not what did the harm then. Nor is it where each example adds to
    the step.
    """
    if not seen.batch or seen.batch > _FEW or is_summed(seen) or momentum(seen) >= 1:
        return None
    first = first_step(seen) * usual_by_first(seen)
    if first <= 0 or hold(seen) is not None:
        return None
    asked = {"factor": _MANY / seen.batch}
    slower = min(AIM, ECHO * (1 - momentum(seen))) / first
    return Fix("larger_batch", asked | ({"lr_factor": _rounded(slower)} if slower < HALF else {}))


def usual_by_first(seen: Sight) -> float:
    """Return the steps that count by the first: RMSprop's first divides by a tenth of the gradient.

    Its later ones come down to a tenth of the first within a hundred; those between do the harm.
    """
    given = seen.history.info.optimizer
    kept = given.get("alpha", given.get("rho"))
    if str(given.get("name", "")).lower() != "rmsprop" or not isinstance(kept, (int, float)):
        return 1.0
    return float(max(1 - kept, 1e-6) ** 0.25)


def to_sound_steps(seen: Sight) -> float:
    """Return the factor that makes a first step, with its momentum, as large as a sound one."""
    return min(SOUND_UPDATE * max(1 - momentum(seen), 0.01) / max(first_step(seen), 1e-30), 0.3)


def is_torn_by_momentum(seen: Sight) -> bool:
    """Does a heavy momentum make of first steps what leaves little of the weights?"""
    return gathered(seen) >= PART  # steps that add up to more leave little of what they were


def untorn(seen: Sight, factor: float) -> float:
    """Return the factor, or less if first steps and momentum still tore the weights."""
    return min(factor, PART * max(1 - momentum(seen), 0.01) / max(first_step(seen), 1e-30))


def hold(seen: Sight) -> Fix | None:
    """Ask for the rate to be held below that of the lowest loss; None if it did not climb since.

    On a ramp the loss is lowest at the edge of what it can follow, so a part of that rate is asked
    for (Smith 2017, Cyclical learning rates, takes one from well before the lowest). A lower first
    value would only put the harm off. Restarts that swell are a ramp as well: the highest rate so
    far counts, not that of the step. Where the rate stood and rose at once while the loss was about
    its lowest, the one before it has proved itself, and is asked for.
    """
    course = levels(seen.loss.values, SHORT)
    if seen.lr is None or not len(course):
        return None
    best = int(seen.loss.steps[int(np.argmin(course)) + SHORT - 1])
    before, after = _height(seen, seen.steps <= best), _height(seen, seen.steps > best)
    if before is None or after is None or after < TWICE * before:
        return None
    at = stepped(seen)
    if at is not None and _was_sound(seen, at, float(course.min())):
        return Fix("fix_schedule", {"hold": float(seen.lr[at - 1])})
    return Fix("fix_schedule", {"hold": _bearable(seen, _HELD * before)})


def _bearable(seen: Sight, rate: float) -> float:
    """Return the rate, or less where a first step at it would change too much of the weights.

    Gradients are largest at the start: what a run bears later says nothing of it. The first rate
    was borne.
    """
    first, step = float("nan") if seen.lr is None else float(seen.lr[0]), first_step(seen)
    if not first > 0 or step <= 0:
        return rate
    return min(rate, max(first, first * ECHO / step))


def points_at_height(seen: Sight) -> float:
    """Return for how many points the rate was at its height, were it either there or nothing."""
    rates = np.zeros(0) if seen.lr is None else np.nan_to_num(seen.lr)
    height = float(rates.max(initial=0.0))
    return float(rates.sum()) / height if height > 0 else float(seen.points)


def stepped(seen: Sight) -> int | None:
    """Return the point at which the rate rose at once, far and to stay; None if it never did.

    It stood before, so that this is no ramp, and had never been near: restarts come back to where
    they were. A slip goes back at once.
    """
    rates = np.zeros(0) if seen.lr is None else np.nan_to_num(seen.lr)
    for at in np.flatnonzero(rates[1:] > THRICE * rates[:-1]) + 1:
        stood, after = rates[max(at - SHORT, 0) : at], rates[at : at + 2 * SHORT]
        steady = len(stood) == SHORT and 0 < stood.max() <= _RISE * stood.min()
        stays = len(after) > FEW and after.min() > rates[at] / TWICE
        if steady and stays and rates[at] > THRICE * rates[:at].max():
            return int(at)
    return None


def _was_sound(seen: Sight, at: int, lowest: float) -> bool:
    """Was the loss still about its lowest when the rate rose?"""
    loss = seen.loss
    before = loss.values[loss.steps <= seen.steps[at]][-SHORT:]
    return len(before) > 0 and np.median(before) - lowest <= SOME * (loss.start - lowest)


def bound(seen: Sight, since: int, sound: float) -> Fix | None:
    """Ask for gradients to be clipped, where first steps were sound and gradients outgrew them.

    Where the rate is what it was, and gradients grew many times as much as the loss did before it
    suffered, something multiplies them (a scale that is never divided out): a lower rate would
    only put the harm off. None if that is not so.
    """
    norms, typical, loss = seen.history.course.global_norm(), seen.layers.typical_update, seen.loss
    if norms is None or typical is None or hold(seen) is not None or momentum(seen) >= 1:
        return None
    first = typical[:SHORT]
    if not np.isfinite(first).all() or float(first.max(initial=0.0)) >= sound:
        return None
    early = (seen.steps < since) & np.isfinite(norms)
    course, height = levels(norms[early], SHORT), levels(loss.values[loss.steps < since], SHORT)
    if len(course) <= SHORT or not len(height):
        return None
    lowest = float(course[:-SHORT].min())
    rise = float(height[-1] / max(float(height.min()), 1e-300))
    # Gradients of a healthy run grow about as it does.
    if lowest <= 0 or float(course[-1]) < THRICE * max(rise, 1.0) * lowest:
        return None
    return Fix("clip_gradients", {"max_norm": float(f"{lowest:.3g}")})


def _height(seen: Sight, chosen: Any) -> float | None:
    """Return the highest rate of some points that was no slip of a step or two."""
    rates = np.zeros(0) if seen.lr is None else seen.lr[chosen]
    rates = np.sort(rates[np.isfinite(rates)])
    return float(rates[-FEW]) if len(rates) >= FEW and rates[-FEW] > 0 else None


def is_summed(seen: Sight) -> bool:
    """Is the first loss larger than a mean can be, with weights of a usual size?

    Without classes, a squared error of about one and the square of the output is what scaled
    targets cost an example.
    """
    loss, batch, scales = seen.loss, seen.batch, initial_scales(seen.layers)
    if not batch or batch < 4 or not len(scales) or np.nanmax(scales) > TWICE or not loss.n:
        return False
    first, outputs = float(loss.values[0]), mean_square(seen)
    if loss.chance is not None and loss.spread is not None:
        # Several outputs need not be classes: their squares are what an error of them may be.
        return not loss.is_of_outputs and first > THRICE * (1 + (outputs or 0.0))  # about the same
    return (
        loss.chance is None
        and outputs is not None
        and batch >= 16
        and 1 / THRICE < first / batch / (1 + outputs) < THRICE
    )


def mean_square(seen: Sight) -> float | None:
    """Return about the mean square of the first outputs: a batch spans some five deviations."""
    output: Any = seen.history.fact("output")
    if not isinstance(output, dict):
        return None
    low, high = output.get("min"), output.get("max")
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return None
    mean, deviation = float(low / 2 + high / 2), float((high - low) / 5)
    return mean * mean + deviation * deviation  # powers of what is too large raise, products do not
