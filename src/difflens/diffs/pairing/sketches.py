"""A sample of one tensor's numbers, and how alike two samples are.

The positions that are read depend on a tensor's shape alone, so that samples of two tensors can be
compared element by element, also where one is transposed. A sample is ranked, so that no single
large number counts for more than another, and centred along each axis, so that what all rows or
all columns share is no likeness.
"""

from __future__ import annotations

from math import gcd, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.records import TensorInfo
from difflens.measure.values import Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST = 16  # units of an axis, or elements of a tensor, below which chance has too many ways
_SIDE = 48  # rows and columns that are read
# Gates and fused parts stand above each other: two, three or four of them to a tensor. Units
# change places within a part only, for forget gates resemble each other in all models.
_PARTS = 12
_AT_ONCE = 1 << 16  # elements between the first and the last sampled column that one read fetches


class Shape(NamedTuple):
    """A tensor as a matrix, the longer side first where it has just two."""

    rows: int
    columns: int

    @property
    def is_vector(self) -> bool:
        """Has it no axis along which units could change places, but for its elements?"""
        return max(self) < FEWEST or min(self) == 1


def core(info: TensorInfo) -> tuple[int, ...]:
    """List its dimensions without those of 1."""
    return tuple(length for length in info.shape if length != 1)


def shape_of(info: TensorInfo) -> Shape:
    """See a tensor as a matrix: the first dimension against all others."""
    lengths = core(info)
    if len(lengths) < 2:
        return Shape(prod(lengths), 1)
    first, rest = lengths[0], prod(lengths[1:])
    return Shape(max(first, rest), min(first, rest)) if len(lengths) == 2 else Shape(first, rest)


def sample(values: Values) -> NDArray[Any] | None:
    """Read some rows and columns, oriented as `shape_of` says; None if one is not finite."""
    import numpy as np

    rows, columns = stored = _stored(values.info)
    if shape_of(values.info).is_vector:
        numbers = np.concatenate(
            [values.span(start, stop) for start, stop in _runs(rows * columns, _SIDE * _SIDE)]
        )[:, None]
        if columns > 1:  # a small matrix, read as a whole
            numbers = numbers.reshape(stored)
    else:
        spans = _runs(columns, _SIDE)
        chosen = [row for start, stop in _runs(rows, _SIDE) for row in range(start, stop)]
        numbers = np.stack([_picked(values, row * columns, spans) for row in chosen])
    numbers = numbers.astype(np.float64, copy=False)
    if not np.isfinite(numbers).all():
        return None
    return numbers.T if Shape(*stored) != shape_of(values.info) else numbers


def _stored(info: TensorInfo) -> tuple[int, int]:
    lengths = core(info)
    return (lengths[0], prod(lengths[1:])) if lengths else (1, 1)


def _picked(values: Values, offset: int, spans: list[tuple[int, int]]) -> NDArray[Any]:
    import numpy as np

    first, last = spans[0][0], spans[-1][1]
    if last - first > _AT_ONCE:
        parts = [values.span(offset + start, offset + stop) for start, stop in spans]
    else:
        whole = values.span(offset + first, offset + last)
        parts = [whole[start - first : stop - first] for start, stop in spans]
    return np.concatenate(parts)


def _runs(length: int, most: int) -> list[tuple[int, int]]:
    """Choose the positions of an axis: a run from the middle of each part, all equally long."""
    parts = gcd(length, _PARTS)
    size = length // parts
    each = min(size, max(1, most // parts))
    starts = (part * size + (size - each) // 2 for part in range(parts))
    return [(start, start + each) for start in starts]


class Sketch(NamedTuple):
    """A sample, ranked and centred; `axes` are those along which units may change places."""

    numbers: NDArray[Any]
    axes: tuple[tuple[int, int], ...]  # axis, and the number of its parts
    size: float

    @property
    def unit(self) -> NDArray[Any]:
        """Flatten it to a vector of length 1."""
        unit: NDArray[Any] = self.numbers.ravel() / self.size
        return unit.astype("f4")


def sketch(numbers: NDArray[Any], shape: Shape) -> Sketch | None:
    """Rank and centre a sample; None if nothing is left of it."""
    import numpy as np

    if shape.is_vector:
        numbers, shape = numbers.reshape(-1, 1), Shape(prod(shape), 1)
    lengths = enumerate(shape)
    axes = tuple((axis, gcd(length, _PARTS)) for axis, length in lengths if length >= FEWEST)
    _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places].reshape(numbers.shape)
    for axis, parts in axes:
        blocks = _blocks(ranks, axis, parts)
        centred = (blocks - blocks.mean(axis=1, keepdims=True)).reshape(-1, blocks.shape[2])
        ranks = centred.T if axis else centred
    size = float(np.sqrt(np.square(ranks).sum()))
    return Sketch(ranks, axes, size) if size > 1e-9 * numbers.size else None


def _blocks(numbers: NDArray[Any], axis: int, parts: int) -> NDArray[Any]:
    """Split an axis into its parts: part, unit, what the unit holds."""
    units = numbers.T if axis else numbers
    return units.reshape(parts, -1, units.shape[1])


def likeness(left: Sketch, right: Sketch) -> float:
    """Return the correlation of two sketches."""
    from numpy import vdot

    return float(vdot(left.numbers, right.numbers)) / (left.size * right.size)


def independent_elements(left: Sketch, right: Sketch) -> float:
    """Count the elements that speak for themselves: the correlation of strangers has sd 1/√count.

    If units were put in any other order (within their part), the correlation would have a variance
    that the two sketches tell exactly (Hoeffding 1951): Σ ‖A Bᵀ‖² / (n - 1) over parts. The axis
    that leaves fewer decides: one of the two may be in an order that all models share, such as
    pixels, tokens or classes.
    """
    from numpy import square

    counts = []
    for axis, parts in left.axes:
        one, other = (_blocks(each.numbers, axis, parts) for each in (left, right))
        spread = float(square(one @ other.transpose(0, 2, 1)).sum()) / (one.shape[1] - 1)
        counts.append((left.size * right.size) ** 2 / spread if spread else 0.0)
    return min(counts)


def log_orders(one: Sketch) -> float:
    """Return the log of the number of distinct orders: 1 over it is the smallest possible p."""
    import numpy as np
    from scipy.special import gammaln

    logarithms = []
    for axis, parts in one.axes:
        orders = 0.0
        for block in _blocks(one.numbers, axis, parts):
            _, equal = np.unique(block, axis=0, return_counts=True)
            orders += float(gammaln(len(block) + 1) - gammaln(equal + 1).sum())
        logarithms.append(orders)
    return min(logarithms)
