"""A loss that leaps out of its course at one step, by a step that was too large or a bad batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.signs.degrees import LITTLE, SEVERAL
from ..detectors.signs.inputs import swell
from ..detectors.signs.leaps import LEAP, Leap, is_alone, leap, stays_out, update_before
from ..detectors.signs.limits import Limits
from ..detectors.signs.rates import stepped
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.wording import above, finding
from ..detectors.striking.steps import struck
from ..history.history import History
from ..records.runs import Fix, RunFinding, RunSeverity
from . import diagnosis

THRESHOLDS = {
    **LEAP,
    "update": Threshold(
        30.0,
        "update at that step by the usual one; healthy runs of large learning rates leap by "
        "themselves after updates up to 20 times the usual, and come back",
    ),
    "stay": Threshold(12, "points for which it must stay out, where no update explains it"),
    "level": Threshold(0.5, "the loss out there by its start, where no update explains it"),
    "known_rise": Threshold(
        1.3,
        "height over the usual loss behind one step whose rate or inputs "
        "were far above those beside it",
    ),
    "batch": Threshold(10.0, "height over the highest before of the loss of a bad batch"),
    "usual": Threshold(3.0, "largest update before by the usual one: more, and a step did it"),
    "thrown": Threshold(
        1.0,
        "rise of the loss behind a batch whose gradient was far beyond all "
        "before it, by the usual loss or its farthest noise",
    ),
    "far": Threshold(
        50.0,
        "height over the highest before of a leap above the start, behind which "
        "a smaller update suffices",
    ),
    "far_update": Threshold(10.0, "update at that step by the usual one, where it does"),
}


@diagnosis(needs=("loss",), window=25, thresholds=THRESHOLDS)
def spike(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find the step at which the loss leapt out of its course and stayed out for some points."""
    limit = Limits("spike", policy, THRESHOLDS)
    seen = sight(history)
    loss = seen.loss
    if not loss.start > 0:
        return
    known = struck(seen, limit)
    found = None if known else leap(loss, limit)
    yield from known
    if found is None:
        return
    at, step, height, deviations = found
    size, where, names = update_before(seen, step)
    least = limit["far_update" if _is_far(seen, limit, found) else "update"]
    caused = size is not None and size >= least and is_alone(seen, where, step)
    if caused and _is_the_rates(seen, where):
        return
    batch = not caused and _is_bad_batch(seen, limit, found, size)
    since = where if caused and where is not None else step
    severity = _severity(seen, limit, at, caused or batch)
    yield from finding(
        "spike",
        severity,
        f"the loss leapt at step {step} to {height:.3g} times the highest of the "
        f"{limit['before']} points before"
        + (f"; the update of step {where} was {size:.3g} times the usual one" if caused else "")
        + ("; the steps before were as usual: that batch was not" if batch else ""),
        {"height_by_highest": height, "rise_threshold": limit["rise"],
         "deviations": deviations, "deviations_threshold": limit["deviations"],
         "update_by_usual": size, "update_threshold": least, "loss": float(
             loss.values[at])},
        since=since,
        layers=names if caused else [],
        cause="one step was far larger than the others: the learning rate, or a gradient that was "
        "not clipped" if caused else "a batch unlike the others, or a step into a bad place",
        advice=["rewind to before the step and leave that batch out", "clip gradients",
                "check the schedule for a step with a wrong learning rate"],
        signs=[above(deviations, limit["deviations"]), above(height, 1.0)],
        fix=Fix("rewind_and_skip", {"step": where if caused else step}) if caused or batch
        else _clip(seen, step),
    )  # fmt: skip


def _is_the_rates(seen: Sight, where: int | None) -> bool:
    """Was it the first of many steps at a rate that rose to stay? That is told as lr-high."""
    at = stepped(seen)
    return at is not None and where is not None and abs(int(seen.steps[at]) - where) <= 1


def _is_far(seen: Sight, limit: Limits, found: Leap) -> bool:
    """Is a leap so far beyond all before, and where the run began, that no sound step makes it?"""
    peak = float(seen.loss.values[found.at : found.at + 5].max())
    return found.height >= limit["far"] and peak > seen.loss.start


def _is_bad_batch(seen: Sight, limit: Limits, found: Leap, size: float | None) -> bool:
    """Was one batch unlike the others: far out by itself, after steps as usual?

    Its inputs show it where activations are recorded. Else its loss does: above where the run
    began, and the next ones far below it, as the weights were not to blame. Nor were they where the
    step before it was small beside them, whatever that batch then made of them.
    """
    if size is None or size > limit["usual"]:
        return False
    swelled = swell(seen)
    if swelled is not None:
        return not swelled.lasts and abs(swelled.step - found.step) <= 1
    values = seen.loss.values
    height, after = float(values[found.at]), values[found.at + 1 : found.at + 4]
    far = found.height > limit["batch"] and height > seen.loss.start
    at_once = height > limit["batch"] * float(values[: found.at].max())
    return bool(far and (np.median(after) < height / 3 or (at_once and _hardly_moved(seen, found))))


def _hardly_moved(seen: Sight, found: Leap) -> bool:
    """Were the steps before the leap so small beside the weights that they explain no such loss?"""
    typical = seen.layers.typical_update
    before = np.full(1, np.inf) if typical is None else typical[seen.steps < found.step][-SEVERAL:]
    return bool(len(before) and np.nan_to_num(before, nan=np.inf).max() < LITTLE)


def _clip(seen: Sight, step: int) -> Fix | None:
    """Offer the usual gradient norm as a bound, where it is known."""
    norms = seen.history.course.global_norm()
    before = None if norms is None else norms[seen.steps < step][-20:]
    if before is None or not np.isfinite(before).any():
        return None
    return Fix("clip_gradients", {"max_norm": float(np.nanmedian(before))})


def _severity(seen: Sight, limit: Limits, at: int, caused: bool) -> RunSeverity:
    """Warn of a leap with a cause, or one that does not come back; tell of others as info."""
    away = stays_out(seen.loss, at, int(limit["stay"]), limit["level"])
    return "warning" if caused or away else "info"
