"""Makes a history of frames, one by one, in memory that does not grow with the run.

While there is room every frame is a point. When the points are full, neighbours are merged two by
two and each later point takes twice as many frames: so a run of any length is covered evenly, and
what was extreme stays, as the lowest and highest value of its point. Reservoir sampling was not
taken: it loses the neighbours that a spike is told by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import RunError
from ..runs import Note, RunInfo
from .course import Course
from .format import frame_size, trouble_with
from .frame import MISSING, MISSING_SCALAR, Frame, is_missing
from .history import NEVER, Extremes, History, nothing_yet
from .layout import Spread, layout, union
from .points import Points

if TYPE_CHECKING:
    from numpy.typing import NDArray

MEMORY = 256 << 20  # bytes the points should take
MOST_MEMORY = 1 << 30  # and may take where frames are so large that these would be a few
RECENT = 1024  # frames kept in full, fewer where the layers are many
MOST_POINTS, LEAST_POINTS, FEWEST_POINTS = 4096, 256, 4
MOST_NOTES = 4096


class Builder:
    """A history in the making; `history()` can be asked at any time."""

    def __init__(self, info: RunInfo, *, memory: int = MEMORY, recent: int = RECENT) -> None:
        """Reserve what a run of this layout may take, and no more."""
        self._memory, self._most_recent = memory, recent
        self._notes: list[Note] = []
        self.frames, self.dropped = 0, 0
        self._next_sequence: int | None = None
        self._spread: Spread | None = None
        self._span = 1
        self._first_nonfinite: dict[str, int] = {}
        self._reserve(info)

    def _reserve(self, info: RunInfo) -> None:
        self.info = info
        shape, scalars = (len(info.fields), len(info.layers)), len(info.scalars)
        one = frame_size(info)
        points = _room(one * 4, self._memory)
        self._points = points - points % 2
        self._keep = min(_room(one * 4, self._memory), self._most_recent)
        self._filled, self._inside = 0, 0
        self._steps = np.zeros((3, self._points), np.int64)  # last step, first step, frames
        self._times = np.zeros(self._points)
        self._scalars = Points(self._points, (scalars,), MISSING_SCALAR)
        self._layers = Points(self._points, shape, MISSING)
        self._late_steps, self._late_times = np.zeros(self._keep, np.int64), np.zeros(self._keep)
        self._late_scalars = np.empty((self._keep, scalars))
        self._late_layers = np.empty((self._keep, *shape), np.float32)
        self._extremes = nothing_yet(shape)
        self._whole = 0  # frames without a gap, not yet in what the extremes count

    def describe(self, info: RunInfo) -> None:
        """Go on with another layout: layers, fields or scalars that are new, or gone."""
        united = union(self.info, info)
        if layout(united) != layout(self.info):
            reason = trouble_with(united)
            if reason:
                raise RunError(info.name or "run", f"in all {reason}")
            self._widen(united)
        self.info = united
        self._spread = None if layout(info) == layout(united) else Spread(info, united)

    def _widen(self, info: RunInfo) -> None:
        """Make room for more layers, thinning out the points where memory asks for it."""
        self._close_point()
        filled, extremes, spread = self._filled, self._counted(), Spread(self.info, info)
        steps, times, scalars, layers = self._steps, self._times, self._scalars, self._layers
        late = self._late_order()
        late_steps, late_times = self._late_steps[late], self._late_times[late]
        late_scalars, late_layers = self._late_scalars[late], self._late_layers[late]
        self._reserve(info)
        kept = min(len(late), self._keep)
        places = np.arange(self.frames - kept, self.frames) % self._keep
        last = slice(len(late) - kept, None)
        self._late_steps[places], self._late_times[places] = late_steps[last], late_times[last]
        self._late_scalars[places] = spread.scalars(late_scalars[last])
        self._late_layers[places] = spread.layers(late_layers[last])
        self._extremes = extremes.changed(
            lambda name, values: spread.layers(values, fill=NEVER[name])
        )
        while filled > self._points - 2:
            filled = _halve(filled, steps, times, scalars, layers)
            self._span *= 2
        self._filled = filled
        self._steps[:, :filled], self._times[:filled] = steps[:, :filled], times[:filled]
        self._scalars.take(scalars, filled, spread.scalars)
        self._layers.take(layers, filled, spread.layers)

    def note(self, note: Note) -> None:
        """Keep what happened to the recording."""
        self._notes.append(note)
        if len(self._notes) > MOST_NOTES:
            del self._notes[MOST_NOTES // 2 : MOST_NOTES // 2 + MOST_NOTES // 4]

    def add(self, frame: Frame) -> None:
        """Take one frame, laid out as the info in force says."""
        if self._next_sequence is not None and frame.sequence > self._next_sequence:
            self.dropped += frame.sequence - self._next_sequence
        self._next_sequence = frame.sequence + 1
        if self._spread is not None:
            frame = self._spread.frame(frame)
        finite = np.isfinite(frame.layers)
        whole = bool(finite.all())
        whole_scalars = bool(np.isfinite(frame.scalars).all())
        self._note_extremes(frame, None if whole else finite)
        if not whole_scalars:
            odd = ~np.isfinite(frame.scalars) & ~is_missing(frame.scalars)
            for place in np.flatnonzero(odd):
                self._first_nonfinite.setdefault(self.info.scalars[place], frame.step)
        self._keep_late(frame)
        self._into_point(frame, whole, whole_scalars)
        self.frames += 1

    def _note_extremes(self, frame: Frame, finite: NDArray[np.bool_] | None) -> None:
        seen = self._extremes
        if finite is None:
            self._whole += 1
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

    def _counted(self) -> Extremes:
        """Give the extremes with every frame counted."""
        np.add(self._extremes.recorded, self._whole, out=self._extremes.recorded)
        self._whole = 0
        return self._extremes

    def _keep_late(self, frame: Frame) -> None:
        place = self.frames % self._keep
        self._late_steps[place], self._late_times[place] = frame.step, frame.wall_time
        self._late_scalars[place] = frame.scalars
        self._late_layers[place] = frame.layers

    def _into_point(self, frame: Frame, whole: bool, whole_scalars: bool) -> None:
        if self._inside == 0:
            if self._filled == self._points:
                self._filled = _halve(
                    self._filled, self._steps, self._times, self._scalars, self._layers
                )
                self._span *= 2
            at = self._filled
            self._steps[:, at] = frame.step, frame.step, 1
            self._scalars.begin(at, frame.scalars, whole=whole_scalars)
            self._layers.begin(at, frame.layers, whole=whole)
        else:
            at = self._filled
            self._steps[0, at] = frame.step
            self._steps[2, at] += 1
            self._scalars.join(at, frame.scalars, whole=whole_scalars)
            self._layers.join(at, frame.layers, whole=whole)
        self._times[at] = frame.wall_time
        self._inside += 1
        if self._inside == self._span:
            self._close_point()

    def _close_point(self) -> None:
        if self._inside:
            self._settle()
            self._filled, self._inside = self._filled + 1, 0

    def _settle(self) -> None:
        if self._inside > 1:
            self._scalars.settle(self._filled)
            self._layers.settle(self._filled)

    def history(self, damage: tuple[str, ...] = ()) -> History:
        """Give what was gathered so far; later frames do not change it."""
        self._settle()
        points = self._filled + (self._inside > 0)
        last, first, spans = self._steps[:, :points].copy()
        single = self._span == 1
        course = Course(
            self.info,
            last,
            first,
            spans,
            self._times[:points].copy(),
            self._scalars.shown(points, single=single),
            self._layers.shown(points, single=single),
        )
        return History(
            self.info,
            self.frames,
            course,
            self._recent(),
            self._counted().changed(lambda _, values: values.copy()),
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
        steps = self._late_steps[order]
        return Course(
            self.info,
            steps,
            steps,
            np.ones(len(order), np.int64),
            self._late_times[order],
            self._late_scalars[None, order],
            self._late_layers[None, order],
        )


def _room(one: int, memory: int) -> int:
    """Count the points of so many bytes each that fit into the memory, and few where it is less."""
    least = min(LEAST_POINTS, MOST_MEMORY // one)
    return min(max(memory // one, least, FEWEST_POINTS), MOST_POINTS)


def _halve(
    filled: int, steps: NDArray[np.int64], times: NDArray[np.float64], *values: Points
) -> int:
    """Merge neighbours two by two and give how many points are left."""
    last, first, frames = steps[:, :filled]
    left = (filled + 1) // 2
    merged = np.stack([_later(last), first[::2], np.add.reduceat(frames, range(0, filled, 2))])
    times[:left] = _later(times[:filled])
    steps[:, :left] = merged
    for each in values:
        each.halve(filled)
    return left


def _later(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Give the second of each pair, and the last where it stands alone."""
    return values[1::2] if values.size % 2 == 0 else np.append(values[1::2], values[-1])
