"""The latest frames of a run, in full: a ring that the next ones overwrite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..runs import RunInfo
from .course import Course
from .layout import Spread
from .stretch import Rows, Stretch

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Latest:
    """So many frames, one point each."""

    def __init__(self, most: int, info: RunInfo) -> None:
        """Reserve the room."""
        self.most, self._seen = most, 0
        self._steps, self._times = np.zeros(most, np.int64), np.zeros(most)
        self._scalars = np.empty((most, len(info.scalars)))
        self.layers = np.empty((most, len(info.fields), len(info.layers)), np.float32)

    def add(self, frames: Stretch) -> None:
        """Take frames in their order; of more than there is room for, the last."""
        count = len(frames.steps)
        kept = frames.part(max(0, count - self.most), count)
        places = np.arange(self._seen + count - len(kept.steps), self._seen + count) % self.most
        self._steps[places], self._times[places] = kept.steps, kept.times
        self._scalars[places] = kept.scalars.values
        self.layers[places] = kept.layers.values
        self._seen += count

    def _order(self) -> NDArray[np.int64]:
        """Give the places of the frames, oldest first."""
        return np.arange(self._seen - min(self._seen, self.most), self._seen) % self.most

    def widened(self, most: int, before: RunInfo, info: RunInfo) -> Latest:
        """Give the same frames in a wider layout; fewer, where there is room for fewer."""
        order, spread, wide = self._order(), Spread(before, info), Latest(most, info)
        order = order[max(0, len(order) - most) :]
        wide.add(
            Stretch(
                self._steps[order],
                self._times[order],
                Rows(spread.scalars(self._scalars[order]), None),
                Rows(spread.layers(self.layers[order]), None),
            )
        )
        return wide

    def course(self, info: RunInfo) -> Course:
        """Give the frames; later ones do not change it."""
        order = self._order()
        steps, ones = self._steps[order], np.ones(len(order), np.int64)
        layers = self.layers[None, order]
        return Course(
            info, steps, steps, ones, self._times[order], self._scalars[None, order], layers
        )
