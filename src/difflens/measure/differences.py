"""Both sides of a pair of matrices, read side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .gram import Gram
from .matrices import HELD, Matrix, chunks, is_precise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values


def differences(
    left: Values, right: Values, matrix: Matrix, *, precise: bool = True
) -> Iterator[tuple[NDArray[Any], NDArray[Any], int]]:
    """Yield right - left chunk by chunk, the right chunk, and how many elements are not finite.

    An element that is not finite on both sides did not move.
    """
    import numpy as np

    wide = np.float64 if precise else np.float32
    for before, after in zip(chunks(left, matrix), chunks(right, matrix), strict=True):
        with np.errstate(invalid="ignore", over="ignore"):
            moved = np.subtract(after, before, dtype=wide)
            is_clean = np.isfinite(np.dot(moved.ravel(), moved.ravel()))
        lost = 0
        if not is_clean:
            bad = ~(np.isfinite(before) & np.isfinite(after))
            lost = int(bad.sum())
            moved[bad] = 0
        yield moved, after, lost


def most_moved(left: Values, right: Values, matrix: Matrix) -> Matrix:
    """Choose of a stack the matrix with the largest ‖d‖, the first of equal ones."""
    import numpy as np

    if matrix.stack == 1:
        return matrix
    places = [matrix._replace(which=i) for i in range(matrix.stack)]
    norms = [
        sum(float(np.square(moved, dtype=np.float64).sum())
            for moved, _, _ in differences(left, right, place))
        for place in places
    ]  # fmt: skip
    return places[int(np.argmax(norms))]


def grams(left: Values | None, right: Values | None, matrix: Matrix) -> dict[str, Gram]:
    """Take the Gram matrices of the sides there are; one alone where both hold the same numbers."""
    given = {name: side for name, side in (("left", left), ("right", right)) if side}
    how = {"tall": matrix.is_tall, "precise": is_precise(left, right)}
    first, *others = given
    result = {first: Gram(matrix.small_side, **how)}
    streams = [chunks(side, matrix) for side in given.values()]
    for parts in zip(*streams, strict=True):
        if len(result) < len(parts) and not _same(*parts):
            result[others[0]] = result[first].copy()  # they were the same so far
        for gram, part in zip(result.values(), parts, strict=False):
            gram.add(finite(part))
    return result


def finite(chunk: NDArray[Any]) -> NDArray[Any]:
    """Give the chunk with zeros in place of what is not finite."""
    import numpy as np

    return chunk if np.isfinite(chunk).all() else np.where(np.isfinite(chunk), chunk, 0)


def size_bytes(matrix: Matrix, grams: int = 3) -> int:
    """Count the memory that spectra of a matrix take, with so many Gram matrices."""
    held = 0 if matrix.is_tall else 8 * min(HELD, matrix.rows * matrix.columns)
    return grams * 8 * matrix.small_side**2 + held + (32 << 20)


def _same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    import numpy as np

    return np.array_equal(left, right, equal_nan=True)
