"""A loss that stands still above where it could be: a schedule that ended early, or a flat place.

That a test finds no slope is no proof of flatness. So the interval of the slope must lie within a
small band about zero (equivalence); where noise makes it wider, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.feeding.thinning import thinned
from ..detectors.signs.degrees import NEARLY, SEVERAL, SOME, TENFOLD
from ..detectors.signs.harms import stuck
from ..detectors.signs.held_back import held_back_loss
from ..detectors.signs.limits import Limits
from ..detectors.signs.raising import raised
from ..detectors.signs.recurrence import is_recurrent
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.wording import above, below, finding
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "rate": Threshold(0.02, "learning rate by its highest: below, the schedule is at its end"),
    "rest": Threshold(
        0.5,
        "steps at that end by steps before it: a schedule that ends where the "
        "run ends spends a few per cent of it there",
    ),
    "fall": Threshold(0.95, "share by which the loss fell: more, and the end may be deserved"),
    "points": Threshold(150, "points over which a loss must be flat, where no schedule tells why"),
    "recurrent_points": Threshold(
        400, "the same for recurrent networks, whose first plateau is often long"
    ),
    "band": Threshold(0.01, "slope in shares of the start per 100 steps that counts as flat"),
    "near": Threshold(0.1, "fall of the loss below which it is stuck near its start"),
}


@diagnosis(needs=("loss",), window=15, thresholds=THRESHOLDS)
def plateau(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find a flat loss: after a schedule that ended early, or near where it started."""
    limit = Limits("plateau", policy, THRESHOLDS)
    seen = sight(history)
    yield from _schedule(seen, limit) or thinned(seen) or _flat(seen, limit)


def _schedule(seen: Sight, limit: Limits) -> list[RunFinding]:
    rates = seen.lr
    if rates is None or seen.loss.n < 15:
        return []
    known = np.isfinite(rates)
    if not known.any():
        return []
    values, steps = rates[known], seen.steps[known]
    # A rate that stood for a point or two is a slip, not the height of a schedule.
    top = float(np.sort(values)[-min(3, len(values))])
    running = np.flatnonzero(values > limit["rate"] * top) if top > 0 else np.zeros(0, int)
    if not len(running) or running[-1] + 1 >= len(values):
        return []
    end = int(running[-1]) + 1
    rest = (len(values) - end) / max(end, 1)
    if len(values) - end < 8 or rest < limit["rest"] or seen.loss.fall >= limit["fall"]:
        return []
    return finding(
        "plateau",
        "critical" if rest > 1 else "warning",
        f"the learning rate has been next to zero since step {int(steps[end])}, after "
        f"{end} points of training; the loss stands at {seen.loss.now:.4g} "
        f"(start {seen.loss.start:.4g})",
        {
            "lr": float(values[-1]),
            "highest_lr": top,
            "rate_threshold": limit["rate"],
            "rest_by_run": rest,
            "rest_threshold": limit["rest"],
            "loss_fall": seen.loss.fall,
        },
        since=int(steps[end]),
        cause="the schedule reaches its end long before the run does",
        advice=["give the schedule the real number of steps (steps, not epochs)"],
        signs=[above(rest, limit["rest"] / 2)],
        fix=Fix("fix_schedule"),
    )


def _flat(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a loss that never left its first height."""
    loss = seen.loss
    least = limit["recurrent_points" if is_recurrent(seen.history) else "points"]
    told = stuck(loss, least, limit["near"])
    if told is None or loss.fall >= limit["near"] or seen.is_warming_up or seen.is_waking:
        return []
    from difflens.stats.trend import theil_sen

    half = loss.n // 2
    slope = theil_sen(loss.steps[half:].astype(float), loss.values[half:] / loss.size)
    if slope is None or slope.low is None or slope.high is None:
        return []
    widest = 100 * max(abs(slope.low), abs(slope.high))
    if widest > limit["band"]:
        return []
    lost, factor = _was_better(seen), max(raised(seen) or TENFOLD, TENFOLD)
    return finding(
        "plateau",
        "warning",
        f"the loss is flat at {loss.now:.4g} near its start of {loss.start:.4g}",
        {
            "slope_a_100_steps": 100 * slope.value,
            "widest_slope_a_100_steps": widest,
            "band": limit["band"],
            "loss_fall": loss.fall,
            "points": loss.n,
        },
        since=told.since,
        cause="held-back data was answered better before, and steps are of a usual size: what "
        "is trained on has changed, its labels for one"
        if lost
        else "nothing that was recorded says why: a flat place, a bad start, or labels that "
        "cannot be learned",
        advice=["look at examples with their labels, as the model gets them now"]
        if lost
        else [
            "raise the learning rate, or warm it up further",
            "fit a single batch: where that fails, look at loss and labels",
        ],
        signs=[below(widest, limit["band"])],
        fix=Fix("check_labels") if lost else Fix("scale_lr", {"factor": factor}),
    )


def _was_better(seen: Sight) -> bool:
    """Was held-back data answered far better once, though no step was large enough to lose that?"""
    held_back, typical = held_back_loss(seen.history), seen.layers.typical_update
    if held_back is None or held_back.n < SEVERAL or typical is None:
        return False
    small = float(np.nan_to_num(typical).max(initial=0.0)) < SOME
    now = float(np.median(held_back.values[-3:]))
    return small and now > 0 and float(np.sort(held_back.values)[1]) < NEARLY * now
