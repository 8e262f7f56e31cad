"""A run in bounded memory: the whole course, the latest frames in full, what was ever extreme."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..runs import Note, RunInfo
from .course import Course

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Extremes(NamedTuple):
    """What was seen of every field and layer over all frames, whatever was thinned out since.

    Arrays have the shape (fields, layers); steps are -1 where it never happened.
    """

    recorded: NDArray[np.int64]  # frames in which there was a value
    nonfinite: NDArray[np.int64]  # frames in which it was NaN or infinite
    first_nonfinite: NDArray[np.int64]  # step of the first such frame
    highest: NDArray[np.float32]
    highest_step: NDArray[np.int64]


class History(NamedTuple):
    """A list of frames, as diagnoses see it.

    `course` covers the whole run; where the run is long its points are several frames each.
    `recent` are the latest frames, one point each, for tests that need neighbours.
    """

    info: RunInfo
    frames: int
    course: Course
    recent: Course
    extremes: Extremes
    first_nonfinite_scalar: dict[str, int]  # step at which a scalar first was NaN or infinite
    notes: tuple[Note, ...] = ()
    damage: tuple[str, ...] = ()
    dropped: int = 0  # frames missing between sequence numbers

    @property
    def first_step(self) -> int | None:
        """The step of the first frame."""
        return int(self.course.first_steps[0]) if self.frames else None

    @property
    def last_step(self) -> int | None:
        """The step of the last frame."""
        return int(self.course.steps[-1]) if self.frames else None

    def fact(self, name: str) -> object:
        """Give what the recorder saw of the model or the loop; the latest word counts."""
        for note in reversed(self.notes):
            if note.what == "fact" and name in note.data:
                return note.data[name]
        return self.info.facts.get(name)
