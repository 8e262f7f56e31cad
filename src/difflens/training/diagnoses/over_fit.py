"""A model that learns its training data by heart: there it improves, on held-back data it worsens.

Only the held-back loss can tell: it has to rise, lastingly and by much, after its
best, while the training loss falls on. A gap between the two alone is no fault, unless next to
nothing is left of the one while the other rests at a good part of where it began.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.feeding.by_heart import or_the_same, remedy, stopping, unlearned
from ..detectors.feeding.scarcity import too_little
from ..detectors.signs.degrees import HALF, SOME, TENFOLD, THRICE
from ..detectors.signs.held_back import (
    has_followed,
    has_stayed,
    held_back_loss,
    is_strange,
    keeps_rising,
    left_behind,
)
from ..detectors.signs.limits import Limits
from ..detectors.signs.losses import Losses
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.wording import above, finding
from ..history.history import History
from ..records.runs import RunFinding
from . import diagnosis

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
    "far_gap": Threshold(
        20.0, "held-back loss over the training loss, where it does not rise but rests"
    ),
    "high": Threshold(
        0.4,
        "such a rest in shares of the first training loss (or of guessing): "
        "below, most of what was to be learned holds for other data",
    ),
    "lost": Threshold(
        0.3, "below zero: rise of the held-back loss over its best, in shares of what it had won"
    ),
    "apart": Threshold(
        0.5,
        "below zero: gap in shares of what training won, so that held-back "
        "data is nearer to where training began than to where it is",
    ),
    "onward": Threshold(0.1, "below zero: what training won since that best, by what it had won"),
}


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
    """Find a held-back loss that rises while the training loss falls."""
    loss, best = seen.loss, int(np.argmin(held_back.values))
    after = held_back.values[best + 1 :]
    if len(after) < limit["after"]:
        return
    last = after[-limit["after"] :]
    rise = float(last.min()) / float(held_back.values[best])
    at_best = loss.values[loss.steps <= held_back.steps[best]]
    before = float(np.median(at_best[-loss.width :])) if len(at_best) else loss.start
    # The mean, as the held-back loss is one: of single examples most cost next to nothing.
    now = loss.mean_now
    gap = float(np.median(last)) / now if now > 0 else float("inf")
    fell = loss.now <= limit["fall"] * before
    share = float(last.min() - held_back.values[best]) / unlearned(loss)
    least = limit["gap"] / (2 if keeps_rising(held_back) else 1)
    if rise < limit["rise"] or share < limit["share"] or gap < least or not fell:
        return
    far = float(held_back.values[best]) > THRICE * abs(loss.reference)
    if far or is_strange(loss, held_back):
        return  # it was never near where training began: that is data of another kind
    if float(last.max()) > THRICE * float(last.min()):
        return  # it leaps about, as with statistics that a norm keeps: nothing is learned so fast
    step = int(held_back.steps[best])
    told = remedy(loss, held_back, seen.batch, limit["share"])
    yield from finding(
        "over-fit",
        "warning",
        f"the held-back loss rose to {rise:.3g} times its best (step {step}) while the training "
        f"loss fell from {before:.3g} to {loss.now:.3g}",
        {
            "rise": rise,
            "rise_threshold": limit["rise"],
            "rise_share": share,
            "share_threshold": limit["share"],
            "best_step": step,
            "best": float(held_back.values[best]),
            "gap": gap,
            "gap_threshold": limit["gap"],
            "values_after_best": len(after),
            "training_loss": loss.now,
        },
        since=step,
        cause=told.cause,
        advice=told.advice,
        signs=[above(rise, 1.0), above(gap, limit["gap"] / 2)],
        fix=told.fix,
    )


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
    yield from finding(
        "over-fit",
        "warning",
        f"the held-back loss rests at {found.level:.3g}, {found.gap:.3g} times the training loss",
        {
            "held_back": found.level,
            "share_of_start": found.share,
            "high_threshold": limit["high"],
            "gap": found.gap,
            "far_gap_threshold": limit["far_gap"],
            "training_loss": loss.now,
        },
        since=step,
        cause=told.cause,
        advice=told.advice,
        signs=[above(found.gap, limit["far_gap"]), above(found.share, limit["high"])],
        fix=told.fix,
    )


# There zero means nothing, and no loss is a share of another: what was won since the start is the
# measure. Held-back data that was never near the start is of another kind.


def rises_below_zero(loss: Losses, held_back: Losses, limit: Limits) -> Iterator[RunFinding]:
    """Find held-back data that lost what it had won while training won more."""
    best = int(np.argmin(held_back.values))
    low, after = float(held_back.values[best]), held_back.values[best + 1 :]
    at_best = loss.values[loss.steps <= held_back.steps[best]]
    if len(after) < limit["after"] or not len(at_best):
        return
    last, before = after[-limit["after"] :], float(np.median(at_best[-loss.width :]))
    start = _began(loss, held_back)
    all_won = max(start - loss.now, 1e-300)
    won, lost = max(start - low, SOME * all_won), float(last.min()) - low
    least = 0.5 if keeps_rising(held_back) else 1.0  # of each limit: that is no noise
    if low > start + HALF * all_won or lost < least * limit["lost"] * won:
        return  # it is of another kind, or still has most of what it won
    if start <= 0 and low > start:
        return  # the sign of the training loss is turned
    if float(np.ptp(last)) > lost and not _is_gone(after, start, 2 * int(limit["after"])):
        return  # it leaps about
    gap = (float(np.median(last)) - loss.now) / all_won
    onward = (before - loss.now) / max(start - before, 1e-300)
    if gap < least * limit["apart"] or onward < least * limit["onward"]:
        return
    step = int(held_back.steps[best])
    # Counted from where training is, what is left to learn is above zero again.
    left = [each._replace(values=each.values - loss.now) for each in (loss, held_back)]
    told = too_little(left[0], left[1], all_won, limit["share"]) or stopping(step)
    yield from finding(
        "over-fit",
        "warning",
        f"the held-back loss lost {lost / won:.0%} of what it had won by its best (step {step}) "
        f"while the training loss fell from {before:.3g} to {loss.now:.3g}",
        {
            "lost": lost / won,
            "lost_threshold": limit["lost"],
            "best_step": step,
            "best": low,
            "gap_share": gap,
            "apart_threshold": limit["apart"],
            "onward": onward,
            "onward_threshold": limit["onward"],
            "training_loss": loss.now,
        },
        since=step,
        cause=told.cause,
        advice=told.advice,
        signs=[above(lost / won, limit["lost"]), above(gap, limit["apart"])],
        fix=told.fix,
    )


def _began(loss: Losses, held_back: Losses) -> float:
    """Return where learning began: not at what first outputs cost that are far too large.

    These shrink in the first steps, and next to that nothing that is learned would count.
    """
    first = float(held_back.values[0])
    return first if loss.start > TENFOLD * max(abs(first), abs(loss.now)) else loss.start


def _is_gone(after: np.ndarray[tuple[int], np.dtype[np.float64]], start: float, looks: int) -> bool:
    """Was all that was won lost at every one of the last looks?

    Answers that are sure and wrong cost without bound, so that such a loss leaps about up there. A
    norm whose statistics have not settled lets it come back.
    """
    return len(after) >= looks and float(after[-looks:].min()) > start
