"""How the finite values of a tensor are spread: quantiles, deviations, shares, bins.

Up to some million values are held and everything is exact; of more there is the fine histogram of
`codes`. Both answer the same questions. Sorting what is held would be exact as well, and takes
four times as long as finding the few values that quantiles lie between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .codes import CODES, ERROR, Tally, coded, decoded

_SORTED = 1 << 18  # values below which sorting is as fast
_BLOCK = 1 << 18
_DENSE = 1 << 16  # bins that are counted in an array


class Spread(Protocol):
    """The finite values of a tensor, or of all of them."""

    n: int
    error: float  # relative, of a quantile

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Give quantiles of type 7: linear between the order statistics around (n - 1) q."""

    def median_deviation(self, middle: float) -> float:
        """Give the median of |x - middle|."""

    def mean_deviation(self, middle: float) -> float:
        """Give the mean of |x - middle|."""

    def within(self, bound: float) -> int:
        """Count the values of magnitude at most that."""

    def binned(self, low: float, width: float, bins: int) -> Any:
        """Count the values in so many bins of a width from `low` on; empty ones are left out."""

    def levels(self, most: int) -> tuple[Any, Any] | None:
        """Give the distinct values and how often each occurs; None where there are more."""


class Held:
    """Values in memory."""

    error = 0.0

    def __init__(self, values: Any, counted: Any = None) -> None:
        """Keep finite values, in any order, and how often codes occur where that is known."""
        self.values = values
        self.n = int(values.size)
        self._counted = counted

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Give quantiles of type 7."""
        places = [(self.n - 1) * share for share in shares]
        ranks = [rank for place in places for rank in (int(place), min(int(place) + 1, self.n - 1))]
        found = iter(order_statistics(self.values, ranks, self._counted))
        return [_between(below, above, place - int(place))
                for place, below, above in zip(places, found, found, strict=True)]  # fmt: skip

    def median_deviation(self, middle: float) -> float:
        """Give the median of |x - middle|."""
        return Held(self._deviations(middle)).quantiles([0.5])[0]

    def mean_deviation(self, middle: float) -> float:
        """Give the mean of |x - middle|."""
        far = self._deviations(middle)
        largest = float(far.max())
        return float((far / largest).mean(dtype=np.float64)) * largest if largest else 0.0

    def _deviations(self, middle: float) -> Any:
        with np.errstate(over="ignore"):  # from one end of the numbers to the other
            far = self.values - self.values.dtype.type(middle)
        np.abs(far, out=far)
        return np.minimum(far, np.finfo(far.dtype).max, out=far)

    def within(self, bound: float) -> int:
        """Count the values of magnitude at most that."""
        return int(np.count_nonzero((self.values <= bound) & (self.values >= -bound)))

    def binned(self, low: float, width: float, bins: int) -> Any:
        """Count the values in so many bins of a width from `low` on; empty ones are left out."""
        if bins > _DENSE:
            every = _bins(self.values.astype(np.float64), low, width, bins)
            return np.unique(every, return_counts=True)[1]
        counted = np.zeros(bins, np.int64)
        for start in range(0, self.n, _BLOCK):
            some = self.values[start : start + _BLOCK].astype(np.float64)
            counted += np.bincount(_bins(some, low, width, bins), minlength=bins)
        return counted[counted > 0]

    def levels(self, most: int) -> tuple[Any, Any] | None:
        """Give the distinct values and how often each occurs; None where there are more."""
        if len(np.unique(self.values[: 16 * most])) > most:
            return None
        found, times = np.unique(self.values, return_counts=True)
        return (found.astype(np.float64), times) if len(found) <= most else None


class Counted:
    """Values in ascending order, how often each occurs, and how exact that is."""

    def __init__(self, codes: Any, times: Any, *, exact: bool) -> None:
        """Keep what a tally found."""
        self.values, first = np.unique(decoded(codes, exact=exact), return_index=True)
        self.times = np.add.reduceat(times, first)  # both zeros are one number
        self.n = int(times.sum())
        self.error = 0.0 if exact else ERROR

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Give quantiles of type 7."""
        return _weighted(self.values, self.times, shares)

    def median_deviation(self, middle: float) -> float:
        """Give the median of |x - middle|."""
        far = np.abs(self.values - middle)
        order = np.argsort(far, kind="stable")
        return _weighted(far[order], self.times[order], [0.5])[0]

    def mean_deviation(self, middle: float) -> float:
        """Give the mean of |x - middle|."""
        return float(np.average(np.abs(self.values - middle), weights=self.times))

    def within(self, bound: float) -> int:
        """Count the values of magnitude at most that."""
        return int(self.times[np.abs(self.values) <= bound].sum())

    def binned(self, low: float, width: float, bins: int) -> Any:
        """Count the values in so many bins of a width from `low` on; empty ones are left out."""
        places = _bins(self.values, low, width, bins)
        return np.add.reduceat(self.times, np.unique(places, return_index=True)[1])

    def levels(self, most: int) -> tuple[Any, Any] | None:
        """Give the distinct values and how often each occurs; None where there are more."""
        return (self.values, self.times) if len(self.values) <= most else None


def order_statistics(values: Any, ranks: Sequence[int], counted: Any = None) -> list[float]:
    """Give the values that would stand at the places, counted from 0, were all in order.

    `counted` are the codes that occur and how often, where they are known already.
    """
    if values.size <= _SORTED:
        ordered = np.sort(values)
        return [float(ordered[rank]) for rank in ranks]
    codes, times = counted or _occupied(values)
    ends = np.cumsum(times)
    holding = np.searchsorted(ends, ranks, "right")
    wanted = np.zeros(len(codes), bool)
    wanted[holding] = True
    is_wanted = np.zeros(CODES, bool)
    is_wanted[codes[wanted]] = True
    blocks = (values[start : start + _BLOCK] for start in range(0, values.size, _BLOCK))
    some = np.sort(np.concatenate([block[is_wanted[coded(block)]] for block in blocks]))
    # How many values of codes that are not wanted stand before each that is.
    skipped = np.cumsum(np.where(wanted, 0, times))[holding]
    return [float(some[rank - before]) for rank, before in zip(ranks, skipped, strict=True)]


def _occupied(values: Any) -> tuple[Any, Any]:
    tally = Tally()
    for start in range(0, values.size, _BLOCK):
        tally.add(values[start : start + _BLOCK])
    return tally.occupied()


def _weighted(values: Any, times: Any, shares: Sequence[float]) -> list[float]:
    ends = np.cumsum(times)
    found = []
    for share in shares:
        place = (int(ends[-1]) - 1) * share
        ranks = [int(place), min(int(place) + 1, int(ends[-1]) - 1)]
        below, above = values[np.searchsorted(ends, ranks, "right")]
        found.append(_between(float(below), float(above), place - int(place)))
    return found


def _between(below: float, above: float, part: float) -> float:
    half = (above / 2 - below / 2) * part  # a whole gap may overflow
    return min(max(below + half + half, below), above)


def _bins(values: Any, low: float, width: float, bins: int) -> Any:
    """Give each value's bin; one on an edge is the upper bin's, the largest value the last's."""
    with np.errstate(over="ignore"):  # halves, since the range of 64-bit numbers may overflow
        places = np.floor((values / 2 - low / 2) / (width / 2))
    return np.clip(places, 0, bins - 1).astype(np.int64)
