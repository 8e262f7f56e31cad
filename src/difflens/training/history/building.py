"""Makes a history of frames, in memory that does not grow with the run.

Frames are kept as they come and taken some at a time: a stretch of them costs little more than one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from difflens.core.errors import RunError

from ..records.runs import Note, RunInfo
from .format import frame_size, trouble_with
from .frame import Frame, Rows, Spread, Stretch, is_missing, layout, scalars_of, stretch_of, union
from .history import NEVER, Course, History, nothing_yet
from .thinning import Thinning

if TYPE_CHECKING:
    from numpy.typing import NDArray

MEMORY = 256 << 20  # bytes the points should take
MOST_MEMORY = 1 << 30  # and may take where frames are so large that these would be a few
RECENT = 1024  # frames kept in full, fewer where the layers are many
MOST_POINTS, LEAST_POINTS, FEWEST_POINTS = 4096, 256, 4
MOST_NOTES = 4096
_TOGETHER, _TOGETHER_BYTES = 64, 1 << 18  # frames taken in one go, as many as a cache holds


class Builder:
    """A history in the making; `history()` can be asked at any time."""

    def __init__(self, info: RunInfo, *, memory: int = MEMORY, recent: int = RECENT) -> None:
        """Reserve what a run of this layout may take, and no more."""
        self._memory, self._most_recent = memory, recent
        self._notes: list[Note] = []
        self.frames, self.dropped = 0, 0
        self._next_sequence: int | None = None
        self._waiting: list[Frame] = []
        self._first_nonfinite: dict[str, int] = {}
        self.info = self._latest_info = info
        self._spread: Spread | None = None
        points, recent = self._room(info)
        self.points, self.late = Thinning(points, info), Latest(recent, info)
        self._paced = Thinning(points, _without_layers(info))  # every step, read or not
        self._late_paced = Latest(recent, _without_layers(info))
        self._unread_step: int | None = None  # of the last frame, where it was not read
        self._extremes = nothing_yet((len(info.fields), len(info.layers)))
        self._together = max(1, min(_TOGETHER, _TOGETHER_BYTES // frame_size(info)))

    def _room(self, info: RunInfo) -> tuple[int, int]:
        """Count the points and the latest frames that a layout leaves room for."""
        room = _room(frame_size(info) * 4, self._memory)
        return room - room % 2, min(room, self._most_recent)

    def describe(self, info: RunInfo) -> None:
        """Go on with another layout: layers, fields or scalars that are new, or gone."""
        self._add_waiting()
        self._latest_info, united = info, union(self.info, info)
        if layout(united) != layout(self.info):
            reason = trouble_with(united)
            if reason:
                raise RunError(info.name or "run", f"in all {reason}")
            self._widen(united)
        self.info = united
        self._spread = None if layout(info) == layout(united) else Spread(info, united)

    def _widen(self, info: RunInfo) -> None:
        """Make room for more layers, thinning out the points where memory asks for it."""
        points, recent = self._room(info)
        self.points = self.points.widened(points, self.info, info)
        before, after = _without_layers(self.info), _without_layers(info)
        self._paced = self._paced.widened(points, before, after)
        self._late_paced = self._late_paced.widened(recent, before, after)
        self.late = self.late.widened(recent, self.info, info)
        spread = Spread(self.info, info)
        self._extremes = self._extremes.changed(
            lambda name, values: spread.layers(values, fill=NEVER[name])
        )
        self._together = max(1, min(_TOGETHER, _TOGETHER_BYTES // frame_size(info)))

    def note(self, note: Note) -> None:
        """Keep what happened to the recording."""
        self._notes.append(note)
        if len(self._notes) > MOST_NOTES:
            del self._notes[MOST_NOTES // 2 : MOST_NOTES // 2 + MOST_NOTES // 4]

    def add(self, frame: Frame, info: RunInfo | None = None) -> None:
        """Take one frame, laid out as the info says, or the one in force; it must not change."""
        if info is not None and info is not self._latest_info:
            self.describe(info)
        if self._next_sequence is not None and frame.sequence > self._next_sequence:
            self.dropped += frame.sequence - self._next_sequence
        self._next_sequence = frame.sequence + 1
        # The last step of a run that was not read is recorded once more, with its layers.
        completes = frame.is_read and frame.step == self._unread_step
        self._unread_step = None if frame.is_read else frame.step
        if completes:
            self._add_waiting()
            self._take_layers([frame])
            return
        self.frames += 1
        self._waiting.append(frame)
        if len(self._waiting) >= self._together:
            self._add_waiting()

    def _add_waiting(self) -> None:
        """Take the frames that wait."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        read = [frame for frame in waiting if frame.is_read]
        frames = self._take_layers(read) if read else None
        if frames is None or len(read) < len(waiting):
            frames = scalars_of(waiting, self._spread)
        self._note_scalars(frames)
        frames = frames.without_layers()
        self._late_paced.add(frames)
        self._paced.add(frames)

    def _take_layers(self, read: list[Frame]) -> Stretch:
        """Take the layers of frames that have them."""
        frames = stretch_of(read, self._spread)
        self._note_extremes(frames.steps, frames.layers)
        self.late.add(frames)
        self.points.add(frames)
        return frames

    def _note_extremes(self, steps: NDArray[np.int64], rows: Rows) -> None:
        seen, values = self._extremes, rows.values
        if rows.finite is None:
            seen.recorded[...] += len(values)
        else:
            there = ~is_missing(values)
            odd = there & ~rows.finite
            seen.recorded[...] += there.sum(0)
            seen.nonfinite[...] += odd.sum(0)
            new = odd.any(0) & (seen.first_nonfinite < 0)
            seen.first_nonfinite[new] = steps[odd[:, new].argmax(0)]
            values = np.where(np.isnan(values), -np.inf, values)
        highest = values.max(0)
        higher = highest > seen.highest
        if higher.any():
            seen.highest[higher] = highest[higher]
            seen.highest_step[higher] = steps[values[:, higher].argmax(0)]

    def _note_scalars(self, frames: Stretch) -> None:
        values, finite = frames.scalars
        if finite is None:
            return
        odd = ~finite & ~is_missing(values)
        for place in np.flatnonzero(odd.any(0)):
            step = int(frames.steps[odd[:, place].argmax()])
            self._first_nonfinite.setdefault(self.info.scalars[place], step)

    def history(self, damage: tuple[str, ...] = ()) -> History:
        """Return what was gathered so far; later frames do not change it."""
        self._add_waiting()
        return History(
            self.info,
            self.frames,
            self.points.course(self.info),
            self.late.course(self.info),
            self._paced.course(_without_layers(self.info)),
            self._late_paced.course(_without_layers(self.info)),
            self._extremes.changed(lambda _, values: values.copy()),
            dict(self._first_nonfinite),
            tuple(self._notes),
            damage,
            self.dropped,
        )


