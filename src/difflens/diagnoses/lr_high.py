"""A learning rate that is too high: steps large beside the weights, and a loss that suffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..records import Policy, Threshold
from ..runs import RunFinding
from . import diagnosis
from .signs.limits import Limits
from .signs.losses import Harm, Losses, broke, levels, rose, stuck
from .signs.rates import hold, lower
from .signs.recurrence import RECURRENT
from .signs.sight import Sight, sight
from .signs.wording import above, finding

if TYPE_CHECKING:
    from ..history.history import History

THRESHOLDS = {
    "update": Threshold(
        0.03, "median update by weight of the matrices: about 0.001 is usual, 0.05 still can work"
    ),
    "rise": Threshold(1.15, "loss over where it started: a level of five points above it"),
    "gradient": Threshold(50.0, "gradient by weight at the start above which the fault lies "
                          "in the weights or the data, not in the learning rate"),
    "first_loss": Threshold(20.0, "first loss by that of guessing above which the same holds"),
    "recovered": Threshold(0.3, "share by which the loss fell since: more, and a rise is past"),
    "swing": Threshold(0.5, "spread of the loss over its level, where it does not rise"),
}  # fmt: skip

_NEAR = 0.1  # fall of a loss that may still be on its way off a saddle
_BEFORE, _AFTER = 20, 3  # points about the beginning of the harm in which steps must be large
_AIM = 0.015  # of the weights: what a first update of a sound run changes


@diagnosis(needs=("update_l2", "weight_l2", "loss"), window=8, thresholds=THRESHOLDS)
def lr_high(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find updates that are large beside the weights where the loss rises or does not settle."""
    limit = Limits("lr-high", policy, THRESHOLDS)
    seen = sight(history)
    typical, gradient = seen.layers.typical_update, seen.layers.typical_gradient
    if typical is None or gradient is None or seen.points < 4:
        return
    first = seen.loss.first_by_chance
    if gradient[0] > limit["gradient"] or (first is not None and first > limit["first_loss"]):
        return
    harms = (_rose(seen, limit), _broke(seen, limit), _swings(seen.loss, limit),
             _stays(seen, limit))  # fmt: skip
    for told in harms:
        found = None if told is None else _large(seen, limit, told)
        if told is not None and found is not None:
            yield _told(seen, limit, *found, told)
            return


def _large(seen: Sight, limit: Limits, told: Harm) -> tuple[float, int] | None:
    """Give the size of the large steps that came before the harm, and the first of them.

    A step shows in the loss of the next one: steps that are large only since the loss is high
    follow from it. They must last, too: a single one is a leap, and has another name.
    """
    typical = seen.layers.typical_update
    if typical is None:
        return None
    known = np.isfinite(typical)
    values, steps = typical[known], seen.steps[known]
    at = int(np.searchsorted(steps, told.since))
    # A rate that climbs kills units first and lifts the loss much later.
    sudden = told.kind == "above" and hold(seen) is None
    low = max(at - _BEFORE, 0) if sudden else 0
    cause = low + np.flatnonzero(values[low : max(at, 1)] >= limit["update"])
    about = values[low : at + _AFTER]
    course = levels(about, min(3, len(about)))
    if not len(cause) or not len(course) or course.max() < limit["update"]:
        return None
    first = int(cause[0])
    while first and np.median(values[max(first - 5, 0) : first]) >= limit["update"]:
        first -= 1
    return float(course.max()), int(steps[first])


def _rose(seen: Sight, limit: Limits) -> Harm | None:
    """Did the loss rise above its start, and has the run not learned since?

    Adam's first steps often throw a loss up that comes down by itself, and far.
    """
    told, loss = rose(seen.loss, limit["rise"]), seen.loss
    if told is None:
        return None
    level = min(loss.reference, float(loss.values[0]))
    fell = (level - float(np.median(loss.values[-5:]))) / max(abs(level), 1e-300)
    return None if fell > limit["recovered"] else told


