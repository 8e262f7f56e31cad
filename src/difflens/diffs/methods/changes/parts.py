"""One tensor that moved, what is cheaply known of it, and the names that explain its change."""

from __future__ import annotations

from functools import cached_property
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.measure.edits import Edits, digits
from difflens.measure.matrices import LEAST, has_moved, has_numbers
from difflens.measure.precision import format_of, lean_of, rounded, sample, unit
from difflens.models.anatomy.roles import is_parameter

from .change import Change
from .energy import Moved

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS, _RUNS = 160, 8  # rows of a sample, and in how many runs they are read
_ELEMENTS = 1 << 19  # of a sample at most
_WHOLE = 1 << 16  # elements up to which a sample is everything
UNCORRELATED = 0.1  # |correlation| below which nothing is left of what was there
CUT = 0.4  # mean move towards zero from which values were cut off, in units in the last place
_SURE = 4.0  # standard errors (1 / √n) that a correlation must be from zero to be one


class Part(NamedTuple):
    """A name for what happened to one tensor; tensors of one kind and key are one record."""

    kind: str
    key: tuple[Any, ...]
    numbers: dict[str, Any]
    energy: float  # of ‖d‖² that it explains


class Sample(NamedTuple):
    """Rows of both sides, evenly spread, as float32."""

    left: NDArray[Any]
    right: NDArray[Any]
    is_whole: bool


class Tensor:
    """A float parameter that is not the same bits on both sides."""

    def __init__(self, change: Change, moved: Moved) -> None:
        """Read nothing yet."""
        self.change, self.delta, self.scan = change, moved.delta, moved.scan
        self.name = moved.name
        left = moved.delta.pair.left
        self.shape = left.shape if left else ()
        self.edits: Edits | None = None  # filled in where storage or sparsity asks for it
        self.parts: list[Part] = []
        self.clarity = 0.0  # the largest singular value of a sample over the edge of rounding

    @property
    def energy(self) -> float:
        """‖d‖², 0 where it is not finite."""
        return self.scan.square_sum if isfinite(self.scan.square_sum) else 0.0

    @property
    def moved(self) -> int:
        """Elements whose value differs: a zero that only changed its sign did not move."""
        scan = self.scan
        if scan.left_nonfinite or scan.right_nonfinite:
            return scan.changed
        return min(scan.changed, scan.count - scan.value_equal)

    @property
    def is_matrix(self) -> bool:
        """Has it enough rows and columns to speak of directions?"""
        return len(self.shape) > 1 and min(self.rows, self.scan.count // self.rows) >= LEAST

    @property
    def rows(self) -> int:
        """Its first dimension."""
        return max(1, self.shape[0]) if self.shape else 1

    @cached_property
    def formats(self) -> tuple[str, str]:
        """How coarse both sides are, by their values, and by the model where these do not tell."""
        left, right = self.change.values(self.delta)
        dtypes, likely = (left.info.dtype, right.info.dtype), self.change.likely.get("format")
        before, after = self.pieces
        return format_of(before, dtypes[0]), format_of(after, dtypes[1], likely)

    @cached_property
    def pieces(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Read some thousand elements of both sides."""
        left, right = self.change.values(self.delta)
        return sample(left), sample(right)

    @cached_property
    def lean(self) -> float:
        """The mean move towards zero, in units in the last place of the right's format."""
        return lean_of(*self.pieces, self.formats[1])

    @property
    def is_coarser(self) -> bool:
        """Is the right in a coarser format than the left?"""
        return digits(self.formats[1]) < digits(self.formats[0])

    @property
    def rounding(self) -> float:
        """What storing the right in a coarser format adds to ‖d‖² on average."""
        import numpy as np

        if not self.is_coarser:
            return 0.0
        squares = np.square(unit(self.pieces[1], self.formats[1]))
        return float(squares.mean()) * self.scan.count / (3 if self.lean > CUT else 12)

    @cached_property
    def sample(self) -> Sample:
        """Read some rows of both sides, all of a small tensor."""
        left, right = self.change.values(self.delta)
        return Sample(_rows(left), _rows(right), self._is_small)

    @property
    def _is_small(self) -> bool:
        few = self.rows <= _ROWS and self.scan.count <= _ELEMENTS
        return self.scan.count <= _WHOLE or few

    @cached_property
    def reach(self) -> tuple[int, int]:
        """How many of its rows and of its columns moved at all, by the sample."""
        moved = self.expected != self.sample.right
        rows = int(moved.any(axis=1).sum()) * self.rows // len(moved)
        return rows, int(moved.any(axis=0).sum())

    @property
    def expected(self) -> NDArray[Any]:
        """The left rows of the sample, as the right's format would hold them."""
        left = self.sample.left
        if not self.is_coarser:
            return left
        nearest = self.edits is None or self.edits.rounding != "truncated"
        return rounded(left, self.formats[1], nearest=nearest)

    @property
    def correlation(self) -> float | None:
        """The correlation of both sides; None where one is constant or too short to tell."""
        return self.scan.pearson

    @property
    def is_sure(self) -> bool:
        """Is it long enough for a correlation to mean something?"""
        return self.scan.pairs > (_SURE / UNCORRELATED) ** 2 / 8

    @property
    def is_uncorrelated(self) -> bool:
        """Is nothing left of what was there?"""
        r = self.correlation
        if r is None or not self.is_sure:
            return False
        return abs(r) < max(UNCORRELATED, _SURE / sqrt(self.scan.pairs))


def tensors(change: Change) -> list[Tensor]:
    """List the float parameters of one shape that moved."""
    return [
        Tensor(change, each)
        for each in change.measured
        if has_moved(each.delta) and _is_weight(each)
    ]


def _is_weight(each: Moved) -> bool:
    left, right = each.delta.pair.left, each.delta.pair.right
    if not (left and right and has_numbers(left) and has_numbers(right)):
        return False
    return is_parameter(each.name, left.dtype, right.dtype)


def _rows(values: Any) -> NDArray[Any]:
    """Read rows in runs that are evenly spread."""
    import numpy as np

    rows, columns = values.matrix_shape
    if rows * columns <= _WHOLE:
        return np.asarray(values.span(0, rows * columns).reshape(rows, columns))
    wanted = max(_RUNS, min(_ROWS, rows, _ELEMENTS // max(1, columns)))
    run = max(1, wanted // _RUNS)
    if rows <= run * _RUNS:
        runs = [(0, rows)]
    else:
        starts = [index * (rows - run) // (_RUNS - 1) for index in range(_RUNS)]
        runs = [(start, start + run) for start in starts]
    pieces = [
        values.span(first * columns, last * columns).reshape(last - first, columns)
        for first, last in runs
    ]
    return np.concatenate(pieces)
