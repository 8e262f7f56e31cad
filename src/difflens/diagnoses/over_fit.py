"""A model that learns its training data by heart: there it improves, on held-back data it worsens.

Only the held-back loss can tell (methods 11.7): it has to rise, lastingly and by much, after its
best, while the training loss falls on. A gap between the two alone is no fault, unless next to
nothing is left of the one while the other rests at a good part of where it began.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..records import Policy, Threshold
from ..runs import RunFinding
from . import diagnosis
from .feeding.by_heart import or_the_same, remedy, unlearned
from .feeding.likelihoods import rises_below_zero
from .signs.held_back import (
    has_followed,
    has_stayed,
    held_back_loss,
    is_strange,
    keeps_rising,
    left_behind,
)
from .signs.limits import Limits
from .signs.losses import Losses
from .signs.sight import Sight, sight
from .signs.wording import above, finding

if TYPE_CHECKING:
    from ..history.history import History

THRESHOLDS = {
    "rise": Threshold(1.1, "held-back loss over its best"),
    "share": Threshold(
        0.05,
        "the same rise in shares of the first training loss (or of guessing): "
        "what rises from little to little is no harm",
    ),
    "gap": Threshold(5.0, "held-back loss over the training loss"),
    "after": Threshold(3, "held-back values after the best, all of them above it"),
    "fall": Threshold(0.8, "training loss by what it was at the best held-back loss"),
    "far_gap": Threshold(20.0, "held-back loss over the training loss, where it does not rise but "
                         "rests"),
    "high": Threshold(0.4, "such a rest in shares of the first training loss (or of guessing): "
                      "below, most of what was to be learned holds for other data"),
    "lost": Threshold(0.3, "below zero: rise of the held-back loss over its best, in shares of "
                      "what it had won"),
    "apart": Threshold(0.5, "below zero: gap in shares of what training won, so that held-back "
                       "data is nearer to where training began than to where it is"),
    "onward": Threshold(0.1, "below zero: what training won since that best, by what it had won"),
}  # fmt: skip
_STRANGE = 3.0  # times where training began, or guessing
_ERRATIC = 3.0  # highest by lowest of the last held-back values


@diagnosis(needs=("loss", "val_loss"), window=5, thresholds=THRESHOLDS)
def over_fit(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find a held-back loss that rises, or rests high, while the training loss falls on."""
    limit = Limits("over-fit", policy, THRESHOLDS)
    seen, held_back = sight(history), held_back_loss(history)
    loss = seen.loss
    if held_back is None or loss.n < 10 or held_back.n < limit["after"] + 2:
        return
    if loss.now < 0 or held_back.values.min() <= 0:
        yield from rises_below_zero(loss, held_back, limit)
        return
    yield from [*_rises(seen, held_back, limit)] or _rests(seen, held_back, limit)


def _rises(seen: Sight, held_back: Losses, limit: Limits) -> Iterator[RunFinding]:
    loss, best = seen.loss, int(np.argmin(held_back.values))
    after = held_back.values[best + 1 :]
    if len(after) < limit["after"]:
        return
    last = after[-limit["after"] :]
    rise = float(last.min()) / float(held_back.values[best])
    at_best = loss.values[loss.steps <= held_back.steps[best]]
    before = float(np.median(at_best[-loss.width :])) if len(at_best) else loss.start
    # The mean, as the held-back loss is one: of single examples most cost next to nothing.
    now = float(np.mean(loss.values[-loss.width :]))
    gap = float(np.median(last)) / now if now > 0 else float("inf")
    fell = loss.now <= limit["fall"] * before
    share = float(last.min() - held_back.values[best]) / unlearned(loss)
    least = limit["gap"] / (2 if keeps_rising(held_back) else 1)
    if rise < limit["rise"] or share < limit["share"] or gap < least or not fell:
        return
    far = float(held_back.values[best]) > _STRANGE * abs(loss.reference)
    if far or is_strange(loss, held_back):
        return  # it was never near where training began: that is data of another kind
    if float(last.max()) > _ERRATIC * float(last.min()):
        return  # it leaps about, as with statistics that a norm keeps: nothing is learned so fast
    step = int(held_back.steps[best])
    told = remedy(loss, held_back, seen.batch, limit["share"])
    yield finding(
        "over-fit",
        "warning",
        f"the held-back loss rose to {rise:.3g} times its best (step {step}) while the training "
        f"loss fell from {before:.3g} to {loss.now:.3g}",
        {"rise": rise, "rise_threshold": limit["rise"], "rise_share": share,
         "share_threshold": limit["share"], "best_step": step,
         "best": float(held_back.values[best]), "gap": gap, "gap_threshold": limit["gap"],
         "values_after_best": len(after), "training_loss": loss.now},
        since=step,
        cause=told.cause,
        advice=told.advice,
        signs=[above(rise, 1.0), above(gap, limit["gap"] / 2)],
        fix=told.fix,
    )  # fmt: skip


def _rests(seen: Sight, held_back: Losses, limit: Limits) -> Iterator[RunFinding]:
    """Find a held-back loss that stays high when nothing is left of the training loss.

    One that was never near where the training loss began is told as `data`: it is of another kind.
    """
    loss = seen.loss
    found = left_behind(loss, held_back, limit["far_gap"], limit["high"])
    if found is None or not (has_followed(loss, held_back) or has_stayed(loss, held_back)):
        return
    step = int(held_back.steps[int(np.argmin(held_back.values))])
    told = or_the_same(remedy(loss, held_back, seen.batch, limit["share"]))
    yield finding(
        "over-fit",
        "warning",
        f"the held-back loss rests at {found.level:.3g}, {found.gap:.3g} times the training loss",
        {"held_back": found.level, "share_of_start": found.share, "high_threshold": limit["high"],
         "gap": found.gap, "far_gap_threshold": limit["far_gap"], "training_loss": loss.now},
        since=step,
        cause=told.cause,
        advice=told.advice,
        signs=[above(found.gap, limit["far_gap"]), above(found.share, limit["high"])],
        fix=told.fix,
    )  # fmt: skip
