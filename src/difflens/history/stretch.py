"""Frames that follow one another in one layout, stacked: NumPy's price is by the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .frame import Frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .layout import Spread


class Rows(NamedTuple):
    """Values of one kind, a row a frame, and which are finite; None where all of them are."""

    values: NDArray[Any]
    finite: NDArray[np.bool_] | None

    def part(self, start: int, stop: int) -> Rows:
        """Give some of the rows."""
        finite = None if self.finite is None else self.finite[start:stop]
        return Rows(self.values[start:stop], finite)


class Stretch(NamedTuple):
    """What was recorded at some steps, one after the other."""

    steps: NDArray[np.int64]
    times: NDArray[np.float64]
    scalars: Rows
    layers: Rows

    def part(self, start: int, stop: int) -> Stretch:
        """Give some of the frames."""
        return Stretch(
            self.steps[start:stop],
            self.times[start:stop],
            self.scalars.part(start, stop),
            self.layers.part(start, stop),
        )


def stretch_of(frames: Sequence[Frame], spread: Spread | None = None) -> Stretch:
    """Stack frames of one layout, spread over a wider one where there is one."""
    # What `stack` does, without a call of Python for each frame.
    scalars = np.concatenate([frame.scalars for frame in frames]).reshape(len(frames), -1)
    layers = np.concatenate([frame.layers for frame in frames])
    layers = layers.reshape(len(frames), *frames[0].layers.shape)
    if spread is not None:
        scalars, layers = spread.scalars(scalars), spread.layers(layers)
    steps = np.array([frame.step for frame in frames], np.int64)
    times = np.array([frame.wall_time for frame in frames])
    return Stretch(steps, times, _rows(scalars), _rows(layers))


def _rows(values: NDArray[Any]) -> Rows:
    finite = np.isfinite(values)
    return Rows(values, None if finite.all() else finite)
