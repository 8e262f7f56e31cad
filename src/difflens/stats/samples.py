"""Samples as arrays of finite numbers, or an error that says what is wrong; their robust spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


LARGEST = 1e150  # beyond it a square overflows a float64
_ROUNDING = 2.0**-50  # a spread of four units in the last place is rounding, not variation


def sample(values: Sequence[float] | NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Return the values as an array; refuse an empty one, and numbers that cannot be averaged."""
    import numpy as np

    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions, a sample has one")
    if not array.size:
        raise ValueError(f"{name} holds no values")
    odd = int(np.count_nonzero(~np.isfinite(array)))
    if odd:
        raise ValueError(
            f"{name} holds {odd} values that are not finite; leave them out and say so"
        )
    if np.abs(array).max() > LARGEST:
        raise ValueError(f"{name} holds values beyond {LARGEST:g}, too large to square")
    return array


def pairs(
    left: Sequence[float], right: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both sides as arrays of one length, in the given order."""
    before, after = sample(left, "left"), sample(right, "right")
    if before.size != after.size:
        raise ValueError(f"left has {before.size} values, right {after.size}; pairs need as many")
    return before, after


def variance(array: NDArray[np.float64], magnitude: float | None = None) -> float:
    """Return the unbiased variance, exactly zero if the spread is no more than rounding.

    `magnitude` is the size of the numbers that were rounded, where the array holds differences.
    """
    import numpy as np

    scale = float(np.abs(array).max()) if magnitude is None else magnitude
    if array.max() - array.min() <= _ROUNDING * scale:
        return 0.0
    return float(array.var(ddof=1))


def probability(value: float, name: str) -> float:
    """Refuse a level or a rate that does not lie between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} is {value!r}, it must lie between 0 and 1")
    return value


# Of a normal distribution, in standard deviations (Iglewicz & Hoaglin 1993).
NORMAL_MAD = 0.6745
NORMAL_MEAN_DEVIATION = 0.7979


def robust_deviation(values: Any, center: Any = None, axis: int | None = None) -> Any:
    """Estimate the standard deviation by median |x - center| / 0.6745; center: the median.

    >>> float(robust_deviation([1.0, 2.0, 3.0, 4.0, 1000.0])) == 1 / 0.6745
    True
    """
    import numpy as np

    array = np.asarray(values, np.float64)
    if center is None:
        center = np.median(array, axis=axis, keepdims=axis is not None)
    return np.median(np.abs(array - center), axis=axis) / NORMAL_MAD
