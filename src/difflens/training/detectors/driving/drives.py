"""What drives weights away by itself, before a trend shows it: each told with its cause."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...records.runs import Fix, RunFinding
from ..signs.decay import penalty_by
from ..signs.degrees import FEW, HALF, MOST, RECENT, SEVERAL
from ..signs.layers import median
from ..signs.radial import multiplied, swelling
from ..signs.raising import sound_height
from ..signs.rates import is_torn_by_momentum
from ..signs.sight import Sight
from ..signs.wording import above, finding


def driven(seen: Sight) -> list[RunFinding]:
    """Find a rate below zero, or what makes weights or steps grow whatever the data say."""
    return _turned(seen) or _multiplied(seen) or _swelling(seen) or _scaled_up(seen)


def largest(seen: Sight) -> Any:
    """Order the matrices by their latest updates, the largest first."""
    updates = seen.layers.recent(seen.layers.update, 10)
    return [] if updates is None else np.argsort(-np.nan_to_num(updates), kind="stable")[:10]


def _turned(seen: Sight) -> list[RunFinding]:
    """Find a learning rate below zero: from there on each step climbs the loss."""
    rates = np.zeros(0) if seen.lr is None else np.nan_to_num(seen.lr)
    below = np.flatnonzero(rates < 0)
    if not len(below):
        return []
    since = int(seen.steps[below[0]])
    height = float(rates.max())
    return finding(
        "diverging",
        "critical",
        f"the learning rate is below zero since step {since} ({float(rates[-1]):.3g} now): "
        "steps climb the loss",
        {"lr": float(rates[-1]), "highest_lr": height},
        since=since,
        cause="the schedule was made for fewer steps and has no end",
        advice=[
            "give the schedule the number of steps of this run",
            "let the rate end at a floor above zero",
        ],
        signs=[1.0],
        fix=Fix("fix_schedule", {"hold": sound_height(seen)} if height > 0 else {}),
    )


def _multiplied(seen: Sight) -> list[RunFinding]:
    """Find weights that grow by more than all their steps together: something multiplies them."""
    found = multiplied(seen)
    if found is None:
        return []
    return finding(
        "diverging",
        "critical",
        f"the weights grow by {found.per_step:.1%} a step, more than their steps can make: "
        "nothing ends that",
        {"growth_a_step": found.per_step, "weights_by_first": found.times},
        since=found.since,
        cause="something beside the optimiser multiplies the weights: a decay written by hand "
        "with the wrong sign",
        advice=[
            "look for code that changes weights behind step(), and leave it out",
            "let the optimiser do the weight decay",
        ],
        signs=[1.0],
        fix=Fix("leave_weights"),
    )


def _swelling(seen: Sight) -> list[RunFinding]:
    """Find weights that grow exponentially along themselves: no gradient of data does that."""
    found = swelling(seen)
    if found is None or is_torn_by_momentum(seen):
        return []  # what a heavy momentum threw goes on along itself
    return finding(
        "diverging",
        "warning",
        f"every step makes the weights larger by {found.per_step:.1%}, along "
        f"themselves (cosine {found.cosine:.2f}), and the loss no longer falls; they are "
        f"{found.times:.3g} times their first size",
        {"growth_a_step": found.per_step, "cosine": found.cosine, "weights_by_first": found.times},
        since=found.since,
        layers=seen.layers.named(largest(seen)),
        cause="a part of the loss that depends on the weights alone grows them: a penalty with "
        "the wrong sign, or a decay below zero",
        advice=[
            "turn the sign of the penalty on the weights, or leave it out",
            "check that the weight decay is not negative",
        ],
        signs=[found.cosine],
        fix=penalty_by(seen, -found.per_step),
    )


def _scaled_up(seen: Sight) -> list[RunFinding]:
    """Find gradients that are doubled again and again: a loss scale that is not divided out."""
    found = stairs(seen)
    if found is None:
        return []
    return finding(
        "diverging",
        "warning",
        f"every {found.interval} steps all gradients become {found.factor:.2g} times as large "
        "at once, and the steps with them, while the loss stays: nothing ends that",
        {"interval": found.interval, "factor": found.factor},
        since=found.since,
        cause="the loss is multiplied by a scale that grows (made for half precision), and "
        "gradients are not divided by it before the step",
        advice=[
            "divide the gradients by the scale of the loss before step(): unscale_()",
            "let scaler.step() take the step",
            "keep the scale at one number",
        ],
        signs=[above(found.factor, 1.0)],
        fix=Fix("unscale_gradients"),
    )


# A scale of the loss that grows by itself (made for half precision) is divided out before a step.
# One that is not makes stairs: all gradients rise at one step by a factor, and stay there until the
# next. What learning does to gradients comes gradually, and shows in the loss.

_USUAL = (0.75, 1.7)  # of each rise in powers of two, and of their mean: a doubling
_UNMOVED = 1.0  # powers of two by which the loss may differ


class Stairs(NamedTuple):
    """The steps between two rises, the step of the first, and the factor of a rise."""

    interval: int
    since: int
    factor: float


def stairs(seen: Sight) -> Stairs | None:
    """Find gradients of all layers that rise by a factor at a fixed interval, and steps with them.

    Gradients of a batch grow about as the root of its loss, so that is taken out of them.
    """
    gradients, losses, steps = _logs(seen)
    sizes = np.arange(RECENT, int(len(losses) / (FEW + 0.5)) + 1)
    if not len(sizes):
        return None
    levels, half = median(gradients, axis=1) - losses / 2, sizes // 2
    rises, between = _changes(levels, sizes, half)
    sudden, moved, taken = (
        _changes(values, sizes, width)[0]
        for values, width in ((levels, np.full_like(sizes, SEVERAL)), (losses, half), (steps, half))
    )
    mean = rises.mean(axis=1)
    found = np.minimum(rises, sudden).min(axis=1) > HALF  # a doubling
    found &= (mean > _USUAL[0]) & (mean < _USUAL[1]) & (np.abs(moved).max(axis=1) < _UNMOVED)
    found &= (taken.min(axis=1) > 0) & (taken.mean(axis=1) > HALF)
    flat = np.where(found, HALF * mean - np.abs(between).mean(axis=1), -np.inf)
    best = int(np.argmax(flat))
    size = int(sizes[best])
    if flat[best] <= 0 or not _shows(gradients - losses[:, None] / 2, size):
        return None
    first = int(seen.steps[size])
    return Stairs(first - int(seen.steps[0]), first, float(2 ** mean[best]))


def _shows(levels: NDArray[Any], size: int) -> bool:
    """Do most matrices show each rise?"""
    sizes = np.array([size])
    rises = [_changes(each, sizes, sizes // 2)[0].min() > 0 for each in levels.T]
    return float(np.mean(rises)) >= MOST


def _logs(seen: Sight) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return log2 of matrices' gradients, losses and typical steps, up to the first gap."""
    gradients, updates = seen.layers.field("grad_l2"), seen.layers.field("update_l2")
    losses, chosen = seen.history.course.scalar("loss"), seen.layers.trained
    if gradients is None or updates is None or losses is None or not chosen.any():
        return np.zeros((0, 0)), np.zeros(0), np.zeros(0)
    with np.errstate(all="ignore"):
        logs = np.log2(gradients[:, chosen].astype(np.float64))
        steps = np.log2(median(updates[:, chosen].astype(np.float64), axis=1))
        heights = np.log2(np.abs(losses))
    sound = np.isfinite(logs).all(axis=1) & np.isfinite(heights) & np.isfinite(steps)
    end = len(sound) if sound.all() else int(np.argmin(sound))
    return logs[:end], heights[:end], steps[:end]


def _changes(
    values: NDArray[Any], sizes: NDArray[Any], width: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the change of the values across each rise, and from the start to just before it."""
    summed = np.concatenate([[0.0], np.cumsum(values)])
    at, width = sizes[:, None] * np.arange(1, FEW + 1), width[:, None]
    before = (summed[at] - summed[at - width]) / width
    after = (summed[at + width] - summed[at]) / width
    start = (summed[at - sizes[:, None] + width] - summed[at - sizes[:, None]]) / width
    return after - before, before - start
