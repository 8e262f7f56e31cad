"""A run that is about to blow up: the trend of loss or gradients, told ahead of the end.

The forecast is a straight line through ln of the recent values (Theil 1950, Sen 1968). An
exponential trend that noise does not explain, and that reaches ten times the present within the
horizon, is announced. An autoregressive forecast was not taken: it returns to the mean, and what
blows up does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.driving.drives import driven, largest
from ..detectors.driving.restarts import restarts
from ..detectors.signs.degrees import NEARLY, SEVERAL, TWICE
from ..detectors.signs.harms import Harm, broke, lost, worsened
from ..detectors.signs.held_back import held_back_loss
from ..detectors.signs.limits import Limits
from ..detectors.signs.losses import Losses, levels
from ..detectors.signs.rates import is_rising, lower
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.trends import trends
from ..detectors.signs.wording import above, finding
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "points": Threshold(20, "points of the trend"),
    "horizon": Threshold(60, "steps ahead within which it must reach the mark"),
    "mark": Threshold(10.0, "times the present size that count as blown up"),
    "signal": Threshold(4.0, "rise over the trend's points by the noise about it"),
    "loss_rise": Threshold(1.3, "late level of the loss by its lowest level before"),
    "loss_share": Threshold(
        0.1,
        "rise of that level in shares of the start: what rises from "
        "next to nothing to little is no harm",
    ),
    "ramp_rise": Threshold(1.25, "the same rise, while the learning rate is higher than ever"),
    "ramp_share": Threshold(0.015, "the same share, while the learning rate is higher than ever"),
    "ramp_update": Threshold(2.0, "update by weight, by what it was where the loss was lowest"),
    "again": Threshold(1.5, "held-back loss by its best, where the training loss climbs back too"),
    "again_share": Threshold(0.15, "climb of that training loss in shares of its start"),
    "endless_points": Threshold(100, "points after which a rate may not grow by its own size"),
    "endless": Threshold(1.15, "growth of the rate over ten points by then: a line makes 1.1"),
    "endless_times": Threshold(20.0, "the rate by its first"),
}

_SHRUNK = 1 / 3  # of the largest gradients, and steps, since the loss was lowest


@diagnosis(needs=("loss",), window=20, thresholds=THRESHOLDS)
def diverging(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find an exponential trend of loss, gradients or updates that ends in a blow-up soon."""
    limit = Limits("diverging", policy, THRESHOLDS)
    seen = sight(history)
    known = driven(seen)
    yield from known
    if known or seen.loss.n < limit["points"] + 10 or seen.loss.start <= 0:
        return
    found = _ramp(seen, limit) or _runaway(seen, limit) or _foretold(seen, limit)
    yield from found or _lost_again(seen, limit)


