"""Makes a history of frames, one by one, in memory that does not grow with the run.

While there is room every frame is a point. When the points are full, neighbours are merged two by
two and each later point takes twice as many frames: so a run of any length is covered evenly, and
what was extreme stays, as the lowest and highest value of its point. Reservoir sampling was not
taken: it loses the neighbours that a spike is told by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..runs import Note, RunInfo
from .course import Course
from .frame import MISSING, MISSING_SCALAR, Frame, is_missing
from .history import Extremes, History
from .layout import Spread, layout, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

MEMORY = 192 << 20  # bytes the points may take
RECENT = 1024  # frames kept in full, fewer where the layers are many
MOST_POINTS, LEAST_POINTS = 4096, 256


class Builder:
    """A history in the making; `history()` can be asked at any time."""

    def __init__(self, info: RunInfo, *, memory: int = MEMORY, recent: int = RECENT) -> None:
        """Reserve what a run of this layout may take, and no more."""
        self._memory, self._most_recent = memory, recent
        self._notes: list[Note] = []
        self.frames, self.dropped = 0, 0
        self._next_sequence: int | None = None
        self._spread: Spread | None = None
        self._reserve(info)

    def _reserve(self, info: RunInfo) -> None:
        self.info = info
        fields, layers, scalars = len(info.fields), len(info.layers), len(info.scalars)
        one = 4 * fields * layers + 8 * scalars + 1
        points = min(max(self._memory // (3 * one), LEAST_POINTS), MOST_POINTS)
        self._points = points - points % 2
        self._keep = min(max(self._memory // (4 * one), LEAST_POINTS), self._most_recent)
        self._filled, self._span, self._inside = 0, 1, 0
        self._steps = np.zeros((4, self._points))  # last step, first step, frames, wall time
        self._scalars = np.empty((3, self._points, scalars))
        self._layers = np.empty((3, self._points, fields, layers), np.float32)
        self._scalar_count = np.zeros(scalars)
        self._layer_count = np.zeros((fields, layers), np.float32)
        self._late_steps = np.zeros((2, self._keep))
        self._late_scalars = np.empty((self._keep, scalars))
        self._late_layers = np.empty((self._keep, fields, layers), np.float32)
        nowhere = np.full((fields, layers), -1, np.int64)
        lowest = np.full((fields, layers), -np.inf, np.float32)
        nothing = np.zeros((fields, layers), np.int64)
        self._extremes = Extremes(nothing, nothing.copy(), nowhere, lowest, nowhere.copy())
        self._first_nonfinite: dict[str, int] = {}

    def describe(self, info: RunInfo) -> None:
        """Go on with another layout: layers, fields or scalars that are new, or gone."""
        united = union(self.info, info)
        if layout(united) != layout(self.info):
            self._widen(united)
        self.info = united
        self._spread = None if layout(info) == layout(united) else Spread(info, united)

    def _widen(self, info: RunInfo) -> None:
        """Make room for more layers, thinning out the points where memory asks for it."""
        if self._inside:
            self._filled, self._inside = self._filled + 1, 0
        before, spread = vars(self).copy(), Spread(self.info, info)
        late = self._late_order()
        self._reserve(info)
        kept = late[-self._keep :]
        places = np.arange(self.frames - len(kept), self.frames) % self._keep
        self._late_steps[:, places] = before["_late_steps"][:, kept]
        self._late_scalars[places] = spread.scalars(before["_late_scalars"][kept])
        self._late_layers[places] = spread.layers(before["_late_layers"][kept])
        self._extremes = Extremes(
            *(
                spread.layers(old, fill=new.flat[0] if new.size else 0)
                for old, new in zip(before["_extremes"], self._extremes, strict=True)
            )
        )
        self._first_nonfinite, self._span = before["_first_nonfinite"], before["_span"]
        self._take_points(before, spread)

    def _take_points(self, before: dict[str, Any], spread: Spread) -> None:
        filled, steps = before["_filled"], before["_steps"]
        scalars, layers = before["_scalars"], before["_layers"]
        while filled > self._points - 2:
            steps[:, : (filled + 1) // 2] = _merged_steps(steps[:, :filled])
            _halve(scalars, filled, MISSING_SCALAR)
            _halve(layers, filled, MISSING)
            filled, self._span = (filled + 1) // 2, self._span * 2
        self._filled = filled
        self._steps[:, :filled] = steps[:, :filled]
        for i in range(filled):  # one by one: the whole would be a second copy of the run
            self._scalars[:, i] = spread.scalars(scalars[:, i])
            self._layers[:, i] = spread.layers(layers[:, i])

    def note(self, note: Note) -> None:
        """Keep what happened to the recording."""
        self._notes.append(note)

    def add(self, frame: Frame) -> None:
        """Take one frame, laid out as the info in force says."""
        if self._next_sequence is not None and frame.sequence > self._next_sequence:
            self.dropped += frame.sequence - self._next_sequence
        self._next_sequence = frame.sequence + 1
        if self._spread is not None:
            frame = self._spread.frame(frame)
        self._note_extremes(frame)
        self._keep_late(frame)
        self._into_point(frame)
        self.frames += 1

    def _note_extremes(self, frame: Frame) -> None:
        seen = self._extremes
        finite = np.isfinite(frame.layers)
        if finite.all():
            np.add(seen.recorded, 1, out=seen.recorded)
        else:
            there = ~is_missing(frame.layers)
            odd = there & ~finite
            np.add(seen.recorded, there, out=seen.recorded)
            np.add(seen.nonfinite, odd, out=seen.nonfinite)
            seen.first_nonfinite[odd & (seen.first_nonfinite < 0)] = frame.step
        higher = frame.layers > seen.highest  # NaN is higher than nothing
        if higher.any():
            seen.highest[higher] = frame.layers[higher]
            seen.highest_step[higher] = frame.step
        if not np.isfinite(frame.scalars).all():
            odd_scalars = ~np.isfinite(frame.scalars) & ~is_missing(frame.scalars)
            for place in np.flatnonzero(odd_scalars):
                self._first_nonfinite.setdefault(self.info.scalars[place], frame.step)

    def _keep_late(self, frame: Frame) -> None:
        place = self.frames % self._keep
        self._late_steps[:, place] = frame.step, frame.wall_time
        self._late_scalars[place] = frame.scalars
        self._late_layers[place] = frame.layers

    def _into_point(self, frame: Frame) -> None:
        if self._inside == 0:
            if self._filled == self._points:
                self._merge_neighbours()
            self._begin_point(frame)
        else:
            self._join_point(frame)
        self._inside += 1
        if self._inside == self._span:
            self._filled, self._inside = self._filled + 1, 0

    def _begin_point(self, frame: Frame) -> None:
        at = self._filled
        self._steps[:, at] = frame.step, frame.step, 1, frame.wall_time
        self._scalars[:, at] = frame.scalars
        self._layers[:, at] = frame.layers
        if self._span > 1:
            self._scalar_count[...] = np.isfinite(frame.scalars)
            self._layer_count[...] = np.isfinite(frame.layers)

    def _join_point(self, frame: Frame) -> None:
        at = self._filled
        self._steps[0, at], self._steps[3, at] = frame.step, frame.wall_time
        self._steps[2, at] += 1
        _join(self._scalars[:, at], self._scalar_count, frame.scalars, MISSING_SCALAR)
        _join(self._layers[:, at], self._layer_count, frame.layers, MISSING)

    def _merge_neighbours(self) -> None:
        self._steps[:, : self._points // 2] = _merged_steps(self._steps)
        _halve(self._scalars, self._points, MISSING_SCALAR)
        _halve(self._layers, self._points, MISSING)
        self._filled, self._span = self._points // 2, self._span * 2

    def history(self, damage: tuple[str, ...] = ()) -> History:
        """Give what was gathered so far; later frames do not change it."""
        points = self._filled + (self._inside > 0)
        steps = self._steps[:, :points].copy()
        course = Course(
            self.info,
            steps[0].astype(np.int64),
            steps[1].astype(np.int64),
            steps[2].astype(np.int64),
            steps[3],
            self._scalars[: 3 if self._span > 1 else 1, :points].copy(),
            self._layers[: 3 if self._span > 1 else 1, :points].copy(),
        )
        return History(
            self.info,
            self.frames,
            course,
            self._recent(),
            Extremes(*(each.copy() for each in self._extremes)),
            dict(self._first_nonfinite),
            tuple(self._notes),
            damage,
            self.dropped,
        )

    def _late_order(self) -> NDArray[np.int64]:
        """Give the places of the latest frames, oldest first."""
        kept = min(self.frames, self._keep)
        return np.arange(self.frames - kept, self.frames) % self._keep

    def _recent(self) -> Course:
        order = self._late_order()
        steps = self._late_steps[0, order].astype(np.int64)
        return Course(
            self.info,
            steps,
            steps,
            np.ones(len(order), np.int64),
            self._late_steps[1, order],
            self._late_scalars[None, order],
            self._late_layers[None, order],
        )


def _join(
    point: NDArray[np.floating],
    count: NDArray[np.floating],
    new: NDArray[np.floating],
    missing: np.floating,
) -> None:
    """Take one more frame into a point: its running mean, lowest and highest value."""
    mean, low, high = point
    finite = np.isfinite(new)
    if finite.all() and count.all():
        count += 1
        mean += (new - mean) / count
        np.minimum(low, new, out=low)
        np.maximum(high, new, out=high)
        return
    blank = is_missing(high) & is_missing(new)
    count += finite
    mean[...] = np.where(
        finite,
        np.where(count > 1, mean + (new - mean) / np.maximum(count, 1), new),
        np.where(count > 0, mean, np.nan),
    )
    low[...], high[...] = np.fmin(low, new), np.fmax(high, new)
    for each in point:
        each[blank] = missing


def _halve(points: NDArray[np.floating], filled: int, missing: np.floating) -> None:
    """Merge points 2i and 2i+1 into point i, row by row so that no second copy is made."""
    for i in range(filled // 2):
        before, after = points[:, 2 * i], points[:, 2 * i + 1]
        blank = is_missing(before[2]) & is_missing(after[2])
        both = np.isfinite(before[0]) & np.isfinite(after[0])
        one = np.where(np.isfinite(before[0]), before[0], after[0])
        one = np.where(np.isfinite(one), one, np.nan)
        mean = np.where(both, before[0] / 2 + after[0] / 2, one)
        low, high = np.fmin(before[1], after[1]), np.fmax(before[2], after[2])
        points[0, i], points[1, i], points[2, i] = mean, low, high
        points[:, i][:, blank] = missing
    if filled % 2:
        points[:, filled // 2] = points[:, filled - 1]


def _merged_steps(steps: NDArray[np.float64]) -> NDArray[np.float64]:
    last, first, frames, wall = steps
    even = frames[::2].copy()
    even[: frames.size // 2] += frames[1::2]
    last, wall = _later(last), _later(wall)
    return np.stack([last, first[::2], even, wall])


def _later(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the second of each pair, and the last where it stands alone."""
    return values[1::2] if values.size % 2 == 0 else np.append(values[1::2], values[-1])
