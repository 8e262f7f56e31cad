"""Values of one kind over the points of a run: mean, lowest, highest and how many they stand for.

Each point weighs its mean by how many finite values went into it, so that merging points gives
the mean of their frames, also where some frames lack a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .frame import is_missing
from .stretch import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[Any]

_PIECE = 1 << 20  # bytes that are merged in one go: few calls, and no second copy of a long run


class Points:
    """Arrays of shape (4, points, …): mean, lowest, highest, count of finite values."""

    def __init__(self, points: int, shape: tuple[int, ...], missing: Any) -> None:
        """Reserve the room; the system gives memory only to what is written."""
        self.missing = missing
        self.values: Values = np.empty((4, points, *shape), missing.dtype)
        wide = np.float64 if missing.dtype == np.float32 else np.longdouble
        self._sum: Values = np.zeros(shape, wide)

    def fill(self, at: int, rows: Rows) -> None:
        """Make each row a point of its own."""
        stop = at + len(rows.values)
        self.values[:3, at:stop] = rows.values
        self.values[3, at:stop] = 1 if rows.finite is None else rows.finite

    def join(self, at: int, rows: Rows, *, is_open: bool) -> None:
        """Take rows into one point, which is opened with the first of them unless it is open."""
        if not is_open:
            self.fill(at, rows.part(0, 1))
            self._sum[...] = 0
            self._add(rows)
            rows = rows.part(1, len(rows.values))
            if not len(rows.values):
                return
        else:
            self._add(rows)
        _, low, high, count = self.values[:, at]
        count += len(rows.values) if rows.finite is None else rows.finite.sum(0)
        low[...] = self._picked(np.fmin, low, self._reduced(np.fmin, rows))
        high[...] = self._picked(np.fmax, high, self._reduced(np.fmax, rows))

    def _add(self, rows: Rows) -> None:
        """Add to the sum, one by one: how frames came in batches must not change a digit."""
        finite = rows.finite
        for row in rows.values if finite is None else np.where(finite, rows.values, 0):
            self._sum += row

    def _reduced(self, pick: np.ufunc, rows: Rows) -> Values:
        """Reduce rows to the lowest or highest; NaN where none is a number, unless all miss."""
        found: Values = pick.reduce(rows.values, axis=0)
        if rows.finite is not None:
            odd = np.isnan(found)
            if odd.any():
                found[odd] = np.nan
                found[is_missing(rows.values).all(0)] = self.missing
        return found

    def settle(self, at: int) -> None:
        """Write the mean of an open point of several frames; more may still join it."""
        mean, _, high, count = self.values[:, at]
        mean[...] = np.where(count > 0, self._sum / np.maximum(count, 1), np.nan)
        mean[is_missing(high)] = self.missing

    def halve(self, filled: int) -> None:
        """Merge points 2i and 2i+1 into point i, a piece at a time."""
        pairs = filled // 2
        piece = max(1, _PIECE // max(1, self.values[:, 0].nbytes))
        for i in range(0, pairs, piece):
            stop = min(i + piece, pairs)
            both = self.values[:, 2 * i : 2 * stop]
            self.values[:, i:stop] = self._merged(both[:, ::2], both[:, 1::2])
        if filled % 2:
            self.values[:, pairs] = self.values[:, filled - 1]

    def _merged(self, left: Values, right: Values) -> Values:
        count = left[3] + right[3]
        least = np.maximum(count, 1)
        weighed = [np.where(each[3] > 0, each[0], 0) * (each[3] / least) for each in (left, right)]
        low = self._picked(np.fmin, left[1], right[1])
        high = self._picked(np.fmax, left[2], right[2])
        mean = np.where(count > 0, weighed[0] + weighed[1], np.nan)
        mean[is_missing(high)] = self.missing
        return np.stack([mean, low, high, count])

    def _picked(self, pick: Callable[[Values, Values], Values], left: Values, right: Values) -> Any:
        """Pick per value; of two that are no numbers, NaN unless both are missing."""
        picked = pick(left, right)
        odd = np.isnan(picked)
        if odd.any():
            blank = is_missing(left) & is_missing(right)
            picked[odd] = np.nan
            picked[blank] = self.missing
        return picked

    def take(self, before: Points, filled: int, spread: Callable[[Values], Values]) -> None:
        """Take over points of a narrower layout, one by one."""
        for i in range(filled):
            self.values[:3, i] = spread(before.values[:3, i])
            self.values[3, i] = np.nan_to_num(spread(before.values[3, i]), nan=0)

    def shown(self, points: int, *, single: bool) -> Values:
        """Copy mean, lowest and highest; the mean alone where every point is one frame."""
        return self.values[: 1 if single else 3, :points].copy()
