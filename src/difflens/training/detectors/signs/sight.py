"""A history as diagnoses look at it: each shared measurement made once, when first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...history.history import History
from .degrees import SHORT
from .layers import Layers, median
from .losses import Losses, output_shape

_SADDLE = 150  # points of the start, and of a level at least
_WARM_UP = 120  # points: a longer one may not excuse that steps are tiny
_LARGEST = 1e100  # rates beyond it, and infinite ones, are none
_WAKING = 1.06  # times what they were: stationary gradients stay within 1.02


class Sight:
    """The measurements of one history."""

    def __init__(self, history: History) -> None:
        """Keep the history; nothing is computed yet."""
        self.history = history

    @cached_property
    def loss(self) -> Losses:
        """The course of the training loss."""
        return Losses.of(self.history, "loss")

    @cached_property
    def layers(self) -> Layers:
        """Ratios of the layers, in network order."""
        return Layers(self.history)

    @cached_property
    def lr(self) -> np.ndarray[Any, Any] | None:
        """The learning rate over the points, where it was recorded; NaN if it has no meaning."""
        found = self.history.course.scalar("lr")
        return None if found is None else np.where(np.abs(found) < _LARGEST, found, np.nan)

    @cached_property
    def rates(self) -> np.ndarray[Any, Any]:
        """The learning rates that are known; none where it was not recorded."""
        return np.zeros(0) if self.lr is None else self.lr[np.isfinite(self.lr)]

    @cached_property
    def points(self) -> int:
        """How many points there are."""
        return len(self.history.course)

    @cached_property
    def steps(self) -> np.ndarray[Any, Any]:
        """The step of each point."""
        return self.history.course.steps

    @cached_property
    def batch(self) -> int | None:
        """How many examples a step sees, where the first output shows it."""
        shape = output_shape(self.history)
        return shape[0] or None if len(shape) > 1 else None

    @cached_property
    def is_warming_up(self) -> bool:
        """Is the learning rate still on its way up?"""
        rates = self.rates
        if len(rates) < 3:
            return False
        return bool(rates[-1] > rates[0] and rates[-1] > 1.001 * rates[-min(5, len(rates))])

    @cached_property
    def may_be_slow(self) -> bool:
        """Is it too early to mind small steps? A warm-up that does not end is a fault itself."""
        return self.is_warming_up and self.points <= _WARM_UP

    @cached_property
    def is_waking(self) -> bool:
        """Do gradients grow in most layers while the loss stands still?

        Deep stacks with small first weights start on a saddle: for a hundred steps and more the
        loss tells nothing, while gradients grow by a per cent or so a step, until it falls. Labels
        that teach nothing leave gradients as they are. Asked of the first points alone, since who
        learns by heart has growing gradients as well, later.
        """
        found = self.layers.gradient
        if found is None or not self.layers.trained.any():
            return False
        sizes = found[:_SADDLE][:, self.layers.trained]
        third = len(sizes) // 3
        if third < SHORT:
            return False
        early, late = median(sizes[third // 2 :][:third], 0), median(sizes[-third:], 0)
        known = (early > 0) & np.isfinite(late)
        return bool(known.any() and np.percentile(late[known] / early[known], 75) > _WAKING)


def sight(history: History) -> Sight:
    """Return what is measured of a history, the same object to every diagnosis that asks.

    It is kept on the course itself, so that it goes when the history goes.
    """
    kept = vars(history.course)
    if "sight" not in kept:
        kept["sight"] = Sight(history)
    found: Sight = kept["sight"]
    return found
