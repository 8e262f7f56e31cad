"""Makes a history of frames, in memory that does not grow with the run.

Frames are kept as they come and taken some at a time: a stretch of them costs little more than one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import RunError
from ..runs import Note, RunInfo
from .format import frame_size, trouble_with
from .frame import Frame, is_missing
from .history import NEVER, History, nothing_yet
from .latest import Latest
from .layout import Spread, layout, union
from .stretch import Rows, Stretch, stretch_of
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
        self._extremes = nothing_yet((len(info.fields), len(info.layers)))
        self._together = max(1, min(_TOGETHER, _TOGETHER_BYTES // frame_size(info)))

    def _room(self, info: RunInfo) -> tuple[int, int]:
        """Count the points and the latest frames that a layout leaves room for."""
        room = _room(frame_size(info) * 4, self._memory)
        return room - room % 2, min(room, self._most_recent)

    def describe(self, info: RunInfo) -> None:
        """Go on with another layout: layers, fields or scalars that are new, or gone."""
        self._take()
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
        self.frames += 1
        self._waiting.append(frame)
        if len(self._waiting) >= self._together:
            self._take()

    def _take(self) -> None:
        """Take the frames that wait."""
        if not self._waiting:
            return
        frames = stretch_of(self._waiting, self._spread)
        self._waiting = []
        self._note_extremes(frames.steps, frames.layers)
        self._note_scalars(frames)
        self.late.add(frames)
        self.points.add(frames)

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
        """Give what was gathered so far; later frames do not change it."""
        self._take()
        return History(
            self.info,
            self.frames,
            self.points.course(self.info),
            self.late.course(self.info),
            self._extremes.changed(lambda _, values: values.copy()),
            dict(self._first_nonfinite),
            tuple(self._notes),
            damage,
            self.dropped,
        )


def _room(one: int, memory: int) -> int:
    """Count the points of so many bytes each that fit into the memory, and few where it is less."""
    least = min(LEAST_POINTS, MOST_MEMORY // one)
    return min(max(memory // one, least, FEWEST_POINTS), MOST_POINTS)
