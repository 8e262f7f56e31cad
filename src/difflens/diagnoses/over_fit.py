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
from ..runs import Fix, RunFinding
from . import diagnosis
from .feeding.causes import Cause
from .feeding.scarcity import too_little
from .signs.held_back import has_followed, held_back_loss, is_strange, left_behind
from .signs.limits import Limits
from .signs.losses import Losses
from .signs.sight import sight
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
_LEFT, _LEVEL = 5.0, 5  # times the training loss, and the points of which that is the mean
_WORTHLESS, _CONTRARY = 0.8, 1.8  # best held-back loss by guessing: next to it; far worse
_SMOOTH, _JITTER = 0.95, 0.01  # share of steps that fall; change of ln(loss) from fall to fall
_CAUSE = "the model is large beside the data and nothing holds it back"
_OR_THE_SAME = ", or it is given the same few examples again and again"
_NEW_BATCHES = "check that every batch is a new one"
_ONE_BATCH = Cause(
    "every step costs as the one before would make it: the same few examples are given again and "
    "again, and what is learned of them says next to nothing of others",
    ["check that every batch is a new one, and that the loader is shuffled and moves on",
     "get more data, where these are all there is"],
    Fix("shuffle"),
)  # fmt: skip
_OTHERS = Cause(
    "held-back data was answered worse than by guessing as soon as anything was learned: its "
    "labels are made otherwise (targets that are not shifted, other classes, a leak in training)",
    ["look at examples of both with their labels, as the model gets them",
     "check that training does not show the answer among the inputs"],
    Fix("check_labels"),
)  # fmt: skip


