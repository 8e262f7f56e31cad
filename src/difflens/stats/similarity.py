"""How alike two sets of vectors are, row for row, whatever the directions of their axes.

Matrices are read in blocks of rows and summed in float64, so that an embedding of 50,000 rows
takes no copy of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 1 << 22  # elements of a matrix held in float64 at once


class Overlap(NamedTuple):
    """How many nearest neighbours rows keep: as a share, each row's own, and by chance alone."""

    mean: float
    shares: tuple[float, ...]
    null: float


def linear_cka(x: NDArray[Any], y: NDArray[Any]) -> float | None:
    """Compare two representations of the same n rows: HSIC(X, Y)/sqrt(HSIC(X, X) HSIC(Y, Y)).

    Kornblith et al. (2019). Biased HSIC is |X'Y|^2 of the centred columns; unrelated rows then give
    about p/(n + p), not 0. Unbiased is the estimator of Song et al. (2012), which for centred
    columns, with d = sum k_ii l_ii over the rows' squared lengths, is in proportion to
    |X'Y|^2 - d n/(n - 2) + sum k_ii sum l_ii/((n - 1)(n - 2)).
    None if a side does not vary, or below four rows.
    """
    _same_rows(x, y)
    if len(x) < 4:
        return None
    centred = _Centred(x), _Centred(y)
    cross, left, right = (
        _hsic(one, other) for one, other in (centred, centred[:1] * 2, centred[1:] * 2)
    )
    if left <= 0 or right <= 0:
        return None
    return float(cross / (left * right) ** 0.5)


def procrustes(x: NDArray[Any], y: NDArray[Any]) -> float | None:
    """Rotate the centred X onto the centred Y as well as can be: min over Q of |XQ - Y|/|Y|.

    Q = UV' of the singular vectors of X'Y (Schonemann 1966). 0 for a rotation, 1 and more for
    unrelated rows; None if Y does not vary.
    """
    import numpy as np

    _same_rows(x, y)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"{x.shape[1]} and {y.shape[1]} columns: no rotation joins them")
    left, right = _Centred(x), _Centred(y)
    size = float(right.lengths.sum())
    if size <= right.rounding:
        return None
    first, _, second = np.linalg.svd(_cross(left, right), full_matrices=False)
    rotation = first @ second
    rest = sum(
        float(((one @ rotation - other) ** 2).sum())
        for one, other in zip(left.blocks(), right.blocks(), strict=True)
    )
    return float((rest / size) ** 0.5)


def neighbour_overlap(
    x: NDArray[Any], y: NDArray[Any], k: int, sample: Sequence[int] | NDArray[Any]
) -> Overlap:
    """Compare the k nearest neighbours by cosine, among all rows, of each row of the sample.

    By chance they share k/(n - 1); a rotation or a change of scale keeps them all.
    """
    import numpy as np

    _same_rows(x, y)
    n = len(x)
    if not 0 < k < n:
        raise ValueError(f"{k} neighbours of {n} rows: there must be at least 1, at most {n - 1}")
    rows = np.asarray(sample, np.int64)
    if not len(rows):
        raise ValueError("no row was asked for")
    lengths = [np.linalg.norm(side, axis=1) for side in (x, y)]
    step = max(1, _BLOCK // n)
    shares = []
    for first in range(0, len(rows), step):
        some = rows[first : first + step]
        near = [_nearest(side, size, some, k) for side, size in zip((x, y), lengths, strict=True)]
        shares += [len(set(a) & set(b)) / k for a, b in zip(*near, strict=True)]
    return Overlap(float(np.mean(shares)), tuple(shares), k / (n - 1))


def _nearest(side: NDArray[Any], lengths: NDArray[Any], rows: NDArray[Any], k: int) -> list[Any]:
    import numpy as np

    cosines = (side[rows] @ side.T) / np.where(lengths > 0, lengths, 1)
    cosines[np.arange(len(rows)), rows] = -np.inf
    return list(np.argpartition(-cosines, k - 1, axis=1)[:, :k].tolist())


class _Centred:
    """A matrix with the means of its columns taken off, block by block."""

    def __init__(self, matrix: NDArray[Any]) -> None:
        import numpy as np

        self.matrix = matrix
        self.step = max(1, _BLOCK // max(1, matrix.shape[1]))
        self.means = np.zeros(matrix.shape[1])
        total = sum((block.sum(axis=0) for block in self.blocks()), np.zeros(matrix.shape[1]))
        self.means = total / max(1, len(matrix))
        squares = [(block**2).sum(axis=1) for block in self.blocks()]
        self.lengths = np.concatenate([*squares, np.empty(0)])
        # Columns that do not vary leave this much behind when their mean is taken off.
        self.rounding = len(matrix) * float((self.means**2).sum()) * 1e-28

    def blocks(self) -> Iterator[NDArray[Any]]:
        import numpy as np

        for first in range(0, len(self.matrix), self.step):
            yield self.matrix[first : first + self.step].astype(np.float64) - self.means


def _hsic(x: _Centred, y: _Centred) -> float:
    n = len(x.lengths)
    if float(x.lengths.sum()) <= x.rounding or float(y.lengths.sum()) <= y.rounding:
        return 0.0
    diagonal = float((x.lengths * y.lengths).sum())
    traces = float(x.lengths.sum()) * float(y.lengths.sum())
    return _inner(x, y) - diagonal * n / (n - 2) + traces / ((n - 1) * (n - 2))


def _inner(x: _Centred, y: _Centred) -> float:
    """Return |X'Y|^2, by way of the smaller of the rows' and the columns' products."""
    import numpy as np

    n, wide = len(x.lengths), min(x.matrix.shape[1], y.matrix.shape[1])
    if n >= wide:
        return float((_cross(x, y) ** 2).sum())
    grams = [whole @ whole.T for whole in (np.concatenate(list(s.blocks())) for s in (x, y))]
    return float((grams[0] * grams[1]).sum())


def _cross(x: _Centred, y: _Centred) -> NDArray[Any]:
    import numpy as np

    total = np.zeros((x.matrix.shape[1], y.matrix.shape[1]))
    y.step = x.step
    for one, other in zip(x.blocks(), y.blocks(), strict=True):
        total += one.T @ other
    return total


def _same_rows(x: NDArray[Any], y: NDArray[Any]) -> None:
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
        raise ValueError(f"shapes {x.shape} and {y.shape}: two matrices of the same rows are asked")
