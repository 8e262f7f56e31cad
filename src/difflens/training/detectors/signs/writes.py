"""What beside the optimiser writes to the weights: overwritten, put back, or undone at each step.

A step moves weights by no more than its own size. Where their norm changed by far more than the
update that was recorded, something else wrote to them; or one of the steps that were not read in
between was far larger than those beside it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .degrees import FIVEFOLD, HALF, LASTING, LONG, MOST, TENFOLD, THRICE, TWICE
from .sight import Sight

STEPS = 2.0  # updates: noise alone takes them as far in four steps


class Write(NamedTuple):
    """The point of a write, its step, the layers, the worst first, and by how many updates.

    It happened behind the step `after`, the last that was read before it.
    """

    at: int
    step: int
    after: int
    layers: list[str]
    times: float


def writes(seen: Sight) -> list[Write]:
    """Return the steps between which weights changed by far more than their update."""
    course = seen.history.course
    weights, updates = course.field("weight_l2"), course.field("update_l2")
    if weights is None or updates is None or len(weights) < 2 or _is_estimated(seen):
        return []
    before, after = weights[:-1].astype(np.float64), weights[1:].astype(np.float64)
    unread = np.diff(course.steps)[:, None] - 1
    with np.errstate(invalid="ignore", over="ignore"):
        moved = np.abs(after - before)
        taken, largest = np.maximum(updates[1:], updates[:-1]), np.fmax.accumulate(updates[:-1])
        between = unread * largest
        far = moved > TWICE * taken + FIVEFOLD * between
        # By less, averages that are written back change them in healthy runs.
        far &= moved > HALF * np.maximum(before, 1e-30)
        # Gradients that are summed over steps: where no update was read, its size is not known.
        far &= (unread == 0) | (largest > 0)
        taken = taken + between
        far &= np.isfinite(taken) & np.isfinite(moved) & (before > 0)
    found = np.flatnonzero(far.any(axis=1))
    return [_write(seen, int(at), far[at], moved[at], taken[at]) for at in found]


def _write(seen: Sight, at: int, far: Any, moved: Any, taken: Any) -> Write:
    times = np.zeros(len(far))
    times[far] = moved[far] / np.maximum(taken[far], 1e-30)
    chosen = [int(i) for i in np.argsort(-times, kind="stable") if far[i]]
    names = [seen.history.info.layers[i].name for i in chosen]
    steps = seen.steps[at : at + 2]
    return Write(at + 1, int(steps[1]), int(steps[0]), names, float(times.max()))


def _is_estimated(seen: Sight) -> bool:
    found = seen.history.fact("estimated_weights")
    return isinstance(found, int) and found > 0


def undone(seen: Sight) -> float | None:
    """Return how many updates long biases are that began at zero, where they never got away.

    Independent steps alone carry them as far as the root of their number. None if they do.
    """
    found = _lengths(seen)
    if len(found) < 2 or float((found < STEPS).mean()) < MOST:
        return None
    return float(np.median(found))


def held_since(seen: Sight, write: Write) -> float | None:
    """Return how far biases got since a write that left them next to nothing, by what steps walked.

    Steps that point nowhere carry them as far as the root of their squares, gradients farther.
    None if few such biases are known, or few steps since.
    """
    course, layers = seen.history.course, seen.history.info.layers
    weights, updates = course.field("weight_l2"), course.field("update_l2")
    if weights is None or updates is None or len(weights) - write.at < LONG:
        return None
    chosen = [
        i
        for i, layer in enumerate(layers)
        if layer.role == "bias"
        and layer.trainable
        and layer.name in write.layers
        and weights[write.at, i] < THRICE * updates[write.at, i]
    ]
    if len(chosen) < 2:
        return None
    walked = (updates[write.at :, chosen].astype(np.float64) ** 2).sum(axis=0) ** 0.5
    far = weights[-LONG // 3 :, chosen].astype(np.float64).max(axis=0) / walked
    return float(np.median(far)) if np.isfinite(far).all() else None


def _lengths(seen: Sight) -> NDArray[Any]:
    course, layers = seen.history.course, seen.history.info.layers
    weights, updates = course.field("weight_l2"), course.field("update_l2")
    if weights is None or updates is None or len(weights) < LASTING:
        return np.zeros(0)
    chosen = [
        i
        for i, layer in enumerate(layers)
        if layer.role == "bias"
        and layer.trainable
        and updates[0, i] > 0
        and abs(weights[0, i] - updates[0, i]) <= 1e-3 * updates[0, i]
    ]
    if not chosen:
        return np.zeros(0)
    late = slice(-LASTING // 3, None)
    taken = updates[:, chosen].astype(np.float64)
    if np.median(taken[late]) > TENFOLD * np.median(taken):
        return np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Where gradients wake, the latest steps are the largest, and all before them little.
        walked = np.cumsum(taken**2, axis=0) ** 0.5
        steps = np.minimum(taken[late], walked[late] / LASTING**0.5)
        found = np.median(weights[late][:, chosen] / steps, axis=0)
    return np.asarray(found[np.isfinite(found)])
