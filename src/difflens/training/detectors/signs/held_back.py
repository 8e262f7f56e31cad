"""What the loss on held-back data says of whether anything is learned at all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...history.history import History
from ...records.runs import VALIDATION_LOSSES
from .degrees import (
    ALMOST,
    CLEARLY,
    FEW,
    HALF,
    MOST,
    NEARLY,
    SEVERAL,
    SHORT,
    TENFOLD,
    THRICE,
    TWICE,
)
from .limits import Limits
from .losses import Losses

_SOURED = 1.3  # times its best


class Behind(NamedTuple):
    """How high a held-back loss rests: itself, by the training loss, and by where that began."""

    level: float
    gap: float
    share: float


def held_back_loss(history: History) -> Losses | None:
    """Return the held-back loss under the first known name; None if it is never finite."""
    found = history.scalars.first_scalar(VALIDATION_LOSSES)
    loss = None if found is None else Losses.of(history, found[0])
    return loss if loss is not None and loss.n else None


def is_blind(held_back: Losses | None, loss: Losses, limit: Limits) -> bool:
    """Was held-back data never told better than by guessing, and does it not get better?

    A slow start looks the same for a while: there held-back and training loss fall together. So
    the best held-back value must lie back, or the training loss must have left it behind.
    """
    if held_back is None or held_back.n < limit["blind_values"] or loss.chance is None:
        return False
    if not 0.9 * loss.chance <= loss.start <= 10 * loss.chance:
        return False
    values = held_back.values
    if values.min() <= limit["blind"] * loss.chance:
        return False
    return int(np.argmin(values)) <= len(values) - 3 or is_by_heart(held_back, loss, limit)


def is_by_heart(held_back: Losses | None, loss: Losses, limit: Limits) -> bool:
    """Did the training loss leave a held-back loss behind that is no better than guessing?"""
    if held_back is None or held_back.n < limit["blind_values"] or loss.chance is None:
        return False
    values = held_back.values
    if values.min() <= limit["blind"] * loss.chance or _gets_better(values):
        return False
    # Of the same time: between two held-back values a run that learns gets far.
    then = loss.values[loss.steps <= held_back.steps[-1]][-10:]
    return bool(np.median(then) < limit["blind_gap"] * held_back.values[-1])


def _gets_better(values: NDArray[Any]) -> bool:
    """Is each look better than the one before? What is learned by heart makes them worse.

    Held-back data may cost more all along, and more than guessing among the outputs: where it is
    measured among more answers than a batch has.
    """
    return len(values) > 1 and bool((values[1:] < ALMOST * values[:-1]).all())  # it gets better


def is_flat(held_back: Losses | None, limit: Limits) -> bool:
    """Has the held-back loss, which has no noise of batches, not moved since it is measured?"""
    if held_back is None or held_back.n <= limit["blind_values"]:
        return False
    first = float(held_back.values[0])
    return first > 0 and first - float(held_back.values.min()) < limit["flat"] * first


def is_on_its_way(held_back: Losses | None, loss: Losses) -> bool:
    """Is it below guessing, and lower at every one of the last looks? Then something is learned."""
    if held_back is None or held_back.n < SEVERAL or loss.chance is None:
        return False
    last = held_back.values[-SEVERAL:]
    return bool(last[-1] < ALMOST * loss.chance and (np.diff(last) < 0).all())


def has_followed(loss: Losses, held_back: Losses) -> bool:
    """Was the held-back loss ever below where the training loss began?"""
    share = ALMOST if _begins_at_guessing(loss) else NEARLY
    return held_back.n > 0 and float(held_back.values.min()) < share * abs(loss.reference)


def has_stayed(loss: Losses, held_back: Losses) -> bool:
    """Was it about where training began, where nobody knows what guessing costs?

    Without classes that is what targets vary by, in the few examples that are trained on more or
    less than in others, and first outputs add to it. What is learned by heart leaves a held-back
    loss there; data of another kind costs far more.
    """
    about = TWICE * loss.size  # a held-back loss that was about there
    return loss.chance is None and held_back.n > 0 and float(held_back.values.min()) < about


def _begins_at_guessing(loss: Losses) -> bool:
    """Does training begin as a cross entropy in nats does, at guessing or somewhat above?"""
    return loss.chance is not None and 0.7 * loss.chance <= loss.start <= 10 * loss.chance


def are_comparable(loss: Losses, held_back: Losses) -> bool:
    """Are both losses measured alike: mean and mean, without a factor or a penalty on one?

    They are about the same when the held-back loss is first measured; or the training loss begins
    as a cross entropy in nats does, which is how held-back data is measured by custom; or, where
    nothing is guessed, the held-back loss is first about where the training loss began.
    """
    if _begins_at_guessing(loss):
        return True
    then = loss.values[loss.steps <= held_back.steps[0]][-SHORT:] if held_back.n else loss.values
    if (
        loss.chance is None
        and held_back.n
        and 1 / THRICE < held_back.values[0] / loss.size < THRICE
    ):
        return True
    level = float(np.median(then)) if len(then) and held_back.n else 0.0
    return level > 0 and 1 / TWICE < float(held_back.values[0]) / level < TWICE


def left_behind(loss: Losses, held_back: Losses, gap: float, share: float) -> Behind | None:
    """Return how high the held-back loss rests, where the training loss left it far behind.

    It must not be on its way down: what is learned slowly holds for other data late. Of a loss
    below zero nothing is a share.
    """
    if held_back.n <= FEW + 1 or loss.start <= 0 or loss.now < 0 or loss.is_learned:
        return None
    if not are_comparable(loss, held_back):
        return None
    last, before = held_back.values[-FEW:], held_back.values[:-FEW]
    level, now = float(np.median(last)), loss.mean_now
    found = Behind(level, level / max(now, 1e-12 * loss.size), level / abs(loss.reference))
    falls = float(last.min()) < ALMOST * float(before.min())
    return None if falls or found.gap < gap or found.share < share else found


def worse_than_guessing(loss: Losses, held_back: Losses, gap: float) -> Behind | None:
    """Return how high a held-back loss is that falls, and is above guessing still after many looks.

    What is merely not learned yet costs what guessing costs, not more.
    """
    if held_back.n < SEVERAL or loss.chance is None or loss.is_learned:
        return None
    if not _begins_at_guessing(loss) or loss.now < 0:
        return None
    level, now = float(held_back.values[-FEW:].min()), loss.mean_now
    found = Behind(level, level / max(now, 1e-12 * loss.size), level / abs(loss.reference))
    sinks = level < HALF * float(held_back.values[0])
    return None if sinks or level < CLEARLY * loss.chance or found.gap < gap else found


def keeps_rising(held_back: Losses) -> bool:
    """Was every one of many looks worse than the one before? That is no noise, however little."""
    return held_back.n > SEVERAL and bool((np.diff(held_back.values[-SEVERAL - 1 :]) > 0).all())


def has_soured(loss: Losses, held_back: Losses) -> bool:
    """Did it rise by much from a best that was about guessing? Then it was learned by heart.

    Answers that are sure and wrong cost several times guessing; ten times as much comes of inputs
    that are larger than those of training.
    """
    best = int(np.argmin(held_back.values))
    low, after = float(held_back.values[best]), held_back.values[best + 1 :][-FEW:]
    if len(after) < FEW or low > THRICE * abs(loss.reference) or is_strange(loss, held_back):
        return False
    return bool(_SOURED * low < after.min() < TENFOLD * abs(loss.reference))


def is_strange(loss: Losses, held_back: Losses) -> bool:
    """Was it well above guessing at first, when training had learned next to nothing yet?

    What is learned by heart is learned: a held-back loss suffers from it later. One that is wrong
    before that is of other data.
    """
    then = loss.values[loss.steps <= held_back.steps[0]][-SHORT:] if held_back.n else loss.values
    if not len(then) or not held_back.n:
        return False
    level, first, usual = float(np.mean(then)), float(held_back.values[0]), abs(loss.reference)
    return level > MOST * usual and first > CLEARLY * usual and first > CLEARLY * level


def is_outsize(loss: Losses, held_back: Losses) -> bool:
    """Does held-back data cost so much that its inputs must be larger than those of training?

    Outputs grow with inputs: of a squared error it never comes near where training began, and of a
    cross entropy it goes beyond what wrong answers cost.
    """
    if held_back.n <= FEW + 1:
        return False
    if loss.chance is not None and 0.7 * loss.chance <= loss.start <= 10 * loss.chance:
        low, high = float(held_back.values.min()), float(held_back.values.max())
        return low > loss.chance and high > TENFOLD * loss.chance
    return loss.start > 0 and float(held_back.values.min()) > THRICE * loss.start
