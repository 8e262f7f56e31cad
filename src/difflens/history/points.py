"""Values of one kind over the points of a run: mean, lowest, highest and how many they stand for.

Each point weighs its mean by how many finite values went into it, so that merging points gives
the mean of their frames, also where some frames lack a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .frame import is_missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[Any]


class Points:
    """Arrays of shape (4, points, …): mean, lowest, highest, count of finite values."""

    def __init__(self, points: int, shape: tuple[int, ...], missing: Any) -> None:
        """Reserve the room; the system gives memory only to what is written."""
        self.missing = missing
        self.values: Values = np.empty((4, points, *shape), missing.dtype)
        wide = np.float64 if missing.dtype == np.float32 else np.longdouble
        self._sum: Values = np.zeros(shape, wide)
        self._joined, self._whole = 0, False  # frames in the open point; is every value finite?

    def begin(self, at: int, new: Values, *, whole: bool) -> None:
        """Open a point with one frame; `whole` says that every value is finite."""
        self.values[:3, at] = new
        self.values[3, at] = 1 if whole else np.isfinite(new)
        self._sum[...] = new if whole else np.where(np.isfinite(new), new, 0)
        self._joined, self._whole = 1, whole

    def join(self, at: int, new: Values, *, whole: bool) -> None:
        """Take one more frame into the open point."""
        self._joined += 1
        _, low, high, count = self.values[:, at]
        if whole and self._whole:
            self._sum += new
            np.minimum(low, new, out=low)
            np.maximum(high, new, out=high)
            return
        if self._whole:
            count[...] = self._joined - 1
            self._whole = False
        finite = np.isfinite(new)
        count += finite
        self._sum += np.where(finite, new, 0)
        low[...] = self._picked(np.fmin, low, new)
        high[...] = self._picked(np.fmax, high, new)

    def settle(self, at: int) -> None:
        """Write the mean of the open point; more frames may still join it."""
        if self._joined < 2:
            return
        mean, _, high, count = self.values[:, at]
        if self._whole:
            count[...] = self._joined
            mean[...] = self._sum / self._joined
            return
        mean[...] = np.where(count > 0, self._sum / np.maximum(count, 1), np.nan)
        mean[is_missing(high)] = self.missing

    def halve(self, filled: int) -> None:
        """Merge points 2i and 2i+1 into point i, one by one so that no second copy is made."""
        for i in range(filled // 2):
            self.values[:, i] = self._merged(self.values[:, 2 * i], self.values[:, 2 * i + 1])
        if filled % 2:
            self.values[:, filled // 2] = self.values[:, filled - 1]

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
