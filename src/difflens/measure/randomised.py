"""The largest singular values of a matrix too large to be taken whole, by random projection.

Halko, Martinsson & Tropp (2011), "Finding Structure with Randomness": a random basis, sharpened by
power iterations, catches the leading directions; the error is a small part of the first value
that was left out. Every step is one pass over the chunks. Seed fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

OVERSAMPLING, ITERATIONS, SEED = 10, 4, 0

Chunks = Callable[[], Iterable["NDArray[Any]"]]


def leading_values(chunks: Chunks, rows: int, columns: int, count: int) -> NDArray[Any]:
    """Give the `count` largest singular values of what `chunks` yields anew each time.

    Chunks are rows of a tall matrix, or columns of a wide one, as `matrices.chunks` has them.
    """
    import numpy as np

    small, width = min(rows, columns), min(count + OVERSAMPLING, rows, columns)
    basis = np.random.default_rng(SEED).standard_normal((small, width))
    for _ in range(ITERATIONS + 1):
        basis, _ = np.linalg.qr(_squared(chunks, basis, tall=rows > columns))
    triangle = np.zeros((width, width))
    for chunk in chunks():
        part = np.asarray(chunk, np.float64)
        image = (part if rows > columns else part.T) @ basis
        triangle += image.T @ image
    found = np.linalg.eigvalsh(triangle)[::-1]
    return np.asarray(np.sqrt(np.maximum(found[:count], 0.0)))


def _squared(chunks: Chunks, basis: NDArray[Any], *, tall: bool) -> NDArray[Any]:
    """Multiply by MᵀM (or MMᵀ), one pass."""
    import numpy as np

    result = np.zeros_like(basis)
    for chunk in chunks():
        part = np.asarray(chunk, np.float64)
        part = part if tall else part.T
        result += part.T @ (part @ basis)
    return result
