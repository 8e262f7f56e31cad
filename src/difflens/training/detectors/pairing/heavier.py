"""A term of the loss that is made many times heavier at some step: it is not the outputs' term.

What the outputs cost comes back through the output layer, whatever inputs or labels are. Where the
loss leaps and the gradient there is as it was, while layers below get many times theirs, the leap
comes of a term that hangs on these alone: a prior on a code, a penalty on activations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from difflens.core.policy import Policy

from ...records.runs import Fix, RunFinding
from ..signs.degrees import FIVEFOLD, RECENT, SEVERAL, THRICE, TWICE
from ..signs.leaps import LEAP, leap, update_before
from ..signs.limits import Limits
from ..signs.sight import Sight
from ..signs.wording import above, finding

_LIMITS = Limits("loss-pairing", Policy(), LEAP)  # as of every leap, whatever is set for others


class Heavier(NamedTuple):
    """The step, the layers whose gradients leapt, by how much, and what the output layer's did."""

    step: int
    layers: list[str]
    times: float
    output: float
    height: float


def heavier(seen: Sight) -> list[RunFinding]:
    """Find a loss that leaps and stays out, though the outputs cost what they did."""
    found = _heavier(seen)
    if found is None:
        return []
    factor = 1 / found.times
    return finding(
        "loss-pairing",
        "warning",
        f"the loss leapt at step {found.step} to {found.height:.3g} times the highest before, "
        f"and so did the gradient of {found.layers[0]} ({found.times:.3g} times the usual); "
        f"that of the output layer did not ({found.output:.2g})",
        {
            "height_by_highest": found.height,
            "gradient_by_usual": found.times,
            "output_gradient_by_usual": found.output,
        },
        since=found.step,
        cause="a term of the loss that does not hang on the outputs (a prior, a penalty) "
        "weighs many times what it did since then",
        advice=[
            f"weigh that term by {factor:.2g} of what it has since then",
            f"check what changes the weights of the loss at step {found.step}",
            "print each term of the loss by itself",
        ],
        signs=[above(found.times, FIVEFOLD / 2)],
        layers=found.layers,
        fix=Fix("scale_penalty", {"factor": factor}),
    )


def _heavier(seen: Sight) -> Heavier | None:
    found = leap(seen.loss, _LIMITS) if seen.loss.start > 0 else None
    gradients = seen.history.course.field("grad_l2")
    if found is None or gradients is None or seen.loss.n < found.at + SEVERAL:
        return None
    highest = float(seen.loss.values[max(found.at - RECENT, 0) : found.at].max())
    if float(seen.loss.values[found.at :][-SEVERAL:].min()) <= highest:
        return None
    size, _, _ = update_before(seen, found.step)
    place = int(np.searchsorted(seen.steps, found.step))
    times = _times(gradients, place)
    if size is None or size > THRICE or times is None:  # more, and a step did it
        return None
    layers = seen.history.info.layers
    weights = [
        i
        for i, each in enumerate(layers)
        if each.trainable and each.role == "weight" and np.isfinite(times[i])
    ]
    if len(weights) < 2 or times[weights[-1]] > TWICE:
        return None
    leapt = sorted((i for i in weights if times[i] > FIVEFOLD), key=lambda i: -times[i])
    if not leapt:
        return None
    names = [layers[i].name for i in leapt]
    return Heavier(
        found.step, names, float(np.median(times[leapt])), float(times[weights[-1]]), found.height
    )


def _times(gradients: Any, place: int) -> Any | None:
    """Return each gradient at a point by the usual one before it."""
    before = gradients[max(place - RECENT, 0) : place]
    if len(before) < RECENT or place >= len(gradients):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return gradients[place] / np.median(before, axis=0)
