"""The course of a run in the making: a point a frame while there is room, then two, then four.

When the points are full, neighbours are merged two by two and each later point takes twice as many
frames: so a run of any length is covered evenly, and what was extreme stays, as the lowest and
highest value of its point. Reservoir sampling was not taken: it loses the neighbours that a spike
is told by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..runs import RunInfo
from .course import Course
from .frame import MISSING, MISSING_SCALAR
from .layout import Spread
from .points import Points
from .stretch import Stretch

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Thinning:
    """So many points, whatever the number of frames."""

    def __init__(self, points: int, info: RunInfo, span: int = 1) -> None:
        """Reserve an even number of points; each takes `span` frames to begin with."""
        self.most, self._span = points, span
        self._filled, self._inside = 0, 0  # points, and frames in the one that is open
        self._steps = np.zeros((3, points), np.int64)  # last step, first step, frames
        self._times = np.zeros(points)
        self.scalars = Points(points, (len(info.scalars),), MISSING_SCALAR)
        self.layers = Points(points, (len(info.fields), len(info.layers)), MISSING)

    def add(self, frames: Stretch) -> None:
        """Take frames in their order."""
        start, count = 0, len(frames.steps)
        while start < count:
            if self._filled == self.most:
                self._halve()
            if self._span == 1:
                stop = min(count, start + self.most - self._filled)
                self._fill(frames.part(start, stop))
            else:
                stop = min(count, start + self._span - self._inside)
                self._join(frames.part(start, stop))
            start = stop

    def _fill(self, frames: Stretch) -> None:
        at, stop = self._filled, self._filled + len(frames.steps)
        self._steps[:2, at:stop], self._steps[2, at:stop] = frames.steps, 1
        self._times[at:stop] = frames.times
        self.scalars.fill(at, frames.scalars)
        self.layers.fill(at, frames.layers)
        self._filled = stop

    def _join(self, frames: Stretch) -> None:
        at, is_open = self._filled, self._inside > 0
        self._inside += len(frames.steps)
        if not is_open:
            self._steps[1, at] = frames.steps[0]
        self._steps[0, at], self._steps[2, at] = frames.steps[-1], self._inside
        self._times[at] = frames.times[-1]
        self.scalars.join(at, frames.scalars, is_open=is_open)
        self.layers.join(at, frames.layers, is_open=is_open)
        if self._inside == self._span:
            self.close()

    def close(self) -> None:
        """Let no more frames into the point that is open."""
        if self._inside:
            self._settle()
            self._filled, self._inside = self._filled + 1, 0

    def _settle(self) -> None:
        if self._inside > 1:
            self.scalars.settle(self._filled)
            self.layers.settle(self._filled)

    def _halve(self) -> None:
        """Merge neighbours two by two."""
        filled = self._filled
        last, first, frames = self._steps[:, :filled]
        merged = [_later(last), first[::2], np.add.reduceat(frames, range(0, filled, 2))]
        left = (filled + 1) // 2
        self._times[:left] = _later(self._times[:filled])
        self._steps[:, :left] = np.stack(merged)
        self.scalars.halve(filled)
        self.layers.halve(filled)
        self._filled, self._span = left, self._span * 2

    def widened(self, points: int, before: RunInfo, info: RunInfo) -> Thinning:
        """Give the same frames in a wider layout and in so many points; this one is spent."""
        self.close()
        while self._filled > points - 2:
            self._halve()
        wide, filled, spread = (
            Thinning(points, info, self._span),
            self._filled,
            Spread(before, info),
        )
        wide._filled = filled
        wide._steps[:, :filled] = self._steps[:, :filled]
        wide._times[:filled] = self._times[:filled]
        wide.scalars.take(self.scalars, filled, spread.scalars)
        wide.layers.take(self.layers, filled, spread.layers)
        return wide

    def course(self, info: RunInfo) -> Course:
        """Give the course so far; later frames do not change it."""
        self._settle()
        points, single = self._filled + (self._inside > 0), self._span == 1
        last, first, spans = self._steps[:, :points].copy()
        return Course(
            info,
            last,
            first,
            spans,
            self._times[:points].copy(),
            self.scalars.shown(points, single=single),
            self.layers.shown(points, single=single),
        )


def _later(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Give the second of each pair, and the last where it stands alone."""
    return values[1::2] if values.size % 2 == 0 else np.append(values[1::2], values[-1])
