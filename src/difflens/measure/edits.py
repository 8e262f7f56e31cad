"""Elements that moved by more than rounding to a coarser format explains, and where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from difflens.core.dtypes import ROUNDING
from difflens.core.record import Record
from difflens.core.records import Delta

from .chunks import STEP
from .matrices import has_moved
from .precision import format_of, rounded, sample, unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .values import Values

_DIGITS = 53


class Edits(Record, frozen=True):
    """What is left of a change once storage is undone: right against the rounded left.

    `rounding` is how the left became the right's format: `nearest`, `truncated`, or None where the
    right is no coarser. An element `moved` where its value is another one than rounding gives (at
    a tie both neighbours are right); `zeroed` of these are zero now, `rows` and `columns` hold one
    at least, `units` is the furthest, in units in the last place. `squares` is their ‖d‖².
    Memory: a few MB.
    """

    count: int
    before: str
    after: str
    rounding: str | None
    moved: int
    zeroed: int
    rows: int
    columns: int
    units: float
    squares: float

    @classmethod
    def wants(cls, delta: Delta) -> bool:
        """Take float tensors of one shape that differ."""
        return has_moved(delta)

    @classmethod
    def of(
        cls, left: Values | None, right: Values | None, likely: str | None = None
    ) -> Self | None:
        """Read both sides once; `likely` is the format of most of the right model."""
        if left is None or right is None:
            return None
        pieces = sample(left), sample(right)
        before = format_of(pieces[0], left.info.dtype)
        after = format_of(pieces[1], right.info.dtype, likely)
        if digits(after) >= digits(before):
            return _Count(left, right, after, None).result(cls, before)
        misses = {
            name: int((rounded(pieces[0], after, nearest=name == "nearest") != pieces[1]).sum())
            for name in ("nearest", "truncated")
        }
        best = min(misses, key=lambda name: misses[name])
        return _Count(left, right, after, best).result(cls, before)

    def figures(self) -> dict[str, Any]:
        """Return what moved beyond rounding."""
        return {"edited": self.moved, "edited_rows": self.rows, "edited_columns": self.columns}


def edits_in(likely: str | None) -> type[Edits]:
    """Return the measure for a model of which most is in a known format."""

    class Edited(Edits, frozen=True):
        @classmethod
        def of(
            cls, left: Values | None, right: Values | None, likely: str | None = likely
        ) -> Self | None:
            return super().of(left, right, likely)

    Edited.__name__ = Edits.__name__
    return Edited


def digits(dtype: str) -> int:
    """Count the bits of the mantissa."""
    return ROUNDING[dtype][1] if dtype in ROUNDING else _DIGITS


def _is_near(before: NDArray[Any], after: NDArray[Any], dtype: str) -> bool:
    """Is every value within half a unit of the other? Their bits, as numbers, show most casts."""
    import numpy as np

    if not before.dtype == after.dtype == np.float32:
        return False
    half = 1 << (ROUNDING["F32"][1] - ROUNDING[dtype][1] - 1)
    apart = before.view(np.uint32) - after.view(np.uint32)
    apart += np.uint32(half)
    return bool(apart.max(initial=0) <= 2 * half)


class _Count:
    """Counts over one pass."""

    def __init__(self, left: Values, right: Values, after: str, rounding: str | None) -> None:
        import numpy as np

        self._after, self._rounding = after, rounding
        self._count = left.info.count
        rows, columns = left.matrix_shape
        self._rows, self._columns = np.zeros(rows, bool), np.zeros(columns, bool)
        self._moved = self._zeroed = 0
        self._units = self._squares = 0.0
        start = 0
        for one, other in zip(left.rows(STEP, 0), right.rows(STEP, 1), strict=True):
            self._add(start, one, other)
            start += len(one)

    def _add(self, start: int, before: NDArray[Any], after: NDArray[Any]) -> None:
        import numpy as np

        if self._rounding == "nearest" and _is_near(before, after, self._after):
            return
        expected = before
        if self._rounding:
            expected = rounded(before, self._after, nearest=self._rounding == "nearest")
        other = expected != after
        if not other.any():
            return
        rows, columns = np.nonzero(other)
        one, two = before[rows, columns], after[rows, columns]
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(two.astype(np.float64) - one)
            units = apart / unit(two, self._after)
        wrong = ~(np.isnan(one) & np.isnan(two))
        if self._rounding == "nearest":
            wrong &= ~(units <= 0.5)
        rows, columns, units, apart = rows[wrong], columns[wrong], units[wrong], apart[wrong]
        self._rows[start + rows] = True
        self._columns[columns] = True
        self._moved += len(rows)
        self._zeroed += int((two[wrong] == 0).sum())
        known = np.isfinite(units)
        self._units = max(self._units, float(units[known].max(initial=0.0)))
        with np.errstate(over="ignore"):  # the caller sees that it is not finite
            self._squares += float((apart[np.isfinite(apart)] ** 2).sum())

    def result(self, kind: type[Edits], before: str) -> Any:
        return kind(
            self._count,
            before,
            self._after,
            self._rounding,
            self._moved,
            self._zeroed,
            int(self._rows.sum()),
            int(self._columns.sum()),
            self._units,
            self._squares,
        )