def _ramp(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a learning rate that goes on rising past the point at which the loss turned."""
    rates, typical = seen.lr, seen.layers.typical_update
    if rates is None or typical is None or not is_rising(rates):
        return []
    rise, share, lowest = _rise(seen.loss.values, 10)
    # Where all is learned still, a few hard batches make a loss many times its lowest.
    learned = float(levels(seen.loss.values, 10)[-1]) < limit["loss_share"] * seen.loss.start
    if learned or rise < limit["ramp_rise"] or share < limit["ramp_share"] * seen.loss.start:
        return []
    place = int(np.searchsorted(seen.steps, seen.loss.steps[lowest]))
    before, now = typical[max(place - 10, 0) : place + 1], typical[-10:]
    if not np.isfinite(before).any() or not np.isfinite(now).any():
        return []
    growth = float(np.nanmedian(now) / max(float(np.nanmedian(before)), 1e-30))
    if growth < limit["ramp_update"] or _dies_away(seen, place):
        return []
    best = float(rates[place])
    if not best > 0:
        return []  # no multiple of it can be told
    return finding(
        "diverging",
        "warning",
        f"the learning rate is {float(rates[-1]) / best:.3g} times what it was when the loss "
        f"was lowest (step {int(seen.steps[place])}) and still rises; the loss is {rise:.3g} "
        "times that low already",
        {
            "loss_by_lowest": rise,
            "ramp_rise_threshold": limit["ramp_rise"],
            "rise_share": share / seen.loss.start,
            "update_growth": growth,
            "ramp_update_threshold": limit["ramp_update"],
            "lr": float(rates[-1]),
            "lr_at_lowest": best,
        },
        since=int(seen.steps[place]),
        layers=seen.layers.named(largest(seen)),
        cause="the learning rate rises past what the loss can follow",
        advice=[
            f"cap the learning rate near {best / 4:.2g}",
            "end the warm-up earlier",
            "clip gradients",
        ],
        signs=[above(growth, limit["ramp_update"] / 2), above(rise, 1.0)],
        fix=lower(seen, 0.1),
    )


def _dies_away(seen: Sight, lowest: int) -> bool:
    """Do steps and gradients shrink again since the loss was lowest, though the rate rises?

    They do behind one leap of a sound warm-up, and the loss follows. On a ramp that went too far
    they come back, as high as before or higher.
    """
    norms, typical = seen.history.course.global_norm(), seen.layers.typical_update
    parts = [_latest(norms, lowest), _latest(typical, lowest)]
    return parts[0] < _SHRUNK and parts[1] < NEARLY


def _latest(values: Any, since: int) -> float:
    """Return the latest level by the highest since a point; one where nothing is known."""
    known = np.zeros(0) if values is None else values[since:]
    course = levels(known[np.isfinite(known)], 3)
    return float(course[-1] / course.max()) if len(course) and course.max() > 0 else 1.0


def _foretold(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a schedule that no loss can follow for long, while it still does.

    What it did then is told by itself, and says more.
    """
    if broke(seen.loss) or lost(seen.loss, limit["loss_rise"]):
        return []
    return restarts(seen) or _endless(seen, limit)


def _endless(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a learning rate that grows exponentially without end, before the loss shows it.

    Warm-ups grow along a line, which slows down by its own measure.
    """
    rates = None if seen.lr is None else seen.lr[np.isfinite(seen.lr)]
    if rates is None or len(rates) < limit["endless_points"] or not is_rising(rates):
        return []
    if rates[-11] <= 0:
        return []  # nothing was multiplied yet
    now, first = float(rates[-1]), float(rates[0])
    growth, times = now / float(rates[-11]), now / max(first, 1e-300)
    if growth < limit["endless"] or times < limit["endless_times"]:
        return []
    return finding(
        "diverging",
        "warning",
        f"the learning rate is {times:.3g} times its first and grows by {growth - 1:.0%} in "
        "ten points: no run can follow that for long",
        {
            "lr": float(rates[-1]),
            "first_lr": float(rates[0]),
            "growth": growth,
            "endless_threshold": limit["endless"],
            "times": times,
        },
        since=int(seen.steps[0]),
        cause="the schedule multiplies the rate by more than one at each step",
        advice=["take a factor below one", "end the warm-up at a fixed rate"],
        signs=[above(times, limit["endless_times"] / 2)],
        fix=Fix("fix_schedule", {"hold": float(rates[0])}),
    )


def _lost_again(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a loss that climbs back, with the held-back loss, though nothing else tells why.

    Slowly, so that no trend of a few points shows it. A rate that comes back (cycles, restarts)
    lifts the training loss as well, and held-back data hardly.
    """
    told, held_back = worsened(seen.loss, limit["again_share"]), held_back_loss(seen.history)
    if told is None or held_back is None or held_back.n < SEVERAL or held_back.values.min() <= 0:
        return []
    rise = float(held_back.values[-3:].min() / held_back.values.min())
    if rise < limit["again"]:
        return []
    return finding(
        "diverging",
        "warning",
        f"{told.said}, and the held-back loss rose to {rise:.3g} times its best",
        {"loss_by_lowest": told.figure, "held_back_rise": rise, "again_threshold": limit["again"]},
        since=_climb(seen.loss, told),
        layers=seen.layers.named(largest(seen)),
        cause="steps undo what was learned: the learning rate has become too high, or some "
        "gradients point the wrong way",
        advice=[
            "go back to the step of the lowest loss",
            "lower the learning rate",
            "check what changes gradients before the step",
        ],
        signs=[above(rise, 1.0), above(told.figure, 1.0)],
        fix=lower(seen, 0.1),
    )


def _climb(loss: Losses, told: Harm) -> int:
    """Return the step after which no level comes near the lowest again: the cause began there."""
    course = levels(loss.values, SEVERAL)
    near = np.flatnonzero(course < TWICE * course.min())
    if not len(near):
        return told.since  # a level at zero or below it has none near
    return max(told.since, int(loss.steps[near[-1] + SEVERAL // 2]))


def _runaway(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a loss that grows together with the gradients or updates, exponentially."""
    rise, share, lowest = _rise(seen.loss.values, 8)
    low = rise < limit["loss_rise"] or share < limit["loss_share"] * seen.loss.start
    found = (
        []
        if low
        else [
            each
            for each in trends(seen, limit["points"], limit["mark"])
            if each.signal >= limit["signal"] and 0 < each.reach <= limit["horizon"]
        ]
    )
    if len(found) < 2 or found[0].what != "loss":
        return []
    worst = min(found, key=lambda each: (each.reach, each.what))
    # Not before the lowest level: what a bad batch began is not older than it.
    steps = seen.loss.steps  # all of them: layers may have been read of fewer
    since = max(int(steps[-min(limit["points"], len(steps))]), int(steps[lowest]))
    return finding(
        "diverging",
        "warning",
        f"the {worst.what} grows by {np.expm1(worst.per_step):.1%} a step: at this pace it is "
        f"{limit['mark']:g} times as large in about {worst.reach:.0f} steps; the loss is "
        f"{rise:.3g} times its lowest level",
        {
            "growth_a_step": float(np.expm1(worst.per_step)),
            "signal": worst.signal,
            "signal_threshold": limit["signal"],
            "steps_ahead": worst.reach,
            "horizon": limit["horizon"],
            "loss_by_lowest": rise,
            "loss_rise_threshold": limit["loss_rise"],
        },
        since=since,
        layers=seen.layers.named(largest(seen)),
        cause="each step makes the next one larger: the learning rate has become too high for "
        "where the weights are",
        advice=["lower the learning rate now", "clip gradients", "go back to an earlier step"],
        signs=[above(worst.signal, limit["signal"] / 2)],
        fix=lower(seen, 0.1),
    )


def _rise(values: Any, width: int) -> tuple[float, float, int]:
    """Return the late level of the loss by its lowest before, their difference, and that place.

    A level is a median, so that one bad batch raises nothing.
    """
    course = levels(values, width)
    lowest = int(np.argmin(course[: max(len(course) - width, 1)]))
    low, late = float(course[lowest]), float(course[-1])
    return late / low if low > 0 else 0.0, late - low, lowest + width - 1
