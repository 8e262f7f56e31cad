"""Where the leading directions of the right matrix come from: cosines to those of the left.

Shuttleworth et al. (2024), "LoRA vs Full Fine-tuning: An Illusion of Equivalence": a direction is
an intruder where its largest |cosine| to any left singular vector of the base is small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..records import Record
from .differences import finite
from .gram import Gram
from .matrices import Matrix, chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

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
    """Give the singular values of both sides, and how their leading directions align.

    The cosines of one direction to all of the left's have squares that sum to one at most. So where
    the largest of those to the leading `_NEIGHBOURS` is larger than what is left of that sum, no
    other can be larger, and the left's other vectors need not be computed.
    """
    import numpy as np

    left_values, left_vectors = before.leading(_NEIGHBOURS)
    right_values, right_vectors = after.leading(DIRECTIONS)
    found = {"left": left_values, "right": right_values}
    told = int((right_values[:DIRECTIONS] > right_values[0] * after.floor).sum())
    if not told or left_values[0] == 0:
        return found, None
    vectors = right_vectors[:, :told] / (right_values[:told] if matrix.is_tall else 1)
    shadows = _shadows(left, right, matrix, vectors) if matrix.is_tall else vectors
    cosines = _cosines(left_values, left_vectors, shadows, before)
    largest = np.abs(cosines).max(axis=0)
    if (largest**2 < 1 - (cosines**2).sum(axis=0)).any():
        largest = np.abs(_cosines(*before.all_vectors(), shadows, before)).max(axis=0)
    smallest = np.linalg.svd(cosines[:told], compute_uv=False)[-1]
    return found, Alignment(tuple(np.minimum(largest, 1.0).tolist()), min(1.0, float(smallest)))


def _cosines(
    values: NDArray[Any], vectors: NDArray[Any], shadows: NDArray[Any], gram: Gram
) -> NDArray[Any]:
    """Give ⟨u_i, u_j⟩, left by right; tall: u_i = M v_i / s_i, where s_i is no noise."""
    import numpy as np

    lengths = values[: vectors.shape[1], None]
    if not gram.tall:
        return np.asarray(vectors.T @ shadows)
    safe = lengths > values[0] * gram.floor
    return np.where(safe, vectors.T @ shadows / np.where(safe, lengths, 1.0), 0.0)


def _shadows(left: Values, right: Values, matrix: Matrix, vectors: NDArray[Any]) -> NDArray[Any]:
    """Give leftᵀ (right · vectors) in one pass: what left makes of directions of a tall right."""
    import numpy as np

    result = np.zeros((matrix.columns, vectors.shape[1]))
    for before, after in zip(chunks(left, matrix), chunks(right, matrix), strict=True):
        result += finite(before).T @ (finite(after) @ vectors)
    return result
