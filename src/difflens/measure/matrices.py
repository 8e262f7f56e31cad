"""Tensors seen as matrices, in chunks along their longer side.

A linear layer is [out, in]; a convolution [out, in x k x k]. A stack of experts [E, out, in],
recognised by its name, is E matrices. A tensor with fewer than `LEAST` rows or columns is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.dtypes import FLOATS, OPAQUE, bits
from difflens.core.records import MOVED, Delta, TensorInfo

from .chunks import STEP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

LEAST = 16  # rows and columns below which singular values say little
HELD = 1 << 25  # elements of a wide matrix that are decoded as a whole
_DEPTH = 1024  # rows (or columns) a product takes: adding it up costs as much as 200 of them
_WIDE = 4096  # columns read at a time where each row has to be read in parts
_EXPERTS = re.compile(r"(^|[._])(experts?|exps)([._]|$)|_exps[._]")
_NO_NUMBERS = OPAQUE | {"C64", "F8_E8M0"}


class Matrix(NamedTuple):
    """One matrix of a tensor: its size, how many such the tensor stacks, and which it is."""

    rows: int
    columns: int
    stack: int = 1
    which: int = 0

    @property
    def small_side(self) -> int:
        """The smaller of both, the size of the Gram matrix."""
        return min(self.rows, self.columns)

    @property
    def is_tall(self) -> bool:
        """Has it more rows than columns?"""
        return self.rows > self.columns


def has_numbers(info: TensorInfo | None) -> bool:
    """Does it hold real floating-point numbers?"""
    return info is not None and info.dtype in FLOATS and info.dtype not in _NO_NUMBERS


def has_moved(delta: Delta) -> bool:
    """Is it a float tensor of one shape on both sides, whose values may differ?"""
    left, right = delta.pair.left, delta.pair.right
    if left is None or right is None or left.shape != right.shape or not left.count:
        return False
    return delta.kind in MOVED and has_numbers(left) and has_numbers(right)


def matrix_of(info: TensorInfo | None) -> Matrix | None:
    """See a tensor as a matrix, or as the first of a stack; None if it cannot be seen so.

    >>> matrix_of(TensorInfo("conv.weight", "F32", (64, 32, 3, 3)))
    Matrix(rows=64, columns=288, stack=1, which=0)
    >>> matrix_of(TensorInfo("mlp.experts.up_proj", "BF16", (8, 64, 32)))
    Matrix(rows=64, columns=32, stack=8, which=0)
    """
    if info is None or not has_numbers(info) or len(info.shape) < 2 or not info.count:
        return None
    if len(info.shape) == 3 and _EXPERTS.search(info.name):
        stack, rows, columns = info.shape
    else:
        stack, rows, columns = 1, info.shape[0], info.count // info.shape[0]
    return Matrix(rows, columns, stack) if min(rows, columns) >= LEAST else None


def is_precise(*sides: Values | None) -> bool:
    """Do the elements have more digits than a product of float32 keeps?"""
    return any(bits(side.info.dtype) > 16 for side in sides if side)


def chunks(values: Values, matrix: Matrix) -> Iterator[NDArray[Any]]:
    """Yield a tall matrix by rows and a wide one by columns, each chunk two-dimensional."""
    begin = matrix.which * matrix.rows * matrix.columns
    if matrix.is_tall:
        for first in range(0, matrix.rows, _DEPTH):
            last = min(first + _DEPTH, matrix.rows)
            span = values.span(begin + first * matrix.columns, begin + last * matrix.columns)
            yield span.reshape(last - first, matrix.columns)
    elif matrix.rows * matrix.columns <= HELD:
        whole = _read_matrix(values, begin, matrix)
        for first in range(0, matrix.columns, _DEPTH):
            yield whole[:, first : first + _DEPTH]
    else:
        yield from _by_columns(values, begin, matrix)


def _read_matrix(values: Values, begin: int, matrix: Matrix) -> NDArray[Any]:
    import numpy as np

    count = matrix.rows * matrix.columns
    first = values.span(begin, begin + min(STEP, count))
    whole = np.empty(count, first.dtype)
    whole[: len(first)] = first
    for start in range(STEP, count, STEP):
        stop = min(start + STEP, count)
        whole[start:stop] = values.span(begin + start, begin + stop)
    return whole.reshape(matrix.rows, matrix.columns)


def _by_columns(values: Values, begin: int, matrix: Matrix) -> Iterator[NDArray[Any]]:
    """Read a part of every row at a time, where the whole would not fit."""
    import numpy as np

    starts = range(begin, begin + matrix.rows * matrix.columns, matrix.columns)
    for first in range(0, matrix.columns, _WIDE):
        last = min(first + _WIDE, matrix.columns)
        yield np.stack([values.span(start + first, start + last) for start in starts])