def _without_layers(info: RunInfo) -> RunInfo:
    return msgspec.structs.replace(info, layers=(), fields=())


def _room(one: int, memory: int) -> int:
    """Count the points of so many bytes each that fit into the memory, and few where it is less."""
    least = min(LEAST_POINTS, MOST_MEMORY // one)
    return min(max(memory // one, least, FEWEST_POINTS), MOST_POINTS)


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
        latest = frames.part(max(0, count - self.most), count)
        places = np.arange(self._seen + count - len(latest.steps), self._seen + count) % self.most
        self._steps[places], self._times[places] = latest.steps, latest.times
        self._scalars[places] = latest.scalars.values
        self.layers[places] = latest.layers.values
        self._seen += count

    def _order(self) -> NDArray[np.int64]:
        """Return the places of the frames, oldest first."""
        return np.arange(self._seen - min(self._seen, self.most), self._seen) % self.most

    def widened(self, most: int, before: RunInfo, info: RunInfo) -> Latest:
        """Return the same frames in a wider layout; fewer, where there is room for fewer."""
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
        """Return the frames; later ones do not change it."""
        order = self._order()
        steps, ones = self._steps[order], np.ones(len(order), np.int64)
        layers = self.layers[None, order]
        return Course(
            info, steps, steps, ones, self._times[order], self._scalars[None, order], layers
        )


class LiveHistory:
    """Frames, notes and layouts of a run, in their order."""

    def __init__(self) -> None:
        """Begin with nothing: the layout comes with the first frame."""
        self._builder: Builder | None = None
        self._notes: list[Note] = []  # those before the first frame

    def add(self, frame: Frame, info: RunInfo) -> None:
        """Add a frame, laid out as the info says."""
        if self._builder is None:
            self._builder = Builder(info)
            for note in self._notes:
                self._builder.note(note)
        self._builder.add(frame, info)

    def note(self, note: Note) -> None:
        """Add a note."""
        if self._builder is None:
            self._notes.append(note)
        else:
            self._builder.note(note)

    def history(self) -> History | None:
        """Return what was gathered so far; None before the first frame."""
        return None if self._builder is None else self._builder.history()
