"""What was learned by heart where losses may be below zero, as logarithms of a likelihood are.

There zero means nothing, and no loss is a share of another: what was won since the start is the
measure. Held-back data that was never near the start is of another kind.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...runs import RunFinding
from ..signs.held_back import keeps_rising
from ..signs.limits import Limits
from ..signs.losses import Losses
from ..signs.wording import above, finding
from .by_heart import stopping
from .scarcity import too_little

_HOT = 10.0  # times all that comes later: such a start is the size of first outputs
_ABOUT = 0.1  # of what training won: less is no measure of what is lost
_FAR = 0.5  # of what training won, above where it began: held-back data of another kind


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
    won, lost = max(start - low, _ABOUT * all_won), float(last.min()) - low
    least = 0.5 if keeps_rising(held_back) else 1.0  # of each limit: that is no noise
    if low > start + _FAR * all_won or lost < least * limit["lost"] * won:
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
    yield finding(
        "over-fit",
        "warning",
        f"the held-back loss lost {lost / won:.0%} of what it had won by its best (step {step}) "
        f"while the training loss fell from {before:.3g} to {loss.now:.3g}",
        {"lost": lost / won, "lost_threshold": limit["lost"], "best_step": step, "best": low,
         "gap_share": gap, "apart_threshold": limit["apart"], "onward": onward,
         "onward_threshold": limit["onward"], "training_loss": loss.now},
        since=step,
        cause=told.cause,
        advice=told.advice,
        signs=[above(lost / won, limit["lost"]), above(gap, limit["apart"])],
        fix=told.fix,
    )  # fmt: skip


def _began(loss: Losses, held_back: Losses) -> float:
    """Give where learning began: not at what first outputs cost that are far too large.

    These shrink in the first steps, and next to that nothing that is learned would count.
    """
    first = float(held_back.values[0])
    return first if loss.start > _HOT * max(abs(first), abs(loss.now)) else loss.start


def _is_gone(after: np.ndarray[tuple[int], np.dtype[np.float64]], start: float, looks: int) -> bool:
    """Was all that was won lost at every one of the last looks?

    Answers that are sure and wrong cost without bound, so that such a loss leaps about up there. A
    norm whose statistics have not settled lets it come back.
    """
    return len(after) >= looks and float(after[-looks:].min()) > start
