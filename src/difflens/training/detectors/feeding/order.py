"""Examples in sorted order, and examples that are others since a step."""

from __future__ import annotations

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import FAR, HALF, HARDLY, SEVERAL, SHORT, SOME, TWICE
from ..signs.held_back import held_back_loss
from ..signs.leaps import SOON, Leap, leap, stays_out, update_before
from ..signs.limits import Limits
from ..signs.losses import Losses, levels
from ..signs.outliers import outlier, was_sound
from ..signs.outputs import explained
from ..signs.sawtooth import sawtooth
from ..signs.sight import Sight
from ..signs.succession import Succession, goes_apart, succession
from ..signs.wording import above, finding
from ..signs.writes import writes

_NEXT = 1  # steps between a write to the weights and what the loss makes of it
_AGAIN = 2  # how often a rate comes back at once: restarts of a schedule
_AROUND = 4  # points on either side of a look


def in_order(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find what sorted examples make of a loss: a sawtooth, or neighbours that cost alike."""
    return _sawtooth(seen, limit) or _succeed(seen, limit)


def _succeed(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find batches whose loss tells that of the next, or of the one that comes a period later."""
    found = succession(seen.loss) if seen.loss.n >= limit["order_points"] else None
    if found is None or _rate_rises(seen) or _steps_are_large(seen, limit):
        return []
    if seen.loss.values[seen.loss.n // 2 :].max() < HARDLY * seen.loss.size:
        return []  # what is forgotten costs something again: these are swings of next to nothing
    told = _repeats(found, limit) or _wanders(seen, found, limit)
    if not told:
        return []
    return finding(
        "data",
        "warning",
        f"the loss goes up and down with batches that cost like their neighbours, and {told}",
        {
            "memory": found.memory,
            "memory_threshold": limit["memory"],
            "repeats": found.repeats,
            "repeats_threshold": limit["repeats"],
            "period": found.period,
            "spread": found.spread,
            "swings": found.swings,
        },
        since=int(seen.loss.steps[0]),
        cause="the examples come in an order (by label, target, length or time): what one "
        "stretch teaches is forgotten in the next",
        advice=["shuffle the examples (shuffle=True in the loader)"],
        signs=[above(max(found.memory, found.repeats), limit["memory"] / 2)],
        fix=Fix("shuffle"),
    )


def _repeats(found: Succession, limit: Limits) -> str:
    """Say so where the same ups and downs come again and again: an epoch is as long."""
    if found.repeats < limit["repeats"] or found.memory < limit["neighbours"]:
        return ""
    if found.spread < limit["spread"]:
        return ""  # batches drawn once and for all repeat themselves too, and differ little
    return f"repeats itself every {found.period} steps"


def _wanders(seen: Sight, found: Succession, limit: Limits) -> str:
    """Say so where it swings far and the held-back loss does not go along."""
    held_back = held_back_loss(seen.history)
    if held_back is None or found.memory < limit["memory"] or found.swings < limit["swings"]:
        return ""
    if goes_apart(seen.loss, held_back) < limit["goes_apart"]:
        return ""
    beyond = _beyond(seen.loss, held_back) >= limit["goes_beyond"]
    return "the held-back loss does not go along" if beyond else ""


def _beyond(loss: Losses, held_back: Losses) -> float:
    """Return ln of the spread of held-back losses beyond all training losses around them.

    A step that throws the weights throws both, and within a few points both come back: a look in
    the midst of it is far from their mean, yet within what training cost just before and after.
    The examples of one stretch cost what others do not, for as long as the stretch lasts.
    """
    late = held_back.steps >= loss.steps[loss.n // SEVERAL]  # the first fifth
    places = np.searchsorted(loss.steps, held_back.steps[late], "right")
    known = places + _AROUND <= loss.n  # what comes after the last look is not known yet
    if int(known.sum()) < SEVERAL:
        return 0.0
    around = [loss.values[max(at - _AROUND, 0) : at + _AROUND] for at in places[known]]
    values = held_back.values[late][known]
    within = np.clip(values, [each.min() for each in around], [each.max() for each in around])
    off = np.log(values / within)
    along = np.arange(len(off))
    return float((off - np.polyval(np.polyfit(along, off, 1), along)).std())


def _steps_are_large(seen: Sight, limit: Limits) -> bool:
    """Do steps change the weights by so much that they move the loss by themselves?"""
    return seen.layers.usual_update > limit["fastest"]


def _rate_rises(seen: Sight) -> bool:
    """Does the learning rate rise again? Restarts and cycles move the loss by themselves."""
    rates = seen.lr
    if rates is None:
        return False
    late = rates[len(rates) // 5 :]
    late = late[np.isfinite(late)]
    return bool((np.diff(late) > 1e-3 * np.abs(late[:-1])).any())


def _sawtooth(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a loss that falls and jumps up again and again."""
    found = sawtooth(seen.loss)
    if found is None or found.jumps < limit["jumps"] or _is_thrown(seen.loss):
        return []
    if found.skewness < limit["skew"] / (2 if found.is_regular else 1) or _restarts(seen):
        return []
    return finding(
        "data",
        "critical",
        f"the loss is a sawtooth: it falls, and jumped up again {found.jumps} times, "
        f"about every {found.period:.3g} steps",
        {
            "jumps": found.jumps,
            "jumps_threshold": limit["jumps"],
            "skewness": found.skewness,
            "skew_threshold": limit["skew"],
            "memory": found.memory,
            "period": found.period,
        },
        since=found.since,
        cause="the examples come in sorted order: each stretch of one class is learned by "
        "forgetting the one before",
        advice=["shuffle the examples (shuffle=True in the loader)"],
        signs=[above(found.skewness, limit["skew"] / 2)],
        fix=Fix("shuffle"),
    )


def _restarts(seen: Sight) -> bool:
    """Does the learning rate come back at once, again and again? Then each restart is a tooth."""
    rates = seen.rates
    return int((rates[1:] > TWICE * np.abs(rates[:-1])).sum()) >= _AGAIN


def _is_thrown(loss: Losses) -> bool:
    """Did it leap beyond what answers that are sure and wrong cost? Then a step threw it."""
    return float(loss.values.max()) > FAR * max(loss.size, loss.chance or 0.0)


def _is_constant(seen: Sight, found: Leap | None, limit: Limits) -> bool:
    """Do a regression's outputs explain nothing any more, that explained most before the leap?

    Where it began says little of such a loss: targets far from zero cost much at first.
    """
    if found is None or seen.loss.chance is not None:
        return False
    before, now = explained(seen, until=found.step), explained(seen)
    if before is None or now is None:
        return False
    return before > HALF and now < limit["explained"]


def _all_get_gradients(seen: Sight, found: Leap) -> bool:
    """Did gradients reach all layers where the loss leapt that they reached before?

    Units that die let none through at once. What a leap throws may die later, and what was dead
    long before did not lift the loss.
    """
    gradients = seen.layers.gradient
    if gradients is None:
        return False
    place = int(np.searchsorted(seen.steps, found.step))
    known = gradients[:, seen.layers.trained]
    reached = (known[max(place - SHORT, 0) : place] > 0).all(axis=0)
    # Of a few units one batch may reach none.
    now = known[place : place + 2, reached]
    return bool(reached.any() and (now > 0).any(axis=0).all())


def _was_sound(loss: Losses, found: Leap) -> bool:
    """Had it learned before the leap, and lost nothing of it?

    Also where first steps threw it far above guessing: what is learned is learned by that.
    """
    course = levels(loss.values[: found.at], SHORT)
    late, lowest = float(course[-1]), float(course.min())
    taught = late < HALF * abs(loss.reference) and late - lowest < SOME * abs(loss.reference)
    return taught or was_sound(loss, found.step - 1)


def _untaught(loss: Losses) -> float:
    """Return what a loss costs that nothing is learned of, by its start.

    First outputs that are too large cost more than guessing, and the loss need not go back there.
    """
    if loss.chance is None or loss.start <= 0:
        return 1.0
    return min(loss.chance / loss.start, 1.0)


def changed(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a loss that leapt where no step was large, and stays out: what comes in is new to it.

    One bad batch leaves the loss as it was. What explodes goes on growing. Weights that a large
    step threw away had that step before the leap. Units that died let no gradient through.
    """
    loss = seen.loss
    found = leap(loss, limit) if loss.start > 0 else None
    level = 0.0 if _is_constant(seen, found, limit) else limit["level"] * _untaught(loss)
    if found is None or not stays_out(loss, found.at, int(limit["stay"]), level):
        return []
    grows = float(np.median(loss.values[found.at :][-4:])) > 2 * float(loss.values[found.at])
    size, _, _ = update_before(seen, found.step)
    if grows or size is None or size > limit["usual"] or not _all_get_gradients(seen, found):
        return []
    if any(abs(each.step - found.step) <= _NEXT for each in writes(seen)):
        return []  # the weights are others, not what comes in
    struck = outlier(seen)
    if struck is not None and 0 <= found.step - struck.step <= SOON:
        return []  # one batch threw the weights, and those behind it are as they were
    return finding(
        "data",
        "warning",
        f"the loss leapt at step {found.step} to {found.height:.3g} times the highest before "
        f"and stays out, and no step before it was larger than usual",
        {
            "height_by_highest": found.height,
            "rise_threshold": limit["rise"],
            "deviations": found.deviations,
            "deviations_threshold": limit["deviations"],
            "update_by_usual": size,
            "usual_threshold": limit["usual"],
            "points_out": limit["stay"],
            "sound_before": _was_sound(loss, found),
        },
        since=found.step,
        cause="what the model is given has changed at that step: other inputs, another "
        "scale, labels that no longer belong to them, or a loss that is made otherwise",
        advice=[
            f"compare a batch from before step {found.step} with one from after it",
            "check what the loop or the loader changes there",
        ],
        signs=[above(found.deviations, limit["deviations"])],
        fix=Fix("check_labels"),
    )