def _broke(seen: Sight, limit: Limits) -> Harm | None:
    """Did the loss cease to be a number right after steps as large as the weights?

    A bad sample breaks it as well, after steps of any size: those must be far too large.
    """
    told, typical = broke(seen.loss), seen.layers.typical_update
    if told is None or typical is None:
        return None
    before = typical[seen.steps < told.since][-5:]
    before = before[np.isfinite(before)]
    return told if len(before) and float(before.max()) > 5 * limit["update"] else None


def _swings(loss: Losses, limit: Limits) -> Harm | None:
    """Does the loss swing widely without getting anywhere?"""
    if loss.n < 40 or loss.start <= 0:
        return None
    late = loss.values[-max(loss.n // 2, 30) :]
    low, middle, high = np.percentile(late, [25, 50, 75])
    half = len(late) // 2
    falls = float(np.median(late[half:])) < 0.8 * float(np.median(late[:half]))
    if falls or middle <= 0 or middle < 0.4 * loss.start or (high - low) < limit["swing"] * middle:
        return None
    said = f"the loss swings between {low:.3g} and {high:.3g} (it started at {loss.start:.3g})"
    return Harm("above", int(loss.steps[0]), float((high - low) / middle), said)


def _stays(seen: Sight, limit: Limits) -> Harm | None:
    """Is the loss stuck for long although the first steps were large?"""
    told = stuck(seen.loss, 60)
    # Recurrent networks rest long before they learn, whatever their steps.
    if any(layer.kind in RECURRENT for layer in seen.history.info.layers):
        return None
    typical = seen.layers.typical_update
    if told is None or typical is None or (seen.is_waking and seen.loss.fall < _NEAR):
        return None
    first = typical[:3][np.isfinite(typical[:3])]
    return told if len(first) and float(first.max()) >= limit["update"] else None


def _told(seen: Sight, limit: Limits, peak: float, since: int, told: Harm) -> RunFinding:
    ratios = seen.layers.update
    place = int(np.searchsorted(seen.steps, since))
    sizes = (np.zeros(0) if ratios is None
             else np.nan_to_num(ratios[place : place + 5], posinf=1e30).max(axis=0))  # fmt: skip
    worst = np.argsort(-sizes, kind="stable")
    factor = _factor(seen, peak)
    return finding(
        "lr-high",
        "critical",
        f"a step changes the weights by up to {peak:.2g} of their size; {told.said}",
        {"update_by_weight": peak, "update_threshold": limit["update"], "harm": told.said,
         "harm_step": told.since, **_rate(seen)},
        since=since,
        layers=seen.layers.named(worst[:10]),
        cause="steps are larger than the valley they should follow: the learning rate, or the "
        "momentum, is too high",
        advice=[f"multiply the learning rate by about {factor:.1g}", "warm it up",
                "lower the momentum where it is above 0.95"],
        signs=[above(peak, limit["update"])],
        fix=lower(seen, factor),
    )  # fmt: skip


def _factor(seen: Sight, peak: float) -> float:
    """Give the factor that would make updates about a hundredth of the weights.

    The first update tells best: later ones grew with the harm. Momentum m adds up to 1/(1 - m)
    of it. Where the learning rate itself grew, its first value was not the fault, and the peak
    counts.
    """
    rates, typical = seen.lr, seen.layers.typical_update
    known = np.zeros(0) if rates is None else rates[np.isfinite(rates)]
    rising = len(known) > 0 and float(known.max()) > 2 * float(known[0])
    first = np.zeros(0) if typical is None else typical[:2][np.isfinite(typical[:2])]
    if rising or not len(first) or float(first[0]) <= 0:
        return float(np.clip(0.003 / peak, 0.001, 0.3))
    momentum = seen.history.info.optimizer.get("momentum")
    held = float(momentum) if isinstance(momentum, (int, float)) and 0 < momentum < 1 else 0.0
    return float(np.clip(_AIM * (1 - held) / float(first[0]), 0.001, 0.3))


def _rate(seen: Sight) -> dict[str, float]:
    rates = seen.lr
    known = [] if rates is None else rates[np.isfinite(rates)]
    return {"lr": float(max(known))} if len(known) else {}
