"""Samples as arrays of numbers: the door through which the history methods take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def finite(values: Sequence[float] | NDArray[Any], what: str = "values") -> NDArray[Any]:
    """Give the values as float64; refuse NaN and infinity, which have no place in a test.

    >>> finite([1, 2]).tolist()
    [1.0, 2.0]
    """
    import numpy as np

    array = np.asarray(values, dtype=np.float64)
    strange = int(array.size - np.count_nonzero(np.isfinite(array)))
    if strange:
        raise ValueError(f"{what}: {strange} of {array.size} are not finite: leave them out first")
    return array
