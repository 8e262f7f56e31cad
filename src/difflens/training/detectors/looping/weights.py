"""Weights that are put back, undone, or stepped several times at once."""

from __future__ import annotations

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import HALF, HARDLY
from ..signs.held_back import held_back_loss
from ..signs.layers import median
from ..signs.limits import Limits
from ..signs.sight import Sight
from ..signs.wording import above, below, finding
from ..signs.writes import STEPS, held_since, undone, writes

_ADAMS = ("adam", "adamw", "nadam", "adamax")
_CAUSE = (
    "the weights are put back after the steps (an average, a checkpoint, a copy), or another "
    "model than the trained one is measured"
)
_ADVICE = (
    "look for code that writes to the weights beside the optimiser",
    "measure the model that is trained",
)

_LEAVE = Fix("leave_weights")


def put_back(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find weights that do not stay where steps take them."""
    return _leapt(seen, limit) or _stuck_biases(seen) or _undone(seen) or _same(seen, limit)


def _leapt(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find weights whose norm changes several times by far more than their update."""
    found = writes(seen)
    if len(found) < limit["writes"]:
        return []
    worst = max(found, key=lambda each: each.times)
    return finding(
        "wiring",
        "critical",
        f"the weights of {worst.layers[0]} and others changed {len(found)} times by far more "
        f"than their update, up to {worst.times:.3g} times as much",
        {"writes": len(found), "writes_threshold": limit["writes"], "times": worst.times},
        since=found[0].step,
        layers=worst.layers,
        cause=_CAUSE,
        advice=_ADVICE,
        fix=_LEAVE,
        signs=[above(len(found), limit["writes"] / 2)],
    )


def _stuck_biases(seen: Sight) -> list[RunFinding]:
    """Find biases that were written to next to nothing, and that no step takes away from there."""
    found = writes(seen)
    far = held_since(seen, found[0]) if len(found) == 1 else None
    if far is None or far > HALF:
        return []
    return finding(
        "wiring",
        "critical",
        f"the weights of {found[0].layers[0]} and others were written at step {found[0].step}, "
        f"and all steps since took biases {far:.2g} of the way that steps to nowhere take them",
        {"way_by_walk": far, "times": found[0].times, "layers": len(found[0].layers)},
        since=found[0].step,
        layers=found[0].layers,
        cause=_CAUSE,
        advice=_ADVICE,
        signs=[below(far, HALF)],
        fix=_LEAVE,
    )


def _undone(seen: Sight) -> list[RunFinding]:
    """Find biases that began at zero and are still no longer than a step or two."""
    length = undone(seen)
    if length is None or _has_learned(seen) or _shrank(seen):
        return []
    return finding(
        "wiring",
        "warning",
        f"after {seen.points} steps biases that began at zero are {length:.2g} steps long: "
        "what a step changes is taken back",
        {"steps_long": length, "points": seen.points},
        since=int(seen.steps[0]),
        cause=_CAUSE,
        advice=_ADVICE,
        signs=[below(length, STEPS)],
        fix=_LEAVE,
    )


def _has_learned(seen: Sight) -> bool:
    """Did a loss fall by half of where it began, and by half of what batches differ by?

    A loss that passes zero is a small number there, and by that any fall is large.
    """
    apart = float(np.std(seen.loss.values)) if seen.loss.n else 0.0
    for loss in (seen.loss, held_back_loss(seen.history)):
        if loss is None or not loss.n:
            continue
        began = max(loss.reference, float(np.median(loss.values[: loss.width])))
        if loss.reference == loss.chance:
            began = loss.reference  # large first outputs need only shrink to cost no more
        if began - loss.now > HALF * max(abs(began), 2 * apart):
            return True
    return False


def _shrank(seen: Sight) -> bool:
    weights = seen.layers.weights
    if weights is None or not len(weights) or not (weights[0] > 0).all():
        return False
    return bool(median(weights[-1] / weights[0], axis=0) < HALF)


def _same(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find steps that change the weights while the held-back loss stays exactly as it was."""
    held_back, pace = held_back_loss(seen.history), seen.layers.typical_update
    if held_back is None or held_back.n < limit["same_values"] or pace is None:
        return []
    values = held_back.values[-int(limit["same_values"]) :]
    since = int(held_back.steps[-len(values)])
    late = pace[seen.steps >= since]
    # The median: a rate that comes to its end moved the weights before.
    size = float(np.median(late[np.isfinite(late)])) if np.isfinite(late).any() else 0.0
    if float(np.ptp(values)) > 0 or size < limit["moving"] or _gets_nothing(seen, since):
        return []
    return finding(
        "wiring",
        "critical",
        f"steps change the weights by {size:.1g} of their size, and the held-back loss was "
        f"exactly {float(values[-1]):.4g} {len(values)} times",
        {
            "held_back": float(values[-1]),
            "same_values": len(values),
            "same_values_threshold": limit["same_values"],
            "update_by_weight": size,
        },
        since=since,
        cause=_CAUSE,
        advice=_ADVICE,
        fix=_LEAVE,
        signs=[above(len(values), limit["same_values"] / 2)],
    )


def _gets_nothing(seen: Sight, since: int) -> bool:
    """Are all gradients zero since then? Decay alone moves such weights, and no loss shows it."""
    gradients = seen.history.course.global_norm()
    late = np.zeros(0) if gradients is None else gradients[seen.steps >= since]
    return len(late) > 0 and bool((late == 0).all())


def repeated(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a first step that is several times what its gradient and the learning rate make.

    The first step of SGD is the rate times the gradient (Nesterov's at most twice that), and that
    of Adam changes every weight by the rate. Where that is known to the digit in every layer, a
    step that is twice as large was made twice.
    """
    found = _times(seen)
    times = None if found is None else float(np.median(found))
    if found is None or times is None or not (times >= limit["repeated"] or _is_twice(seen, found)):
        return []
    return finding(
        "wiring",
        "warning",
        f"the first step was {times:.3g} times what its gradient and the learning rate make",
        {"times": times, "repeated_threshold": limit["repeated"]},
        since=int(seen.steps[0]),
        cause="parameters are handed to the optimiser more than once, step() is called several "
        "times, or something else moves the weights",
        advice=["hand every parameter to the optimiser once", "call step() once a batch"],
        fix=Fix("step_once"),
        signs=[above(times, min(limit["repeated"], times) / 2)],
    )


def _is_twice(seen: Sight, found: list[float]) -> bool:
    """Is the first step of plain SGD or Adam exactly two of what it should be, in each layer?"""
    given = seen.history.info.optimizer
    if given.get("nesterov") is not False and str(given.get("name", "")).lower() != "adam":
        return False
    if seen.lr is None or len(seen.lr) < 2 or seen.lr[1] != seen.lr[0]:
        return False  # a rate on its way may have been read a step too early, or too late
    return bool(np.abs(np.array(found) / 2 - 1).max() < HARDLY)


def _clipped_share(seen: Sight) -> float:
    """Return what clipping left of the first gradient, which was recorded before it."""
    factors = seen.history.course.scalar("clip_factor")
    first = 1.0 if factors is None or not len(factors) else float(factors[0])
    return first if 0 < first < 1 else 1.0


def _times(seen: Sight) -> list[float] | None:
    """Return each first update by what it should be; None of other optimisers, rates, and decay."""
    given, course = seen.history.info.optimizer, seen.history.course
    updates, gradients = course.field("update_l2"), course.field("grad_l2")
    name, layers = str(given.get("name", "")).lower(), seen.history.info.layers
    if updates is None or gradients is None or seen.lr is None or not len(updates):
        return None
    if name not in ("sgd", *_ADAMS) or given.get("weight_decay") or not seen.lr[0] > 0:
        return None
    if given.get("several_rates") or given.get("others"):  # what is recorded is the first one's
        return None
    kept, rate = _clipped_share(seen), float(seen.lr[0])
    found = []
    for i, layer in enumerate(layers):
        due = rate * (float(gradients[0, i]) * kept if name == "sgd" else layer.count**0.5)
        if layer.trainable and gradients[0, i] > 0 and due > 0:
            found.append(float(updates[0, i]) / due)
    known = [each for each in found if np.isfinite(each)]
    return known if len(known) > 1 else None
