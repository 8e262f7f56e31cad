"""A loss that hardly moves although the steps could move it: small steps, for long."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.signs.degrees import CLEARLY, FEW, HALF, MOST, PART, RECENT, SEVERAL, SHORT, SOME
from ..detectors.signs.fading import loses_slopes
from ..detectors.signs.harms import Harm, crawls, stuck
from ..detectors.signs.held_back import held_back_loss
from ..detectors.signs.layers import initial_scales
from ..detectors.signs.limits import Limits
from ..detectors.signs.losses import Losses
from ..detectors.signs.passing import why
from ..detectors.signs.raising import end_warm_up, raised
from ..detectors.signs.recurrence import is_recurrent
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.wording import below, finding
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "update": Threshold(3e-4, "median update by weight: below, small steps are why it is slow"),
    "fall": Threshold(0.1, "share of its start by which the loss fell: less is slow"),
    "way": Threshold(
        0.5,
        "the loss by its start below which steps of a usual size are not slow: "
        "it began far above guessing",
    ),
    "steady_points": Threshold(
        150, "points for which a loss that falls steadily may have fallen by less"
    ),
    "path": Threshold(0.5, "way that the weights went by then, in sizes of themselves"),
    "crept": Threshold(
        0.2,
        "the same after which a loss that fell by more is slow as well: "
        "healthy runs have gone 0.33 and more",
    ),
    "crept_fall": Threshold(0.3, "share of its start, or of guessing, that such a loss fell"),
    "stayed": Threshold(
        5e-4,
        "the same by points: below, it is slow where held-back data still "
        "gets better at every look; healthy runs have gone twice that",
    ),
    "stayed_path": Threshold(0.1, "the same in all beyond which the loss must be high as well"),
    "stayed_fall": Threshold(0.1, "share by which held-back data then got better in six looks"),
    "stood": Threshold(0.01, "way that the weights went: below, a few looks may be worse"),
    "decay": Threshold(0.05, "learning rate by its highest: below, the schedule is to blame"),
    "points": Threshold(40, "points over which it must last"),
    "recurrent_points": Threshold(
        120, "the same for recurrent networks, which rest before they learn"
    ),
}


@diagnosis(needs=("update_l2", "weight_l2", "loss"), window=40, thresholds=THRESHOLDS)
def slow(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find a loss that hardly fell while updates are small, though not tiny."""
    limit = Limits("slow", policy, THRESHOLDS)
    seen = sight(history)
    least = limit["recurrent_points" if is_recurrent(history) else "points"]
    told = stuck(seen.loss, least, limit["fall"])
    typical = seen.layers.typical_update
    stays = _stays(seen, limit)
    divided = _is_divided(seen) and _is_steady(seen, limit)
    if divided:
        told = Harm(
            "crawls",
            int(seen.loss.steps[0]),
            seen.loss.fall,
            f"the training loss is the held-back one divided by the batch ({seen.batch})",
        )
    elif told is None or seen.loss.fall >= limit["fall"]:
        told = _crawls(seen, limit) or stays
    if told is None or typical is None or seen.may_be_slow:
        return
    rates = seen.rates
    if len(rates) and rates[-1] < limit["decay"] * rates.max():
        return  # a schedule took it down: that is told as a plateau
    late = typical[-limit["points"] :]
    late = late[np.isfinite(late)]
    if len(late) < limit["points"] // 2:
        return
    pace = float(np.median(late))
    young = divided or bool(stays) or _is_young(seen, limit)
    if not 0 < pace < limit["update"] and not (pace > 0 and young):
        return
    factor = float(seen.batch or 1) if divided else min(max(raised(seen) or 3.0, 3.0), 1e4)
    yield from finding(
        "slow",
        "critical" if seen.loss.n >= 3 * limit["points"] else "warning",
        f"{told.said}, and a step changes the weights by {pace:.1g} of their size",
        {
            "loss_fall": told.figure,
            "fall_threshold": limit["fall"],
            "update_by_weight": pace,
            "update_threshold": limit["update"],
            "points": seen.loss.n,
        },
        since=told.since,
        cause="the steps are small for the way there is to go",
        advice=[
            f"multiply the learning rate by about {factor:g}",
            "use Adam where plain SGD crawls",
        ],
        signs=[below(pace, limit["update"])],
        fix=end_warm_up(seen) or _even_out(seen, factor) or Fix("scale_lr", {"factor": factor}),
    )


def _even_out(seen: Sight, factor: float) -> Fix | None:
    """Ask for what lets gradients pass, where a rate so much higher would tear the last layer.

    The others are slow since little reaches them, and no one rate is right for both. Nor is one
    where small weights, each a little, take the slope on its way through a stack: a rate that moves
    them tears what is near the outputs.
    """
    steps, columns = seen.layers.recent(seen.layers.update), np.flatnonzero(seen.layers.trained)
    if seen.loss.fall < SOME and loses_slopes(seen) and _start_small(seen):
        return why(seen, columns).fix
    if steps is None or len(columns) < FEW or not np.isfinite(steps[columns]).all():
        return None
    last = int(columns[-1])
    torn = int(np.argmax(steps)) == last and factor * float(steps[last]) > HALF
    return why(seen, columns).fix if torn else None


