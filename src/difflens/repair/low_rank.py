"""Recovers the two thin matrices whose product was added to a tensor.

Rounding hides the product: what is known of an element is the interval between its neighbours.
Least squares weighted with 1/ulp^2 use that; alternately for the rows of one matrix and the columns
of the other, four rounds, from the singular vectors of some rows. Only the result is stored, so
this may use fast libraries, which round differently from machine to machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

from difflens.core.dtypes import ROUNDING
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo
from difflens.measure.codec import scale
from difflens.measure.resources import one_thread_each

from .chunks import kind_of, read_range
from .recipes import MOST_FACTORS, MOST_RANK, Summed, summed

_ROWS, _COLUMNS = 256, 1024  # of a tensor, to look for a rank
_ROUNDS = 4
_BLOCK = 1 << 18  # elements in memory at once
_MOST_SUMS = 1 << 22  # products of pairs in memory at once: rank 16 of 16,384 columns
_LEAST = 16  # rows and columns of a matrix that is worth a look


class Pair(NamedTuple):
    """A matrix before and after."""

    base: TensorSource
    target: TensorSource
    origin: TensorInfo
    info: TensorInfo

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns; of a convolution, all that one output sees."""
        return self.info.shape[0], prod(self.info.shape[1:])

    def rows(self, first: int, last: int) -> tuple[Any, Any]:
        """Return how far the elements of some rows moved, and 1/ulp of each, as F64."""
        import numpy as np

        kind, width = kind_of(self.info.dtype), self.shape[1]
        size, sides = kind[0] * width, []
        for source, info in ((self.base, self.origin), (self.target, self.info)):
            data = memoryview(bytearray((last - first) * size))
            read_range(source, info.name, first * size, last * size, data)
            out = bytearray((last - first) * width * 8)
            scale(data, out, (kind, kind_of("F64")), (1.0, 1), False)
            sides.append(np.frombuffer(out).reshape(-1, width))
        least, bits = ROUNDING[self.info.dtype]
        _, power = np.frexp(sides[1])
        with np.errstate(invalid="ignore"):
            moved = sides[1] - sides[0]
        weight = np.ldexp(1.0, bits - np.maximum(power - 1, least))
        lost = ~np.isfinite(moved)
        moved[lost] = weight[lost] = 0
        return moved, weight

    def blocks(self) -> Iterator[tuple[int, int, Any, Any]]:
        """Yield all rows, some at a time."""
        rows, columns = self.shape
        step = max(_BLOCK // columns, 1)
        for first in range(0, rows, step):
            last = min(first + step, rows)
            yield (first, last, *self.rows(first, last))


def recovered(pair: Pair, most: int) -> list[Summed]:
    """Return recipes worth a trial; their matrices take half of `most` bytes or less."""
    with one_thread_each():
        rank, right = _start(pair)
        rows, columns = pair.shape
        if not rank or rank > MOST_RANK or rank * max(rows, columns) > MOST_FACTORS:
            return []
        if rank * (rows + columns) * 2 > most // 2 or rank * rank * columns > _MOST_SUMS:
            return []
        left, right = _fit(pair, right)
    (first, left), (second, right) = left, right
    factor = first * second
    return [
        summed(pair.info, (left, right), "F16", factor=factor, rounded=rounded)
        for rounded in (False, True)
    ]


def _fit(pair: Pair, right: Any) -> tuple[tuple[float, Any], tuple[float, Any]]:
    """Return both matrices in F16, each with the factor before it."""
    import numpy as np

    for _ in range(_ROUNDS):
        left, _ = np.linalg.qr(_solve_left(pair, right))  # even columns lose least in F16
        right = _solve_right(pair, left)
    factor, words = _rounded(right)
    left = _solve_left(pair, words.view("<f2").astype(float) * factor)
    return _rounded(left), (factor, words)


def _start(pair: Pair) -> tuple[int, Any]:
    """Count the singular values of some rows that rounding cannot explain; return their vectors."""
    import numpy as np

    rows, columns = pair.shape
    if min(rows, columns) < _LEAST or columns > _BLOCK:
        return 0, None
    chosen = np.linspace(0, rows - 1, min(rows, _ROWS, _BLOCK * 4 // columns)).astype(int)
    moved, weight = (np.concatenate(each) for each in zip(
        *(pair.rows(int(row), int(row) + 1) for row in chosen), strict=True
    ))  # fmt: skip
    some = np.linspace(0, columns - 1, min(columns, _COLUMNS)).astype(int)
    with np.errstate(divide="ignore"):
        noise = np.where(weight[:, some] > 0, 1 / (12 * weight[:, some] ** 2), 0)
    # No matrix of independent errors has a larger singular value, but for small fluctuations.
    edge = np.sqrt(noise.sum(0).max()) + np.sqrt(noise.sum(1).max())
    part = moved[:, some]
    rank = int((np.linalg.eigvalsh(part @ part.T) > edge**2).sum())
    if not rank or rank > min(part.shape) // 2:
        return 0, None
    _, vectors = np.linalg.eigh(moved @ moved.T)
    return rank, vectors[:, -rank:].T @ moved


def _solve_left(pair: Pair, right: Any) -> Any:
    """Fit every row of the left matrix, given the right one."""
    import numpy as np

    rank = len(right)
    left = np.empty((pair.shape[0], rank))
    pairs = _products(right)
    for first, last, moved, weight in pair.blocks():
        squared = weight * weight
        left[first:last] = _solved(squared @ pairs, (squared * moved) @ right.T, rank)
    return left


def _solve_right(pair: Pair, left: Any) -> Any:
    """Fit every column of the right matrix, given the left one."""
    import numpy as np

    rank, columns = left.shape[1], pair.shape[1]
    sums, sides = np.zeros((columns, rank * rank)), np.zeros((columns, rank))
    for first, last, moved, weight in pair.blocks():
        squared = weight * weight
        sums += squared.T @ _products(left[first:last].T)
        sides += (squared * moved).T @ left[first:last]
    return _solved(sums, sides, rank).T


def _products(right: Any) -> Any:
    """Return, of every column, the products of all pairs of its elements."""
    rank = len(right)
    return (right[:, None] * right[None]).reshape(rank * rank, -1).T


def _solved(sums: Any, sides: Any, rank: int) -> Any:
    import numpy as np

    sums = sums.reshape(-1, rank, rank)
    ridge = np.trace(sums, axis1=1, axis2=2)[:, None, None] * 1e-12 + 1e-300
    return np.linalg.solve(sums + ridge * np.eye(rank), sides[..., None])[..., 0]


def _rounded(factor: Any) -> tuple[float, Any]:
    """Round a factor to F16, after a power of two; return that and the words."""
    import numpy as np

    largest = float(np.abs(factor).max()) or 1.0
    power = float(np.ldexp(1.0, int(np.frexp(largest)[1])))
    words = (factor / power).astype("<f2")
    return power, words.view("<u2")
