"""What drives weights away by itself, before a trend shows it: each told with its cause."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runs import Fix, RunFinding
from ..signs.decay import penalty_by
from ..signs.radial import multiplied, swelling
from ..signs.raising import sound_height
from ..signs.rates import is_torn_by_momentum
from ..signs.sight import Sight
from ..signs.wording import above, finding
from .stairs import stairs


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
    return [
        finding(
            "diverging",
            "critical",
            f"the learning rate is below zero since step {since} ({float(rates[-1]):.3g} now): "
            "steps climb the loss",
            {"lr": float(rates[-1]), "highest_lr": height},
            since=since,
            cause="the schedule was made for fewer steps and has no end",
            advice=["give the schedule the number of steps of this run",
                    "let the rate end at a floor above zero"],
            signs=[1.0],
            fix=Fix("fix_schedule", {"hold": sound_height(seen)} if height > 0 else {}),
        )
    ]  # fmt: skip


def _multiplied(seen: Sight) -> list[RunFinding]:
    """Find weights that grow by more than all their steps together: something multiplies them."""
    found = multiplied(seen)
    if found is None:
        return []
    return [
        finding(
            "diverging",
            "critical",
            f"the weights grow by {found.per_step:.1%} a step, more than their steps can make: "
            "nothing ends that",
            {"growth_a_step": found.per_step, "weights_by_first": found.times},
            since=found.since,
            cause="something beside the optimiser multiplies the weights: a decay written by hand "
            "with the wrong sign",
            advice=["look for code that changes weights behind step(), and leave it out",
                    "let the optimiser do the weight decay"],
            signs=[1.0],
            fix=Fix("leave_weights"),
        )
    ]  # fmt: skip


def _swelling(seen: Sight) -> list[RunFinding]:
    """Find weights that grow exponentially along themselves: no gradient of data does that."""
    found = swelling(seen)
    if found is None or is_torn_by_momentum(seen):
        return []  # what a heavy momentum threw goes on along itself
    return [
        finding(
            "diverging",
            "warning",
            f"every step makes the weights larger by {found.per_step:.1%}, along "
            f"themselves (cosine {found.cosine:.2f}), and the loss no longer falls; they are "
            f"{found.times:.3g} times their first size",
            {"growth_a_step": found.per_step, "cosine": found.cosine, "weights_by_first":
             found.times},
            since=found.since,
            layers=seen.layers.named(largest(seen)),
            cause="a part of the loss that depends on the weights alone grows them: a penalty with "
            "the wrong sign, or a decay below zero",
            advice=["turn the sign of the penalty on the weights, or leave it out",
                    "check that the weight decay is not negative"],
            signs=[found.cosine],
            fix=penalty_by(seen, -found.per_step),
        )
    ]  # fmt: skip


def _scaled_up(seen: Sight) -> list[RunFinding]:
    """Find gradients that are doubled again and again: a loss scale that is not divided out."""
    found = stairs(seen)
    if found is None:
        return []
    return [
        finding(
            "diverging",
            "warning",
            f"every {found.interval} steps all gradients become {found.factor:.2g} times as large "
            "at once, and the steps with them, while the loss stays: nothing ends that",
            {"interval": found.interval, "factor": found.factor},
            since=found.since,
            cause="the loss is multiplied by a scale that grows (made for half precision), and "
            "gradients are not divided by it before the step",
            advice=["divide the gradients by the scale of the loss before step(): unscale_()",
                    "let scaler.step() take the step", "keep the scale at one number"],
            signs=[above(found.factor, 1.0)],
            fix=Fix("unscale_gradients"),
        )
    ]  # fmt: skip