@diagnosis(needs=("loss", "val_loss"), window=5, thresholds=THRESHOLDS)
def over_fit(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find a held-back loss that rises, or rests high, while the training loss falls on."""
    limit = Limits("over-fit", policy, THRESHOLDS)
    loss, held_back = sight(history).loss, held_back_loss(history)
    if held_back is None or loss.n < 10 or held_back.n < limit["after"] + 2:
        return
    if loss.now < 0 or held_back.values.min() <= 0:
        yield from _rises_below_zero(loss, held_back, limit)
        return
    yield from [*_rises(loss, held_back, limit)] or _rests(loss, held_back, limit)


def _rises(loss: Losses, held_back: Losses, limit: Limits) -> Iterator[RunFinding]:
    best = int(np.argmin(held_back.values))
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
    share = float(last.min() - held_back.values[best]) / _unlearned(loss)
    if rise < limit["rise"] or share < limit["share"] or gap < limit["gap"] or not fell:
        return
    far = float(held_back.values[best]) > _STRANGE * abs(loss.reference)
    if far or is_strange(loss, held_back):
        return  # it was never near where training began: that is data of another kind
    if float(last.max()) > _ERRATIC * float(last.min()):
        return  # it leaps about, as with statistics that a norm keeps: nothing is learned so fast
    step, remedy = int(held_back.steps[best]), _remedy(loss, held_back, best, limit)
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
        cause=remedy.cause,
        advice=remedy.advice,
        signs=[above(rise, 1.0), above(gap, limit["gap"] / 2)],
        fix=remedy.fix,
    )  # fmt: skip


def _unlearned(loss: Losses) -> float:
    """Give what it costs to know nothing: weights that were trained before begin far below it."""
    level = loss.chance if loss.is_learned and loss.chance else loss.reference
    return max(abs(level), 1e-300)


def _rises_below_zero(loss: Losses, held_back: Losses, limit: Limits) -> Iterator[RunFinding]:
    """Find the same where the losses may be below zero, as logarithms of a likelihood are.

    There zero means nothing, and no loss is a share of another: what was won since the start is
    the measure. Held-back data that never won anything is of another kind.
    """
    best = int(np.argmin(held_back.values))
    low, after = float(held_back.values[best]), held_back.values[best + 1 :]
    at_best = loss.values[loss.steps <= held_back.steps[best]]
    if len(after) < limit["after"] or not len(at_best):
        return
    last, before = after[-limit["after"] :], float(np.median(at_best[-loss.width :]))
    won, lost = loss.start - low, float(last.min()) - low
    if won <= 0 or lost < limit["lost"] * won or float(np.ptp(last)) > lost:
        return  # it won nothing, still has most of it, or leaps about
    gap = (float(np.median(last)) - loss.now) / max(loss.start - loss.now, 1e-300)
    onward = (before - loss.now) / max(loss.start - before, 1e-300)
    if gap < limit["apart"] or onward < limit["onward"]:
        return
    step = int(held_back.steps[best])
    # Counted from where training is, what is left to learn is above zero again.
    left = [each._replace(values=each.values - loss.now) for each in (loss, held_back)]
    few = too_little(left[0], left[1], loss.start - loss.now, limit["share"])
    remedy = few or Cause(_CAUSE, _stopping(step), Fix("stop_early", {"step": step}))
    yield finding(
        "over-fit",
        "warning",
        f"the held-back loss lost {lost / won:.0%} of what it had won by its best (step {step}) "
        f"while the training loss fell from {before:.3g} to {loss.now:.3g}",
        {"lost": lost / won, "lost_threshold": limit["lost"], "best_step": step, "best": low,
         "gap_share": gap, "apart_threshold": limit["apart"], "onward": onward,
         "onward_threshold": limit["onward"], "training_loss": loss.now},
        since=step,
        cause=remedy.cause,
        advice=remedy.advice,
        signs=[above(lost / won, limit["lost"]), above(gap, limit["apart"])],
        fix=remedy.fix,
    )  # fmt: skip


def _stopping(step: int) -> list[str]:
    return [f"keep the weights of step {step} (stop early)", "add dropout or weight decay",
            "get more data, or augment what there is"]  # fmt: skip


def _remedy(loss: Losses, held_back: Losses, best: int, limit: Limits) -> Cause:
    """Choose what to do by what the best held-back loss is worth: stopping there gives no more."""
    worth = float(held_back.values[best]) / max(abs(loss.reference), 1e-300)
    if worth > _WORTHLESS and _has_no_noise(loss):
        return _ONE_BATCH
    if worth > _CONTRARY:
        return _OTHERS
    stop = _where_to_stop(loss, held_back, best)
    # Where the best lay before the first look, what stopping there would give is not known.
    few = too_little(loss, held_back, _unlearned(loss), limit["share"])
    if few and stop == int(held_back.steps[best]):
        return few
    return Cause(_CAUSE, _stopping(stop), Fix("stop_early", {"step": stop}))


def _has_no_noise(loss: Losses) -> bool:
    """Does it fall at every step, by nearly as much as at the one before?

    Batches that differ cost differently.
    """
    half = np.log(np.maximum(loss.values[: loss.n // 2], 1e-300))
    falls = np.diff(half)
    return bool((falls < 0).mean() > _SMOOTH and np.median(np.abs(np.diff(falls))) < _JITTER)


def _where_to_stop(loss: Losses, held_back: Losses, best: int) -> int:
    """Give the step of the best held-back loss, or guess it where that was before the first look.

    A first value that the training loss had left far behind is past the best already. Nor was it
    better before the training loss had come down to it, since that is the lower of the two: the
    best lies in between.
    """
    step, value = int(held_back.steps[best]), float(held_back.values[best])
    before = loss.steps <= step
    if best or value < _LEFT * float(np.mean(loss.values[before][-_LEVEL:])):
        return step
    down = np.flatnonzero(loss.values[before] <= value)
    since = int(loss.steps[down[0]]) if len(down) else step
    return max((since + step) // 2, 1)


def _rests(loss: Losses, held_back: Losses, limit: Limits) -> Iterator[RunFinding]:
    """Find a held-back loss that stays high when nothing is left of the training loss.

    One that never followed the training loss at all is told as `data`: it is of another kind.
    """
    found = left_behind(loss, held_back, limit["far_gap"], limit["high"])
    if found is None or not has_followed(loss, held_back):
        return
    best = int(np.argmin(held_back.values))
    step, remedy = int(held_back.steps[best]), _remedy(loss, held_back, best, limit)
    if remedy is not _ONE_BATCH:
        remedy = Cause(remedy.cause + _OR_THE_SAME, [_NEW_BATCHES, *remedy.advice], remedy.fix)
    yield finding(
        "over-fit",
        "warning",
        f"the held-back loss rests at {found.level:.3g}, {found.gap:.3g} times the training loss",
        {"held_back": found.level, "share_of_start": found.share, "high_threshold": limit["high"],
         "gap": found.gap, "far_gap_threshold": limit["far_gap"], "training_loss": loss.now},
        since=step,
        cause=remedy.cause,
        advice=remedy.advice,
        signs=[above(found.gap, limit["far_gap"]), above(found.share, limit["high"])],
        fix=remedy.fix,
    )  # fmt: skip
