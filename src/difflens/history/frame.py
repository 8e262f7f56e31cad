"""One step of training with all layers: numbers side by side, as they lie in the file.

What was not recorded is a NaN of its own bits (`MISSING`), so that a gradient that *is* NaN and a
layer that had none stay two things. A mask beside every array was not taken: it would have to be
carried through each copy, slice and file, and arithmetic treats both as "no number" anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..runs import MISSING_BITS, MISSING_SCALAR_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

MISSING = np.array(MISSING_BITS, np.uint32).view(np.float32)[()]
MISSING_SCALAR = np.array(MISSING_SCALAR_BITS, np.uint64).view(np.float64)[()]


class Frame(NamedTuple):
    """What was recorded at one step.

    `layers` is float32 of shape (fields, layers), `scalars` float64 of shape (scalars,), both in
    the order of the run's info.
    """

    sequence: int
    step: int
    wall_time: float
    monotonic_time: float
    scalars: NDArray[np.float64]
    layers: NDArray[np.float32]


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell what was not recorded from what is NaN.

    >>> is_missing(np.array([1.0, np.nan, MISSING], np.float32)).tolist()
    [False, False, True]
    """
    values = np.ascontiguousarray(values)
    if values.dtype == np.float32:
        return np.equal(values.view(np.uint32), MISSING_BITS)
    return np.equal(values.view(np.uint64), MISSING_SCALAR_BITS)


def no_layers(fields: int, layers: int) -> NDArray[np.float32]:
    """Give a block in which nothing is recorded yet."""
    return np.full((fields, layers), MISSING, np.float32)


def no_scalars(scalars: int) -> NDArray[np.float64]:
    """Give scalars of which none is recorded yet."""
    return np.full(scalars, MISSING_SCALAR, np.float64)
