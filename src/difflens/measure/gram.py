"""Singular values by way of the smaller Gram matrix: half the work of a decomposition, streamed.

Squared singular values are the eigenvalues of MᵀM (or MMᵀ), which chunks add up to, so that a
matrix of 128k x 2048 takes 32 MB. The price: eigenvalues are good to epsilon times the largest, so
that singular values below `floor` of the largest are noise. Chunks of 16-bit elements are
multiplied in float32 and summed in float64. A GPU does it where torch is already at work on one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from difflens.core.record import Record

from .matrices import HELD, Matrix, chunks, is_precise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

FLOOR = 5e-7  # relative to the largest singular value: sqrt(n epsilon) of float64
ROUGH_FLOOR = 2e-4  # the same where chunks were multiplied in float32


class Gram:
    """The Gram matrix of what was added; memory: two matrices of `size`² float64."""

    def __init__(self, size: int, *, tall: bool, precise: bool) -> None:
        """Begin with zeros."""
        import numpy as np

        self.tall = tall
        self.floor = FLOOR if precise else ROUGH_FLOOR
        self._type = np.float64 if precise else np.float32
        self._torch = accelerator()
        self.matrix: Any = (
            self._torch.zeros((size, size), dtype=self._torch.float64, device="cuda")
            if self._torch
            else np.zeros((size, size))
        )

    def add(self, chunk: NDArray[Any]) -> None:
        """Add rows of a tall matrix, or columns of a wide one."""
        import numpy as np

        part: Any = np.ascontiguousarray(chunk, self._type)
        if self._torch:
            part = self._torch.from_numpy(part).cuda().double()
        with np.errstate(over="ignore", invalid="ignore"):  # the caller sees that it is not finite
            self.matrix += part.T @ part if self.tall else part @ part.T

    def copy(self) -> Gram:
        """Return one that goes on from here."""
        twin = object.__new__(Gram)
        twin.__dict__.update(self.__dict__)
        twin.matrix = self.matrix.clone() if self._torch else self.matrix.copy()
        return twin

    @property
    def square_sum(self) -> float:
        """Sum of the squares of what was added."""
        return float(self.matrix.trace())

    def values(self) -> NDArray[Any]:
        """Return all singular values, the largest first."""
        import numpy as np

        if self._torch:
            eigenvalues = self._torch.linalg.eigvalsh(self.matrix).cpu().numpy()
        else:
            eigenvalues = np.linalg.eigvalsh(self.matrix)
        return _roots(eigenvalues)

    def leading(self, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return all singular values, and the vectors of the first `count`, by columns."""
        return _leading(self._host(), count)

    def all_vectors(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return all singular values and vectors, the largest first."""
        import numpy as np

        eigenvalues, vectors = np.linalg.eigh(self._host())
        return _roots(eigenvalues), vectors[:, ::-1]

    def is_finite(self) -> bool:
        """Did every square fit into a float64?"""
        import numpy as np

        return bool(np.isfinite(self._host().diagonal()).all())

    def _host(self) -> NDArray[Any]:
        return self.matrix.cpu().numpy() if self._torch else self.matrix


def accelerator() -> Any:
    """Return torch if it was imported already and has a GPU; it is never imported here."""
    torch = sys.modules.get("torch")
    try:
        return torch if torch is not None and torch.cuda.is_available() else None
    except (AttributeError, RuntimeError):  # half imported, or its driver does not answer
        return None


def _roots(eigenvalues: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.asarray(np.sqrt(np.maximum(eigenvalues[::-1], 0.0)))


def _leading(matrix: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Make it tridiagonal once, for all its eigenvalues and some of its vectors.

    Q T Qᵀ = G; Q is kept as reflections in the columns below the diagonal (LAPACK's dsytrd).
    """
    import numpy as np
    from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal, lapack

    size = len(matrix)
    work = int(lapack.dsytrd_lwork(size, lower=1)[0])
    reduced, diagonal, beside, tau, _ = lapack.dsytrd(matrix, lower=1, lwork=work)
    values = _roots(eigvalsh_tridiagonal(diagonal, beside))
    first = max(0, size - count)
    _, inner = eigh_tridiagonal(diagonal, beside, select="i", select_range=(first, size - 1))
    vectors = np.asfortranarray(inner)
    reflections = np.asfortranarray(reduced[1:, : size - 1])
    vectors[1:], _, _ = lapack.dormqr("L", "N", reflections, tau, vectors[1:], 64 * size)
    return values, vectors[:, ::-1]


# Both sides of a pair of matrices, read side by side.


def differences(
    left: Values, right: Values, matrix: Matrix, *, precise: bool = True
) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]]:
    """Yield right - left chunk by chunk, both chunks, and how many elements are not finite.

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
        yield moved, before, after, lost


def most_moved(left: Values, right: Values, matrix: Matrix) -> Matrix:
    """Choose of a stack the matrix with the largest ‖d‖, the first of equal ones."""
    import numpy as np

    if matrix.stack == 1:
        return matrix
    places = [matrix._replace(which=i) for i in range(matrix.stack)]
    norms = [
        sum(
            float(np.square(moved, dtype=np.float64).sum())
            for moved, *_ in differences(left, right, place)
        )
        for place in places
    ]
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
    """Return the chunk with zeros in place of what is not finite."""
    import numpy as np

    return chunk if np.isfinite(chunk).all() else np.where(np.isfinite(chunk), chunk, 0)


def size_bytes(matrix: Matrix, grams: int = 3) -> int:
    """Count the memory that spectra of a matrix take, with so many Gram matrices."""
    held = 0 if matrix.is_tall else 8 * min(HELD, matrix.rows * matrix.columns)
    return grams * 8 * matrix.small_side**2 + held + (32 << 20)


def _same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    import numpy as np

    return np.array_equal(left, right, equal_nan=True)


# Where the leading directions of the right matrix come from: cosines to those of the left.
# Shuttleworth et al. (2024), "LoRA vs Full Fine-tuning: An Illusion of Equivalence": a direction is
# an intruder where its largest |cosine| to any left singular vector of the base is small.


DIRECTIONS = 10  # leading directions that are followed
_NEIGHBOURS = 48  # directions of the left that are tried first


class Alignment(Record, frozen=True):
    """For each leading left singular vector of the right side, its largest |cosine| to the left's.

    `subspace_cosine` is that of the largest angle between both leading subspaces: vectors whose
    singular values are close rotate freely among each other, the subspace does not.
    """

    cosines: tuple[float, ...]
    subspace_cosine: float


def alignment(
    left: Values, right: Values, matrix: Matrix, before: Gram, after: Gram
) -> tuple[dict[str, NDArray[Any]], Alignment | None]:
    """Return the singular values of both sides, and how their leading directions align.

    The cosines of one direction to all of the left's have squares that sum to one at most. So where
    the largest of those to the leading `_NEIGHBOURS` is larger than what is left of that sum, no
    other can be larger, and the left's other vectors need not be computed.
    """
    import numpy as np

    left_values, left_vectors = before.leading(_NEIGHBOURS)
    right_values, right_vectors = after.leading(DIRECTIONS)
    values = {"left": left_values, "right": right_values}
    above_noise = int((right_values[:DIRECTIONS] > right_values[0] * after.floor).sum())
    if not above_noise or left_values[0] == 0:
        return values, None
    lengths = right_values[:above_noise] if matrix.is_tall else 1
    vectors = right_vectors[:, :above_noise] / lengths
    shadows = _shadows(left, right, matrix, vectors) if matrix.is_tall else vectors
    cosines = _cosines(left_values, left_vectors, shadows, before)
    largest = np.abs(cosines).max(axis=0)
    if (largest**2 < 1 - (cosines**2).sum(axis=0)).any():
        largest = np.abs(_cosines(*before.all_vectors(), shadows, before)).max(axis=0)
    smallest = np.linalg.svd(cosines[:above_noise], compute_uv=False)[-1]
    return values, Alignment(tuple(np.minimum(largest, 1.0).tolist()), min(1.0, float(smallest)))


def _cosines(
    values: NDArray[Any], vectors: NDArray[Any], shadows: NDArray[Any], gram: Gram
) -> NDArray[Any]:
    """Return ⟨u_i, u_j⟩, left by right; tall: u_i = M v_i / s_i, where s_i is no noise."""
    import numpy as np

    lengths = values[: vectors.shape[1], None]
    if not gram.tall:
        return np.asarray(vectors.T @ shadows)
    safe = lengths > values[0] * gram.floor
    return np.where(safe, vectors.T @ shadows / np.where(safe, lengths, 1.0), 0.0)


def _shadows(left: Values, right: Values, matrix: Matrix, vectors: NDArray[Any]) -> NDArray[Any]:
    """Return leftᵀ (right · vectors) in one pass: what left makes of directions of a tall right."""
    import numpy as np

    result = np.zeros((matrix.columns, vectors.shape[1]))
    for before, after in zip(chunks(left, matrix), chunks(right, matrix), strict=True):
        result += finite(before).T @ (finite(after) @ vectors)
    return result


# The largest singular values of a matrix too large to be taken whole, by random projection.
# Halko, Martinsson & Tropp (2011), "Finding Structure with Randomness": a random basis, sharpened
# by power iterations, catches the leading directions; the error is a small part of the first value
# that was left out. Every step is one pass over the chunks. The seed is fixed.


OVERSAMPLING, ITERATIONS, SEED = 10, 4, 0

Chunks = Callable[[], Iterable["NDArray[Any]"]]


def leading_values(chunks: Chunks, rows: int, columns: int, count: int) -> NDArray[Any]:
    """Return the `count` largest singular values of what `chunks` yields anew each time.

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
    eigenvalues = np.linalg.eigvalsh(triangle)[::-1]
    return np.asarray(np.sqrt(np.maximum(eigenvalues[:count], 0.0)))


def _squared(chunks: Chunks, basis: NDArray[Any], *, tall: bool) -> NDArray[Any]:
    """Multiply by MᵀM (or MMᵀ), one pass."""
    import numpy as np

    result = np.zeros_like(basis)
    for chunk in chunks():
        part = np.asarray(chunk, np.float64)
        part = part if tall else part.T
        result += part.T @ (part @ basis)
    return result
