"""One step that struck a run: overwritten weights, a rate, a batch or an update out of line."""

from __future__ import annotations

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import CLEARLY, LITTLE, RECENT, SEVERAL
from ..signs.harms import harm
from ..signs.inputs import swell
from ..signs.leaps import broke_behind, kicks
from ..signs.limits import Limits
from ..signs.losses import Losses, levels
from ..signs.outliers import blow, outlier, was_sound
from ..signs.sight import Sight
from ..signs.wording import above, finding
from ..signs.writes import Write, writes


def struck(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find the step that struck, where what it was can be told from the step itself."""
    if seen.loss.n <= limit["before"]:
        return []
    return (
        _overwritten(seen) or _known(seen, limit) or _outlying(seen, limit) or _blown(seen, limit)
    )


def _overwritten(seen: Sight) -> list[RunFinding]:
    """Find one step between which and the next weights changed by far more than their update."""
    found = writes(seen)
    if len(found) != 1:
        return []
    write = found[0]
    since = _step_before_rise(seen.loss, write)
    at = int(np.searchsorted(seen.loss.steps, since, side="right"))
    before, after = seen.loss.values[:at], seen.loss.values[at:][:RECENT]
    if len(before) < 3 or len(after) < 3 or np.median(after) < CLEARLY * np.median(before[-20:]):
        return []
    height = float(np.median(after) / max(float(np.median(before[-20:])), 1e-300))
    was_read = write.step == write.after + 1
    when = f"at step {write.step}" if was_read else f"between steps {write.after} and {write.step}"
    cause = "something beside the optimiser wrote to the weights: a flipped bit, a bad copy"
    return finding(
        "spike",
        "critical",
        f"the weights of {write.layers[0]} changed {when} by {write.times:.3g} times their "
        f"update{'' if was_read else 's'}, and the loss rose to {height:.3g} times what it was",
        {
            "times": write.times,
            "height_by_usual": height,
            "sound_before": was_sound(seen.loss, since),
        },
        since=since,
        layers=write.layers,
        cause=cause
        if was_read
        else f"one step that was not read was far larger than the others, or {cause}",
        advice=["rewind to before the step", "check memory, and code that writes to weights"],
        signs=[above(height, 1.0)],
        fix=Fix("rewind_and_skip", {"step": since}),
    )


def _step_before_rise(loss: Losses, write: Write) -> int:
    """Return the step of a write: of those it may have been, the one behind which the loss rose."""
    among = np.flatnonzero((loss.steps >= write.after) & (loss.steps <= write.step))
    if len(among) < 2:
        return write.step - 1
    return int(loss.steps[among[np.argmax(np.diff(loss.values[among]))]])


def _known(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find one step of a rate, or of inputs, far above those beside it, and a loss high behind it.

    Where the step itself tells which it was, the loss need not leap at once, nor as far.
    """
    rates, loss, swelled = seen.lr, seen.loss, swell(seen)
    kicked = [] if rates is None else kicks(rates)
    found = [(int(seen.steps[at]), "learning rate") for at in kicked]
    if swelled is not None and not swelled.lasts:
        found.append((swelled.step, "input"))
    for step, what in sorted(found):
        told = harm(loss) if step == int(seen.steps[0]) else None
        if told is not None:  # no course before it: what it did is all there is
            return _of_a_step(seen, step, what, told.said, above(loss.now, 0.7 * loss.start))
        at = int(np.searchsorted(loss.steps, step, side="right"))
        before, after = loss.values[: at - 1][-int(limit["before"]) :], loss.values[at:][:RECENT]
        if len(before) < limit["before"]:
            continue
        if broke_behind(loss, step):
            said = f"the loss is not a number since step {loss.broken}"
            return _of_a_step(seen, step, what, said, 1.0)
        if len(after) < limit["lasting"]:
            continue
        late = float(levels(after, min(5, len(after))).max())
        height = late / max(float(np.median(before)), 1e-300)
        if height > limit["known_rise"] and late > float(before.max()):
            said = f"the loss rose to {height:.3g} times what it was"
            figures = {"height_by_usual": height, "known_rise_threshold": limit["known_rise"]}
            return _of_a_step(seen, step, what, said, above(height, 1.0), **figures)
    return []


def _outlying(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find one batch far beyond all before it, and a loss that is high behind it.

    An optimiser with a memory goes on with that gradient for many steps: the loss of the next
    batches may be as it was, and rises for a while.
    """
    found, loss = outlier(seen), seen.loss
    if found is None:
        return []
    what = "gradient"
    figures = {"gradient_by_highest": found.times}
    if broke_behind(loss, found.step):
        said = f"the loss is not a number since step {loss.broken}"
        return _of_a_step(seen, found.step, what, said, 1.0, **figures)
    before = loss.values[max(found.at - int(limit["before"]), 0) : found.at]
    after = loss.values[found.at + 1 :][:RECENT]
    if len(after) < limit["lasting"]:
        return []
    usual = float(np.median(before))
    late = float(levels(after, min(5, len(after))).max())
    # A loss that is no square may be about zero, or below it: then its noise is the measure.
    rise = (late - usual) / max(abs(usual), float(np.abs(before - usual).max()), 1e-300)
    if rise <= limit["thrown"]:
        return []
    said = f"the loss rose from {usual:.3g} to {late:.3g}"
    figures |= {"rise_by_usual": rise, "thrown_threshold": limit["thrown"]}
    return _of_a_step(seen, found.step, what, said, above(rise, limit["thrown"] / 2), **figures)


def _blown(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find one step far larger than those before it, at their rate, and a loss that rises then."""
    found, loss = blow(seen), seen.loss
    if found is None:
        return []
    figures = {"update_by_highest": found.times}
    if broke_behind(loss, found.step):
        said = f"the loss is not a number since step {loss.broken}"
        return _of_a_step(seen, found.step, "update", said, 1.0, **figures)
    before = loss.values[max(found.at - int(limit["before"]), 0) : found.at + 1]
    after = loss.values[found.at + 1 :][:RECENT]
    if len(after) < limit["lasting"]:
        return []
    usual = float(levels(before, SEVERAL).max())
    late = float(levels(after, min(SEVERAL, len(after))).max())
    rise = late / max(usual, 1e-300)
    if rise <= limit["known_rise"] or late - usual < LITTLE * loss.size:
        return []
    said = f"the loss rose to {rise:.3g} times what it was"
    figures |= {"height_by_usual": rise, "known_rise_threshold": limit["known_rise"]}
    return _of_a_step(seen, found.step, "update", said, above(rise, 1.0), **figures)


def _of_a_step(
    seen: Sight, step: int, what: str, said: str, sign: float, **figures: float
) -> list[RunFinding]:
    return finding(
        "spike",
        "warning",
        f"the {what} of step {step} was far above those beside it, and {said}",
        {**figures, "what": what, "sound_before": was_sound(seen.loss, step)},
        since=step,
        cause="one step was far larger than the others"
        + (": something multiplied it" if what == "update" else f": its {what} was"),
        advice=[
            "rewind to before the step and leave it out",
            "check the schedule for a step with a wrong learning rate"
            if what == "learning rate"
            else "check the batch of that step",
            "clip gradients",
        ],
        signs=[sign],
        fix=Fix("rewind_and_skip", {"step": step}),
    )
