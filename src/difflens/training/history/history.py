"""A run in bounded memory: the whole course, the latest frames in full, what was ever extreme.

A point of a course is one frame, or in a long run several neighbours: then it has the mean of what
was finite in them, and beside it the lowest and the highest value, so that no spike is averaged
away.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..records.runs import Layer, Note, RunInfo
from .frame import is_missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]


class Course:
    """Points of a run, oldest first. Arrays are (points,) or (points, layers); NaN is no number."""

    def __init__(  # noqa: PLR0917  the arrays of a point, in one order everywhere
        self,
        info: RunInfo,
        steps: NDArray[np.int64],
        first_steps: NDArray[np.int64],
        spans: NDArray[np.int64],
        wall_times: NDArray[np.float64],
        scalars: NDArray[np.float64],
        layers: NDArray[np.float32],
    ) -> None:
        """Take arrays whose first axis is mean, lowest, highest, and whose second is points."""
        self.info = info
        self.steps = steps  # of the last frame of each point
        self.first_steps = first_steps
        self.spans = spans  # frames that each point covers
        self.wall_times = wall_times
        self._scalars, self._layers = scalars, layers

    def __len__(self) -> int:
        """How many points there are."""
        return len(self.steps)

    @property
    def is_whole(self) -> bool:
        """Is every point one frame?"""
        return bool((self.spans == 1).all())

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, in the order of the second axis."""
        return self.info.layers

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """Parameters of each layer; NaN if the shape is not known."""
        return np.array([layer.count or np.nan for layer in self.layers], np.float64)

    def scalar(self, name: str) -> Floats | None:
        """Return a scalar over the points, or None if it was never recorded."""
        return self._scalar(name, 0)

    def scalar_low(self, name: str) -> Floats | None:
        """Return the lowest value of a scalar within each point."""
        return self._scalar(name, 1)

    def _scalar(self, name: str, which: int) -> Floats | None:
        if name not in self.info.scalars:
            return None
        values = self._scalars[which % len(self._scalars), :, self.info.scalars.index(name)]
        return None if is_missing(values).all() else values

    def first_scalar(self, names: tuple[str, ...]) -> tuple[str, Floats] | None:
        """Return the first of several scalars that was recorded, with its name."""
        for name in names:
            values = self.scalar(name)
            if values is not None:
                return name, values
        return None

    def field(self, name: str) -> Floats | None:
        """Return a field of every layer over the points, or None if it was never recorded."""
        return self._field(name, 0)

    def low(self, name: str) -> Floats | None:
        """Return the lowest value of a field within each point."""
        return self._field(name, 1)

    def high(self, name: str) -> Floats | None:
        """Return the highest value of a field within each point."""
        return self._field(name, 2)

    def _field(self, name: str, which: int) -> Floats | None:
        if name not in self.info.fields:
            return None
        values = self._layers[which % len(self._layers), :, self.info.fields.index(name)]
        return None if is_missing(values).all() else values

    def missing(self, name: str) -> NDArray[np.bool_]:
        """Tell where a field was not recorded, in contrast to a value that is NaN."""
        values = self._field(name, 0)
        if values is None:
            return np.ones((len(self), len(self.layers)), bool)
        return is_missing(values)

    def rms(self, name: str) -> Floats | None:
        """Return an L2 norm by the square root of the parameters: layers of all sizes compare."""
        values = self.field(name)
        return None if values is None else values / np.sqrt(self.counts)

    def ratio(self, name: str, other: str) -> Floats | None:
        """Return one field over another, NaN if that is zero or not recorded."""
        above, below = self.field(name), self.field(other)
        if above is None or below is None:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(below > 0, above / below, np.nan)

    def global_norm(self, name: str = "grad_l2") -> Floats | None:
        """Return the norm over all layers; NaN at points where a recorded layer is not finite."""
        values = self.field(name)
        if values is None:
            return None
        squares = np.where(self.missing(name), 0.0, np.square(values, dtype=np.float64))
        total = np.sqrt(squares.sum(axis=1))
        return np.where(self.missing(name).all(axis=1) | ~np.isfinite(total), np.nan, total)

    def last(self, points: int) -> Course:
        """Return the latest points alone."""
        return self.between(max(0, len(self) - points), len(self))

    def between(self, start: int, stop: int) -> Course:
        """Return the points [start, stop)."""
        part = slice(start, stop)
        return Course(
            self.info,
            self.steps[part],
            self.first_steps[part],
            self.spans[part],
            self.wall_times[part],
            self._scalars[:, part],
            self._layers[:, part],
        )

    def at(self, kept: NDArray[np.bool_], steps: NDArray[np.int64]) -> Course:
        """Return some of the points alone, at the steps that the caller says."""
        return Course(
            self.info,
            steps,
            np.minimum(self.first_steps[kept], steps),
            self.spans[kept],
            self.wall_times[kept],
            self._scalars[:, kept],
            self._layers[:, kept],
        )


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
        """Return them with each array changed; `change` gets its name and the array."""
        return Extremes(**{name: change(name, array) for name, array in self._asdict().items()})


# What an extreme is where nothing was seen.
NEVER = {
    "recorded": 0,
    "nonfinite": 0,
    "first_nonfinite": -1,
    "highest": -np.inf,
    "highest_step": -1,
}


def nothing_yet(shape: tuple[int, int]) -> Extremes:
    """Return the extremes of no frames, by fields and layers."""
    kinds = {"highest": np.float32}
    return Extremes(
        **{name: np.full(shape, least, kinds.get(name, np.int64)) for name, least in NEVER.items()}
    )


class History(NamedTuple):
    """A list of frames, as diagnoses see it.

    `course` covers the whole run; where the run is long its points are several frames each.
    `recent` are the latest frames, one point each, for tests that need neighbours. Both are of
    the steps whose layers were read. `scalars` and `recent_scalars` are the same of all steps,
    without layers.
    """

    info: RunInfo
    frames: int  # all steps, whether read or not
    course: Course
    recent: Course
    scalars: Course
    recent_scalars: Course
    extremes: Extremes
    first_nonfinite_scalar: dict[str, int]  # step at which a scalar first was NaN or infinite
    notes: tuple[Note, ...] = ()
    damage: tuple[str, ...] = ()
    dropped: int = 0  # frames missing between sequence numbers

    @property
    def read_steps(self) -> int:
        """How many steps have their layers."""
        return int(self.course.spans.sum())

    @property
    def first_step(self) -> int | None:
        """The step of the first frame."""
        return int(self.scalars.first_steps[0]) if self.frames else None

    @property
    def last_step(self) -> int | None:
        """The step of the last frame."""
        return int(self.scalars.steps[-1]) if self.frames else None

    def fact(self, name: str) -> object:
        """Return what the recorder saw of the model or the loop; the latest word counts."""
        for note in reversed(self.notes):
            if note.what == "fact" and name in note.data:
                return note.data[name]
        return self.info.facts.get(name)