def _start_small(seen: Sight) -> bool:
    """Do most weights start below what keeps a signal's size, and does no norm mend it?"""
    scales = initial_scales(seen.layers)[seen.layers.trained] if seen.points else np.zeros(0)
    known = scales[np.isfinite(scales)]
    small = len(known) > 0 and float(np.median(known)) < HALF
    return small and not seen.history.fact("norm_layers")


def _crawls(seen: Sight, limit: Limits) -> Harm | None:
    """Is the loss, though it falls at every look, still high, while weights have hardly moved?"""
    typical = seen.layers.typical_update
    small = typical is not None and float(np.nan_to_num(typical).max(initial=0.0)) < limit["update"]
    if not (small or _crept(seen, limit)) or not _is_steady(seen, limit):
        return None
    return crawls(seen.loss, int(limit["steady_points"]))


def _stays(seen: Sight, limit: Limits) -> Harm | None:
    """Are the weights next to where they began, though there is much to be won still?

    However far the loss fell: a first guess that was bad is mended within steps that change little
    else. Weights that have gone next to nowhere are slow also where noise hides what they win.
    """
    loss, path, held_back = seen.loss, seen.layers.path, held_back_loss(seen.history)
    if held_back is None or held_back.n < SEVERAL or loss.n < limit["steady_points"]:
        return None
    if loss.is_learned or not 0 < path < limit["stayed"] * loss.n:
        return None
    last, half = held_back.values[-SEVERAL:], SEVERAL // 2
    # A loss that passes below zero is no share of itself: its start says what much is.
    much = limit["stayed_fall"] * (loss.size if loss.is_signed else last[0])
    gets_on = last[0] - last[-1] > much and _is_steady(seen, limit)
    near = path < limit["stayed_path"] or crawls(loss, int(limit["steady_points"])) is not None
    better = 0 < np.median(last[half:]) < np.median(last[:half])
    stood = path < limit["stood"] and better and loss.now > SOME * loss.size
    if not (gets_on and near) and not stood:
        return None
    said = (
        f"in {loss.n} points the weights went {path:.2g} of their size, the loss to {loss.now:.4g}"
    )
    return Harm("crawls", int(loss.steps[0]), loss.fall, said)


def _crept(seen: Sight, limit: Limits) -> bool:
    """Have all steps together taken the weights next to nowhere, and the loss not far?

    A warm-up is on its way to larger ones.
    """
    near = seen.layers.path < limit["crept"] and seen.loss.fall < limit["crept_fall"]
    return near and not seen.is_warming_up


def _is_divided(seen: Sight) -> bool:
    """Is the training loss the held-back one by the size of a batch: a mean that is divided again?

    Its gradients are as much smaller, so that steps are, too.
    """
    held_back, loss = held_back_loss(seen.history), seen.loss
    if held_back is None or held_back.n < SEVERAL or not seen.batch or seen.batch < 4:
        return False
    places = np.searchsorted(loss.steps, held_back.steps, side="right")
    near = [np.median(loss.values[max(at - SHORT, 0) : at]) for at in places if at > 0]
    if len(near) < held_back.n or min(near) <= 0:
        return False
    apart = np.abs(held_back.values / np.array(near) / seen.batch - 1)
    return bool(np.percentile(apart, 100 * MOST) < PART)


def _is_young(seen: Sight, limit: Limits) -> bool:
    """Is it steady, with steps of a usual size, and not on its way down from far above guessing?"""
    return seen.loss.now > limit["way"] * seen.loss.start and _is_steady(seen, limit)


def _is_steady(seen: Sight, limit: Limits) -> bool:
    """Does held-back data get better at every look, while the weights have hardly gone anywhere?

    Then it is learning, and only too slowly: larger steps would take it the same way.
    """
    held_back = held_back_loss(seen.history)
    if held_back is None or held_back.n < SEVERAL or _may_wake(seen, held_back):
        return False
    better = float((np.diff(held_back.values[-SEVERAL:]) < 0).mean())
    young = seen.layers.path < limit["path"] and seen.loss.n >= limit["steady_points"]
    return young and better >= MOST


def _may_wake(seen: Sight, held_back: Losses) -> bool:
    """Is it on a saddle, or leaving one? Gradients grow there, and will move the loss by then.

    Where it has long been moving, and gradients are about what they were all along, it does not
    move for want of them.
    """
    sizes = seen.layers.typical_gradient
    known = np.zeros(0) if sizes is None else sizes[np.isfinite(sizes)]
    if not seen.is_waking or not len(known):
        return False
    stands = held_back.values[-1] > (1 - SOME) * held_back.values[0]
    return bool(stands or np.median(known[-RECENT:]) > CLEARLY * np.median(known))
