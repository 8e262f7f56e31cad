"""Gradients that double again and again at a fixed interval, while the loss does not move.

A scale of the loss that grows by itself (made for half precision) is divided out before a step. One
that is not makes stairs: all gradients rise at one step by a factor, and stay there until the next.
What learning does to gradients comes gradually, and shows in the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..signs.layers import median
from ..signs.sight import Sight

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RISES = 3  # that must have been seen, one interval apart, the first an interval behind the start
_SHORTEST = 20  # points between two rises
_LEAST, _USUAL = 0.5, (0.75, 1.7)  # of each rise in powers of two, and of their mean: a doubling
_EDGE = 5  # points on both sides of a rise: it is there at once
_FLAT = 0.5  # of the rises: what gradients may move by between them
_UNMOVED = 1.0  # powers of two by which the loss may differ
_TAKEN = 0.4  # powers of two by which steps rise with gradients: who divides them again has none
_MOST = 0.7  # of the matrices, in which each rise must show


class Stairs(NamedTuple):
    """The steps between two rises, the step of the first, and the factor of a rise."""

    interval: int
    since: int
    factor: float


def stairs(seen: Sight) -> Stairs | None:
    """Find gradients of all layers that rise by a factor at a fixed interval, and steps with them.

    Gradients of a batch grow about as the root of its loss, so that is taken out of them.
    """
    gradients, losses, steps = _logs(seen)
    sizes = np.arange(_SHORTEST, int(len(losses) / (_RISES + 0.5)) + 1)
    if not len(sizes):
        return None
    levels, half = median(gradients, axis=1) - losses / 2, sizes // 2
    rises, between = _changes(levels, sizes, half)
    sudden, moved, taken = (
        _changes(values, sizes, width)[0]
        for values, width in ((levels, np.full_like(sizes, _EDGE)), (losses, half), (steps, half))
    )
    mean = rises.mean(axis=1)
    found = np.minimum(rises, sudden).min(axis=1) > _LEAST
    found &= (mean > _USUAL[0]) & (mean < _USUAL[1]) & (np.abs(moved).max(axis=1) < _UNMOVED)
    found &= (taken.min(axis=1) > 0) & (taken.mean(axis=1) > _TAKEN)
    flat = np.where(found, _FLAT * mean - np.abs(between).mean(axis=1), -np.inf)
    best = int(np.argmax(flat))
    size = int(sizes[best])
    if flat[best] <= 0 or not _shows(gradients - losses[:, None] / 2, size):
        return None
    first = int(seen.steps[size])
    return Stairs(first - int(seen.steps[0]), first, float(2 ** mean[best]))


def _shows(levels: NDArray[Any], size: int) -> bool:
    """Do most matrices show each rise?"""
    sizes = np.array([size])
    rises = [_changes(each, sizes, sizes // 2)[0].min() > 0 for each in levels.T]
    return float(np.mean(rises)) >= _MOST


def _logs(seen: Sight) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Give gradients of matrices, losses and typical steps as powers of two, while all are some."""
    gradients, updates = seen.layers.field("grad_l2"), seen.layers.field("update_l2")
    losses, chosen = seen.history.course.scalar("loss"), seen.layers.trained
    if gradients is None or updates is None or losses is None or not chosen.any():
        return np.zeros((0, 0)), np.zeros(0), np.zeros(0)
    with np.errstate(all="ignore"):
        logs = np.log2(gradients[:, chosen].astype(np.float64))
        steps = np.log2(median(updates[:, chosen].astype(np.float64), axis=1))
        heights = np.log2(np.abs(losses))
    sound = np.isfinite(logs).all(axis=1) & np.isfinite(heights) & np.isfinite(steps)
    end = len(sound) if sound.all() else int(np.argmin(sound))
    return logs[:end], heights[:end], steps[:end]


def _changes(
    values: NDArray[Any], sizes: NDArray[Any], width: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Give by how much values change across each rise, and from the start to the end before it."""
    summed = np.concatenate([[0.0], np.cumsum(values)])
    at, width = sizes[:, None] * np.arange(1, _RISES + 1), width[:, None]
    before = (summed[at] - summed[at - width]) / width
    after = (summed[at + width] - summed[at]) / width
    start = (summed[at - sizes[:, None] + width] - summed[at - sizes[:, None]]) / width
    return after - before, before - start
