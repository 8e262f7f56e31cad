"""How much of a regression's targets its outputs explain."""

from __future__ import annotations

from math import inf

import numpy as np

from .degrees import LITTLE, MOST, RECENT
from .harms import Harm
from .losses import Losses
from .sight import Sight


def explains_nothing(seen: Sight, least: int, share: float) -> Harm | None:
    """Are the outputs of a regression next to constant, while its loss stands?

    Several outputs may be classes; a first loss far below that of guessing among them is none of
    these. They explain less than is measured here, so that what is little is less.
    """
    loss = seen.loss
    if loss.n < max(least, 6) or _may_be_classes(loss):
        return None
    early, now = loss.late_levels
    if now <= 0 or early - now > LITTLE * now:
        return None
    part = explained(seen)
    if part is None or part > share:
        return None
    said = f"the outputs explain {part:.0%} of the targets, and the loss stands at {loss.now:.4g}"
    return Harm("constant", int(loss.steps[0]), part, said)


def _may_be_classes(loss: Losses) -> bool:
    if loss.chance is None:
        return False
    return loss.spread is None or float(loss.values[0]) >= MOST * loss.chance


def explained(seen: Sight, widest: float = inf, *, until: int | None = None) -> float | None:
    """Return the share of a squared error's targets that the latest outputs explain.

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
    recent = slice(max(stop - RECENT, 0), stop)
    with np.errstate(invalid="ignore", over="ignore"):
        variance = np.minimum(spread[recent, -1], widest) ** 2
        shares = variance / (variance + values[recent])
    known = shares[np.isfinite(shares)]
    return float(np.median(known)) if len(known) else None
