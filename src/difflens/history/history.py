"""A run in bounded memory: the whole course, the latest frames in full, what was ever extreme."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

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

    def changed(self, change: Callable[[str, Any], Any]) -> Extremes:
        """Give them with each array changed, which is told its name."""
        return Extremes(**{name: change(name, array) for name, array in self._asdict().items()})


# What an extreme is where nothing was seen.
NEVER = {"recorded": 0, "nonfinite": 0, "first_nonfinite": -1, "highest": -np.inf,
         "highest_step": -1}  # fmt: skip


def nothing_yet(shape: tuple[int, int]) -> Extremes:
    """Give the extremes of no frames, by fields and layers."""
    kinds = {"highest": np.float32}
    return Extremes(
        **{name: np.full(shape, least, kinds.get(name, np.int64)) for name, least in NEVER.items()}
    )


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
