"""How much of a regression's targets its outputs explain."""

from __future__ import annotations

from math import inf

import numpy as np

from .harms import Harm
from .held_back import held_back_loss
from .losses import Losses
from .sight import Sight

_GUESSED = 0.7  # of guessing: weights that are not trained do not score better
_RECENT = 20  # points over which outputs are looked at
_LOOKS = 6  # held-back values
_NO_BETTER = 0.9  # of the held-back loss early on
_HIGH = 0.6  # of the start: a regression that learned something is lower
_BY_HEART = 0.4  # share of the targets trained on that outputs explain which hold for nothing
_FLAT = 0.05  # of the level: what a loss that stands may still fall over a sixth of the run


def explains_nothing(seen: Sight, least: int, share: float) -> Harm | None:
    """Are the outputs of a regression next to constant, while its loss stands?

    Several outputs may be classes; a first loss far below that of guessing among them is none of
    these. They explain less than is measured here, so that what is little is less.
    """
    loss = seen.loss
    if loss.n < max(least, 6) or _may_be_classes(loss):
        return None
    half = loss.values[loss.n // 2 :]
    third = max(len(half) // 3, 1)
    now = float(np.median(half[-third:]))
    if now <= 0 or float(np.median(half[:third])) - now > _FLAT * now:
        return None
    part = explained(seen)
    if part is None or part > share:
        return None
    said = f"the outputs explain {part:.0%} of the targets, and the loss stands at {loss.now:.4g}"
    return Harm("constant", int(loss.steps[0]), part, said)


def _may_be_classes(loss: Losses) -> bool:
    if loss.chance is None:
        return False
    return loss.spread is None or float(loss.values[0]) >= _GUESSED * loss.chance


def holds_for_nothing(seen: Sight, least: int) -> Harm | None:
    """Do a regression's outputs vary by heart alone: held-back data gets nothing of it?

    Its outputs may explain some of the targets they were trained on. The held-back loss, about
    where training began and no better late than early, says that none of it holds.
    """
    loss, held_back = seen.loss, held_back_loss(seen.history)
    if held_back is None or held_back.n < _LOOKS or loss.n < least or _may_be_classes(loss):
        return None
    early = float(np.median(held_back.values[: held_back.n // 3]))
    late = float(np.median(held_back.values[held_back.n // 2 :]))
    part, start = explained(seen), loss.start
    # Random outputs cost some on top of what knowing nothing does, which is what others cost early.
    if part is None or not 0 < _NO_BETTER * early < late or loss.now < _HIGH * min(start, early):
        return None
    if part > _BY_HEART or not _HIGH * start < late < start / _HIGH:
        return None
    said = f"the held-back loss is at {late:.4g}, no better than early on, and training at "
    return Harm("constant", int(loss.steps[0]), part, said + f"{loss.now:.4g}")


def explained(seen: Sight, widest: float = inf, *, until: int | None = None) -> float | None:
    """Give the share of a squared error's targets that the latest outputs explain.

    Outputs that fit have a variance of R^2 var(t), and leave a loss of (1 - R^2) var(t): what is
    explained is var(o)/(var(o) + loss), in whatever units. Of several outputs it is more than the
    truth, as they differ among themselves. Their deviation is at most `widest`, where that is
    known: the last layer with weights may not be the one that makes them. The latest are those
    before the step `until`, where one is given.
    """
    spread, values = seen.layers.field("act_std"), seen.history.course.scalar("loss")
    if spread is None or values is None:
        return None
    stop = len(values) if until is None else int(np.searchsorted(seen.steps, until))
    recent = slice(max(stop - _RECENT, 0), stop)
    with np.errstate(invalid="ignore", over="ignore"):
        variance = np.minimum(spread[recent, -1], widest) ** 2
        shares = variance / (variance + values[recent])
    known = shares[np.isfinite(shares)]
    return float(np.median(known)) if len(known) else None
