"""Are the units of a layer as like each other in both models, whatever became of what they read?"""

from __future__ import annotations

from math import lgamma, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from .agreement import LEAST, normed

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Likeness(NamedTuple):
    """Correlation of how like each other the units are, on both sides, and its p."""

    rho: float
    log10_p: float


def likeness(left: NDArray[Any], right: NDArray[Any]) -> Likeness | None:
    """Correlate the cosines among the units of the left with those of the right (Mantel 1967).

    Cosines among units stay as they are when whatever the units read is rotated or reordered. The
    mean and the variance under exchanged units are exact; p as above.
    """
    import numpy as np
    from scipy.special import log_ndtr

    n = len(left)
    rows = [normed(np.asarray(side, np.float64)) for side in (left, right)]
    if n < LEAST or any(row is None for row in rows):
        return None
    a, b = (_hollow_centred(row @ row.T) for row in rows)  # type: ignore[union-attr]
    squares = [float(np.square(side).sum()) for side in (a, b)]
    if not min(squares) > 0:
        return None
    shared = [
        float(np.square(side.sum(axis=1)).sum()) - square
        for side, square in zip((a, b), squares, strict=True)
    ]
    disjoint = [-4 * one - 2 * square for one, square in zip(shared, squares, strict=True)]
    pairs = n * (n - 1.0)
    variance = (
        2 * squares[0] * squares[1]
        + 4 * shared[0] * shared[1] / (n - 2)
        + disjoint[0] * disjoint[1] / ((n - 2) * (n - 3))
    ) / pairs
    product = float((a * b).sum())
    z = product / sqrt(variance) if variance > 0 else 0.0
    p = max(-lgamma(n + 1) / log(10), float(log_ndtr(-z)) / log(10))
    return Likeness(product / sqrt(squares[0] * squares[1]), p)


def _hollow_centred(square: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    n = len(square)
    mean = (square.sum() - np.trace(square)) / (n * (n - 1))
    square = square - mean
    np.fill_diagonal(square, 0)
    return square
