"""What to do where a model learned its data by heart: stop, get more, or look at what it is given.

Chosen by what the best held-back loss is worth: stopping there gives no more than that.
"""

from __future__ import annotations

import numpy as np

from ...records.runs import Fix
from ..signs.degrees import ALMOST, FIVEFOLD, HARDLY, SEVERAL
from ..signs.losses import Losses
from .causes import Cause
from .scarcity import WORTHLESS, get_more, too_little

_CONTRARY, _BEYOND = 1.8, 1.3  # best held-back loss by guessing: far worse; by the start: beyond
_CUSTOMARY, _SMALL = (8, 25), (10, 20)  # batches are multiples of these, or these
_CAUSE = "the model is large beside the data and nothing holds it back"
_OR_THE_SAME = ", or it is given the same few examples again and again"
_NEW_BATCHES = "check that every batch is a new one"
_ONE_BATCH = Cause(
    "every step costs as the one before would make it: the same few examples are given again and "
    "again, and what is learned of them says next to nothing of others",
    [
        "check that every batch is a new one, and that the loader is shuffled and moves on",
        "get more data, where these are all there is",
    ],
    Fix("shuffle"),
)
_OTHERS = Cause(
    "held-back data was answered worse than by guessing as soon as anything was learned: its "
    "labels are made otherwise (targets that are not shifted, other classes, a leak in training)",
    [
        "look at examples of both with their labels, as the model gets them",
        "check that training does not show the answer among the inputs",
    ],
    Fix("check_labels"),
)


def unlearned(loss: Losses) -> float:
    """Return what it costs to know nothing: weights that were trained before begin far below it."""
    level = loss.chance if loss.is_learned and loss.chance else loss.reference
    return max(abs(level), 1e-300)


def remedy(loss: Losses, held_back: Losses, batch: int | None, harmless: float) -> Cause:
    """Choose what to do by what the best held-back loss is worth: stopping there gives no more."""
    best = int(np.argmin(held_back.values))
    worth = float(held_back.values[best]) / max(abs(loss.reference), 1e-300)
    few = too_little(loss, held_back, unlearned(loss), harmless)
    if _has_no_noise(loss) and (few or worth > WORTHLESS):
        if _is_all_there_is(batch):
            return get_more(loss, held_back, unlearned(loss), harmless)
        return _ONE_BATCH
    # First outputs that are large cost more than guessing, and held-back data as much for a while.
    if worth > _CONTRARY and float(held_back.values[best]) > _BEYOND * loss.start:
        return _OTHERS
    return few or stopping(_where_to_stop(loss, held_back, best))


def stopping(step: int) -> Cause:
    """Tell to stop at a step."""
    advice = [
        f"keep the weights of step {step} (stop early)",
        "add dropout or weight decay",
        "get more data, or augment what there is",
    ]
    return Cause(_CAUSE, advice, Fix("stop_early", {"step": step}))


def or_the_same(cause: Cause) -> Cause:
    """Add that it may be one batch again and again, where a held-back loss rests."""
    if cause is _ONE_BATCH:
        return cause
    return Cause(cause.cause + _OR_THE_SAME, [_NEW_BATCHES, *cause.advice], cause.fix)


def _has_no_noise(loss: Losses) -> bool:
    """Does it fall at every step, by nearly as much as at the one before?

    Batches that differ cost differently.
    """
    half = np.log(np.maximum(loss.values[: loss.n // 2], 1e-300))
    falls = np.diff(half)
    if len(falls) < 2:
        return False
    return bool((falls < 0).mean() > ALMOST and np.median(np.abs(np.diff(falls))) < HARDLY)


def _is_all_there_is(batch: int | None) -> bool:
    """Has a batch a size that nobody chooses? Then the examples were too few to fill one."""
    return batch is not None and batch not in _SMALL and all(batch % each for each in _CUSTOMARY)


def _where_to_stop(loss: Losses, held_back: Losses, best: int) -> int:
    """Return the step of the best held-back loss, or guess it where that was before the first look.

    A first value that the training loss had left far behind is past the best already. Nor was it
    better before the training loss had come down to it, since that is the lower of the two: the
    best lies in between.
    """
    step, value = int(held_back.steps[best]), float(held_back.values[best])
    before = loss.steps <= step
    if not before.any():
        return step
    if best or value < FIVEFOLD * float(np.mean(loss.values[before][-SEVERAL:])):
        return step
    down = np.flatnonzero(loss.values[before] <= value)
    since = int(loss.steps[down[0]]) if len(down) else step
    return max((since + step) // 2, 1)
