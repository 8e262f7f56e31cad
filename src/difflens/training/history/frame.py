"""One step of training with all layers, how frames are laid out, and several frames stacked.

What was not recorded is a NaN of its own bits (`MISSING`), so that a gradient that *is* NaN and a
layer that had none stay two things. A mask beside every array was not taken: it would have to be
carried through each copy, slice and file, and arithmetic treats both as "no number" anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from ..records.runs import MISSING_BITS, MISSING_SCALAR_BITS, RunInfo

if TYPE_CHECKING:
    from numpy.typing import NDArray

MISSING = np.array(MISSING_BITS, np.uint32).view(np.float32)[()]
MISSING_SCALAR = np.array(MISSING_SCALAR_BITS, np.uint64).view(np.float64)[()]


class Frame(NamedTuple):
    """What was recorded at one step.

    `layers` is float32 of shape (fields, layers), `scalars` float64 of shape (scalars,), both in
    the order of the run's info. Where `is_read` is false the step has its scalars alone, and
    nothing of `layers` is recorded.
    """

    sequence: int
    step: int
    wall_time: float
    monotonic_time: float
    scalars: NDArray[np.float64]
    layers: NDArray[np.float32]
    is_read: bool = True


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell what was not recorded from what is NaN.

    >>> is_missing(np.array([1.0, np.nan, MISSING], np.float32)).tolist()
    [False, False, True]
    """
    values = np.ascontiguousarray(values)
    if values.dtype == np.float32:
        return np.equal(values.view(np.uint32), MISSING_BITS)
    return np.equal(values.view(np.uint64), MISSING_SCALAR_BITS)


def is_any_recorded(layers: NDArray[np.float32]) -> bool:
    """Is there a value of some layer? A table of frames does not say it in another way."""
    return not layers.size or not is_missing(layers).all()


def no_layers(fields: int, layers: int) -> NDArray[np.float32]:
    """Return a block in which nothing is recorded yet."""
    return np.full((fields, layers), MISSING, np.float32)


@lru_cache(maxsize=8)
def unread_layers(fields: int, layers: int) -> NDArray[np.float32]:
    """Return the block of a step that was not read: one, shared and read-only, for all of them."""
    block = no_layers(fields, layers)
    block.flags.writeable = False
    return block


def no_scalars(scalars: int) -> NDArray[np.float64]:
    """Return scalars of which none is recorded yet."""
    return np.full(scalars, MISSING_SCALAR, np.float64)


Layout = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def layout(info: RunInfo) -> Layout:
    """Name scalars, fields and layers, in the order of a frame."""
    return info.scalars, info.fields, tuple(layer.name for layer in info.layers)


def union(*infos: RunInfo) -> RunInfo:
    """Return the last info with what only those before have; the newer word on a layer wins."""
    layers = {layer.name: layer for info in infos for layer in info.layers}
    return msgspec.structs.replace(
        infos[-1],
        layers=tuple(layers.values()),
        fields=tuple(dict.fromkeys(name for info in infos for name in info.fields)),
        scalars=tuple(dict.fromkeys(name for info in infos for name in info.scalars)),
    )


class Spread:
    """Puts what is laid out as `narrow` into the places it has in `wide`."""

    def __init__(self, narrow: RunInfo, wide: RunInfo) -> None:
        """Find the places."""
        self._sizes = tuple(map(len, layout(wide)))
        self._places = tuple(
            np.array([{name: i for i, name in enumerate(broad)}[name] for name in few], np.int64)
            for few, broad in zip(layout(narrow), layout(wide), strict=True)
        )

    def scalars(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Spread the last axis; what has no place is missing."""
        spread = np.full((*values.shape[:-1], self._sizes[0]), MISSING_SCALAR)
        spread[..., self._places[0]] = values
        return spread

    def layers(self, values: NDArray[Any], fill: Any = MISSING) -> NDArray[Any]:
        """Spread the last two axes, fields and layers."""
        spread = np.full((*values.shape[:-2], *self._sizes[1:]), fill, values.dtype)
        spread[..., self._places[1][:, None], self._places[2]] = values
        return spread

    def frame(self, frame: Frame) -> Frame:
        """Spread a frame."""
        return frame._replace(scalars=self.scalars(frame.scalars), layers=self.layers(frame.layers))


class Rows(NamedTuple):
    """Values of one kind, a row per frame, and which are finite; None if all of them are."""

    values: NDArray[Any]
    finite: NDArray[np.bool_] | None

    def part(self, start: int, stop: int) -> Rows:
        """Return some of the rows."""
        finite = None if self.finite is None else self.finite[start:stop]
        return Rows(self.values[start:stop], finite)


class Stretch(NamedTuple):
    """What was recorded at some steps, one after the other."""

    steps: NDArray[np.int64]
    times: NDArray[np.float64]
    scalars: Rows
    layers: Rows

    def part(self, start: int, stop: int) -> Stretch:
        """Return some of the frames."""
        return Stretch(
            self.steps[start:stop],
            self.times[start:stop],
            self.scalars.part(start, stop),
            self.layers.part(start, stop),
        )

    def without_layers(self) -> Stretch:
        """Return the steps with their scalars alone."""
        return self._replace(layers=_no_layers(len(self.steps)))


def scalars_of(frames: Sequence[Frame], spread: Spread | None = None) -> Stretch:
    """Stack the scalars of frames, whose layers are left out."""
    scalars = np.concatenate([frame.scalars for frame in frames]).reshape(len(frames), -1)
    if spread is not None:
        scalars = spread.scalars(scalars)
    steps = np.array([frame.step for frame in frames], np.int64)
    times = np.array([frame.wall_time for frame in frames])
    return Stretch(steps, times, _rows(scalars), _no_layers(len(frames)))


def stretch_of(frames: Sequence[Frame], spread: Spread | None = None) -> Stretch:
    """Stack frames of one layout, spread over a wider one where there is one."""
    # What `stack` does, without a call of Python for each frame.
    layers = np.concatenate([frame.layers for frame in frames])
    layers = layers.reshape(len(frames), *frames[0].layers.shape)
    if spread is not None:
        layers = spread.layers(layers)
    return scalars_of(frames, spread)._replace(layers=_rows(layers))


def _no_layers(frames: int) -> Rows:
    return Rows(np.zeros((frames, 0, 0), np.float32), None)


def _rows(values: NDArray[Any]) -> Rows:
    finite = np.isfinite(values)
    return Rows(values, None if finite.all() else finite)
