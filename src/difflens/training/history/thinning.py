"""The course of a run in the making: a point per frame while there is room, then per two, four.

When the points are full, neighbours are merged two by two and each later point takes twice as many
frames: so a run of any length is covered evenly, and what was extreme stays, as the lowest and
highest value of its point. Each point weighs its mean by how many finite values went into it, so
that merging points gives the mean of their frames. Reservoir sampling was not taken: it loses the
neighbours by which a spike is recognised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..records.runs import RunInfo
from .frame import MISSING, MISSING_SCALAR, Rows, Spread, Stretch, is_missing
from .history import Course

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[Any]

_PIECE = 1 << 20  # bytes that are merged in one go: few calls, and no second copy of a long run


class Points:
    """Arrays of shape (4, points, …): mean, lowest, highest, count of finite values."""

    def __init__(self, points: int, shape: tuple[int, ...], missing: Any) -> None:
        """Reserve the room; the system gives memory only to what is written."""
        self.missing = missing
        self.values: Values = np.empty((4, points, *shape), missing.dtype)
        wide = np.float64 if missing.dtype == np.float32 else np.longdouble
        self._sum: Values = np.zeros(shape, wide)

    def fill(self, at: int, rows: Rows) -> None:
        """Make each row a point of its own."""
        stop = at + len(rows.values)
        self.values[:3, at:stop] = rows.values
        self.values[3, at:stop] = 1 if rows.finite is None else rows.finite

    def join(self, at: int, rows: Rows, *, is_open: bool) -> None:
        """Take rows into one point, which is opened with the first of them unless it is open."""
        if not is_open:
            self.fill(at, rows.part(0, 1))
            self._sum[...] = 0
            self._add(rows)
            rows = rows.part(1, len(rows.values))
            if not len(rows.values):
                return
        else:
            self._add(rows)
        _, low, high, count = self.values[:, at]
        count += len(rows.values) if rows.finite is None else rows.finite.sum(0)
        low[...] = self._picked(np.fmin, low, self._reduced(np.fmin, rows))
        high[...] = self._picked(np.fmax, high, self._reduced(np.fmax, rows))

    def _add(self, rows: Rows) -> None:
        """Add to the sum, one by one: how frames came in batches must not change a digit."""
        finite = rows.finite
        for row in rows.values if finite is None else np.where(finite, rows.values, 0):
            self._sum += row

    def _reduced(self, pick: np.ufunc, rows: Rows) -> Values:
        """Reduce rows to the lowest or highest; NaN if none is a number, unless all miss."""
        reduced: Values = pick.reduce(rows.values, axis=0)
        if rows.finite is not None:
            odd = np.isnan(reduced)
            if odd.any():
                reduced[odd] = np.nan
                reduced[is_missing(rows.values).all(0)] = self.missing
        return reduced

    def settle(self, at: int) -> None:
        """Write the mean of an open point of several frames; more may still join it."""
        mean, _, high, count = self.values[:, at]
        mean[...] = np.where(count > 0, self._sum / np.maximum(count, 1), np.nan)
        mean[is_missing(high)] = self.missing

    def halve(self, filled: int) -> None:
        """Merge points 2i and 2i+1 into point i, a piece at a time."""
        pairs = filled // 2
        piece = max(1, _PIECE // max(1, self.values[:, 0].nbytes))
        for i in range(0, pairs, piece):
            stop = min(i + piece, pairs)
            both = self.values[:, 2 * i : 2 * stop]
            self.values[:, i:stop] = self._merged(both[:, ::2], both[:, 1::2])
        if filled % 2:
            self.values[:, pairs] = self.values[:, filled - 1]

    def _merged(self, left: Values, right: Values) -> Values:
        count = left[3] + right[3]
        least = np.maximum(count, 1)
        weighed = [np.where(each[3] > 0, each[0], 0) * (each[3] / least) for each in (left, right)]
        low = self._picked(np.fmin, left[1], right[1])
        high = self._picked(np.fmax, left[2], right[2])
        mean = np.where(count > 0, weighed[0] + weighed[1], np.nan)
        mean[is_missing(high)] = self.missing
        return np.stack([mean, low, high, count])

    def _picked(self, pick: Callable[[Values, Values], Values], left: Values, right: Values) -> Any:
        """Pick per value; of two that are no numbers, NaN unless both are missing."""
        picked = pick(left, right)
        odd = np.isnan(picked)
        if odd.any():
            blank = is_missing(left) & is_missing(right)
            picked[odd] = np.nan
            picked[blank] = self.missing
        return picked

    def take_over(self, before: Points, filled: int, spread: Callable[[Values], Values]) -> None:
        """Take over points of a narrower layout, one by one."""
        for i in range(filled):
            self.values[:3, i] = spread(before.values[:3, i])
            self.values[3, i] = np.nan_to_num(spread(before.values[3, i]), nan=0)

    def shown(self, points: int, *, single: bool) -> Values:
        """Copy mean, lowest and highest; the mean alone where every point is one frame."""
        return self.values[: 1 if single else 3, :points].copy()


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
        """Return the same frames in a wider layout and in so many points; this one is spent."""
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
        wide.scalars.take_over(self.scalars, filled, spread.scalars)
        wide.layers.take_over(self.layers, filled, spread.layers)
        return wide

    def course(self, info: RunInfo) -> Course:
        """Return the course so far; later frames do not change it."""
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
    """Return the second of each pair, and the last where it stands alone."""
    return values[1::2] if values.size % 2 == 0 else np.append(values[1::2], values[-1])
