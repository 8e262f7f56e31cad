"""Why sound steps teach nothing: wrong labels, examples that are mixed up, a loss that broadcasts.

A network that gets each example with a wrong label learns some of them by heart, so that its
training loss parts from the held-back loss, which rises. One that gets no example whole (axes
swapped, batches mixed, augmentation that leaves nothing) cannot even do that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...records.runs import Fix
from ..pairing.shapes import pull_apart
from ..signs.degrees import FEW, HARDLY, MOST
from ..signs.held_back import held_back_loss
from ..signs.losses import Losses, levels, output_shape
from ..signs.outputs import explained
from ..signs.sight import Sight

_PARTS = 0.985  # training loss by held-back loss: below, some of it is learned by heart
_TOLD, _RISES = 0.99, 1.01  # held-back loss by guessing, and its latter half by its first


class Cause(NamedTuple):
    """What to tell, and what to do."""

    cause: str
    advice: list[str]
    fix: Fix


_LABELS = Cause(
    "the labels do not depend on the inputs: shuffled apart, joined by a wrong key, plain noise, "
    "or paired with every example by a loss that broadcasts",
    [
        "look at some examples with their labels, as the model gets them",
        "check that outputs and targets have one shape: a column and a row broadcast",
        "check that inputs and labels are shuffled together",
    ],
    Fix("check_labels"),
)
_EXAMPLES = Cause(
    "hardly anything is learned, and nothing by heart: what reaches the output is not the example "
    "that the label belongs to (a reshape for a transpose, batch and time swapped, augmentation "
    "that leaves nothing), or labels are drawn anew each time",
    [
        "follow one example with its label through augmentation and every reshape of the model",
        "give it alone and within a batch: in evaluation mode the outputs must be the same",
        "look at some examples with their labels, as the model gets them",
    ],
    Fix("follow_example"),
)
_SHAPES = Cause(
    "every output is the mean of all targets: a column and a row broadcast in the loss, so that "
    "each answer is held against every target",
    ["check that outputs and targets have one shape", "look at some examples with their targets"],
    Fix("match_shapes"),
)


def why_nothing_is_learned(seen: Sight) -> Cause:
    """Choose the cause by what the run shows beside the loss that stands."""
    loss, held_back = seen.loss, held_back_loss(seen.history)
    if loss.chance is None:
        part = explained(seen)
        constant = part is not None and part < HARDLY
        shapes = constant and _has_one_column(seen) and not _was_better(seen)
        return _SHAPES if shapes and not pull_apart(seen) else _LABELS
    if held_back is None or held_back.n < FEW:
        return _LABELS
    now = loss.mean_now
    level = float(np.mean(held_back.values[-FEW:]))
    return _EXAMPLES if now > _PARTS * level or _some_holds(held_back, loss.reference) else _LABELS


def _some_holds(held_back: Losses, usual: float) -> bool:
    """Is held-back data answered a little better than by guessing, and no worse late than early?

    Who learns wrong labels by heart is sure and wrong elsewhere, so that the held-back loss rises
    as the training loss falls. Where it keeps a little, a little of each example gets through.
    """
    half = held_back.n // 2
    early, late = (float(np.median(each)) for each in np.split(held_back.values, [half]))
    return late < min(_TOLD * usual, _RISES * early)


def _was_better(seen: Sight) -> bool:
    """Was the loss far lower for a while? Shapes are wrong from the start, or never."""
    course = levels(seen.loss.values, seen.loss.width)
    return len(course) > 0 and float(course.min()) < MOST * seen.loss.now


def _has_one_column(seen: Sight) -> bool:
    return output_shape(seen.history)[-1:] == (1,)
