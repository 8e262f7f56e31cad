"""Which rows, columns or channels of a tensor are left in a smaller one."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.protocols import Values

from .records import is_rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SAMPLE = 96  # numbers of each slice that are compared
_LEAST = 4  # numbers that a slice must have
_ALIKE = 0.7  # correlation above which a slice is the one it was, trained on: half of its variance
_STEP = 1 << 18  # elements held at a time

Axes = tuple["NDArray[Any] | None", "NDArray[Any] | None"]  # what is left along rows and columns


class Shrunk(NamedTuple):
    """A tensor of both sides, smaller on the right along its first or second dimension."""

    name: str  # on the left
    left: Values
    right: Values

    @property
    def axes(self) -> tuple[int, ...]:
        """The dimensions that are smaller."""
        shapes = zip(self.left.info.shape, self.right.info.shape, strict=True)
        return tuple(axis for axis, (before, after) in enumerate(shapes) if before != after)

    def size(self, axis: int) -> tuple[int, int]:
        """How many slices there were and are."""
        return self.left.info.shape[axis], self.right.info.shape[axis]

    @property
    def is_vector(self) -> bool:
        """Has it one number a slice?"""
        return prod(self.right.info.shape) == self.right.info.shape[0]


def find_selection(
    tensor: Shrunk, axis: int, other: NDArray[Any] | None = None
) -> NDArray[Any] | None:
    """Return the slices of the left that the right holds along an axis, in its order.

    `other` is what is left along the other axis, where that is smaller too. None if some slice of
    the right is not one of the left, or could be several.
    """
    before = _slices(tensor.left, axis, other)
    after = _slices(tensor.right, axis, None)
    if before.shape[1] != after.shape[1] or before.shape[1] < _LEAST:
        return None
    return _equal(before, after) if _is_plain(before, after) else None


def _is_plain(before: NDArray[Any], after: NDArray[Any]) -> bool:
    import numpy as np

    return bool(np.isfinite(before).all() and np.isfinite(after).all())


def _slices(values: Values, axis: int, other: NDArray[Any] | None) -> NDArray[Any]:
    """Sample each slice along an axis: a row of the result for each."""
    import numpy as np

    shape = values.info.shape
    rest = prod(shape[2:])
    if axis == 0:
        columns = np.arange(shape[1]) if other is None else other
        some = columns[_spread(len(columns), -(-_SAMPLE // rest))]
        picked = (some[:, None] * rest + np.arange(rest)).ravel()
        return np.concatenate([block[:, picked] for block in values.rows(_STEP)]).astype("f4")
    rows = np.arange(shape[0]) if other is None else other
    some = rows[_spread(len(rows), -(-_SAMPLE // rest))]
    block = values.some_rows(some.tolist()).reshape(len(some), shape[1], rest)
    return block.transpose(1, 0, 2).reshape(shape[1], -1).astype("f4")


def _spread(length: int, most: int) -> NDArray[Any]:
    import numpy as np

    return np.unique(np.linspace(0, length - 1, min(length, most)).astype(np.int64))


def _equal(before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any] | None:
    """Match equal slices; where one is missing, match all of them by correlation."""
    import numpy as np

    places: dict[bytes, int] = {}
    for at, row in enumerate(before):
        places[_digest(row)] = at
    found = [places.get(_digest(row)) for row in after]
    if len(places) == len(before) and None not in found:
        chosen = np.array(found, np.int64)
        return chosen if len(set(found)) == len(found) else None
    return _alike(before, after)


def _digest(row: NDArray[Any]) -> bytes:
    from hashlib import blake2b  # 2 ms that few changes need

    return blake2b((row + 0.0).tobytes(), digest_size=16).digest()


def _alike(before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any] | None:
    import numpy as np

    units = _units(before)
    found: list[int] = []
    for first in range(0, len(after), 512):
        alike = _units(after[first : first + 512]) @ units.T
        best = alike.argmax(axis=1)
        if np.median(alike[np.arange(len(best)), best]) < _ALIKE:
            return None
        found += best.tolist()
    return np.array(found, np.int64) if len(set(found)) == len(found) else None


def _units(rows: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    size = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(size > 0, size, 1)


class Fit(NamedTuple):
    """How far the right is from what is left of the left."""

    apart: float  # ‖right - left[rows][:, columns]‖²
    size: float  # ‖left[rows][:, columns]‖²
    rounded: bool  # moved by rounding at most

    @property
    def is_same(self) -> bool:
        """Is more than half of it explained?"""
        return self.apart <= 0.5 * self.size


def fit(tensor: Shrunk, axes: Axes) -> Fit:
    """Compare all of the right with what the selections leave of the left."""
    import numpy as np

    apart, size, rounded = 0.0, 0.0, True
    for before, after in zip(_left(tensor, axes), tensor.right.rows(_STEP), strict=True):
        wide = before.astype(np.float64)
        apart += float(np.square(after - wide).sum())
        size += float(np.square(wide).sum())
        rounded = rounded and is_rounded(wide, after)
    return Fit(apart, size, rounded)


def _left(tensor: Shrunk, axes: Axes) -> Iterator[NDArray[Any]]:
    """Yield the chosen rows and columns of the left, in blocks as the right has them."""
    import numpy as np

    shape = tensor.left.info.shape
    rows, columns = axes
    chosen = np.arange(shape[0]) if rows is None else rows
    width, rest = prod(tensor.right.info.shape[1:]), prod(shape[2:])
    step = max(1, _STEP // max(1, width))
    if len(shape) == 1:
        step, whole = len(chosen), tensor.left.array().reshape(-1, 1)
        yield from (whole[chosen[at : at + _STEP]] for at in range(0, len(chosen), _STEP))
        return
    for first in range(0, len(chosen), step):
        block = tensor.left.some_rows(chosen[first : first + step].tolist())
        if columns is not None:
            block = block.reshape(len(block), -1, rest)[:, columns].reshape(len(block), -1)
        yield block
