"""How the finite values of a tensor are spread: quantiles, deviations, shares, bins.

A tensor of up to some million values stays in memory and the results are exact; for a larger one
there is a fine histogram, which counts values by a code: sign, exponent and 12 bits of the
fraction, in the order of the numbers, so a value is known to 1 part in 8,192. Floats of 16 bits
and fewer fit into a code and stay exact. The error of a t-digest would depend on the data and on
their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

BITS = 21
CODES = 1 << BITS
ERROR = 2.0**-13  # relative, of the middle value of a code
EXACT = frozenset({"BF16", "F16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4"})
_SHIFT = 32 - BITS
_MIDDLE = CODES >> 1
_LARGEST = float(np.finfo(np.float32).max)
_FEW_VALUES = 1 << 15  # below this number of values, sorting is faster than counting all codes
_SORTED = 1 << 18  # below this number of values, sorting all is as fast as searching
_BLOCK = 1 << 18
_DENSE = 1 << 16  # bins that are counted in an array


class Spread(Protocol):
    """The finite values of a tensor, or of all of them."""

    n: int
    error: float  # relative, of a quantile

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Compute quantiles of type 7: linear between the order statistics around (n - 1) q."""

    def median_deviation(self, middle: float) -> float:
        """Compute the median of |x - middle|."""

    def mean_deviation(self, middle: float) -> float:
        """Compute the mean of |x - middle|."""

    def within(self, bound: float) -> int:
        """Count the values whose magnitude is at most `bound`."""

    def binned(self, low: float, width: float, bins: int) -> Any:
        """Count the values in bins of equal width from `low` on; leave out empty bins."""

    def levels(self, most: int) -> tuple[Any, Any] | None:
        """Return the distinct values and their counts; None if there are more than `most`."""


class Held:
    """Values in memory, all results exact."""

    error = 0.0

    def __init__(self, values: Any, counted: Any = None) -> None:
        """Store finite values, in any order, and the counts of their codes if these are known."""
        self.values = values
        self.n = int(values.size)
        self._counted = counted

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Compute quantiles of type 7."""
        places = [(self.n - 1) * share for share in shares]
        ranks = [rank for place in places for rank in (int(place), min(int(place) + 1, self.n - 1))]
        values = iter(order_statistics(self.values, ranks, self._counted))
        return [
            _between(below, above, place - int(place))
            for place, below, above in zip(places, values, values, strict=True)
        ]

    def median_deviation(self, middle: float) -> float:
        """Compute the median of |x - middle|."""
        return Held(self._deviations(middle)).quantiles([0.5])[0]

    def mean_deviation(self, middle: float) -> float:
        """Compute the mean of |x - middle|."""
        far = self._deviations(middle)
        largest = float(far.max())
        return float((far / largest).mean(dtype=np.float64)) * largest if largest else 0.0

    def _deviations(self, middle: float) -> Any:
        with np.errstate(over="ignore"):  # from one end of the numbers to the other
            far = self.values - self.values.dtype.type(middle)
        np.abs(far, out=far)
        return np.minimum(far, np.finfo(far.dtype).max, out=far)

    def within(self, bound: float) -> int:
        """Count the values whose magnitude is at most `bound`."""
        return int(np.count_nonzero((self.values <= bound) & (self.values >= -bound)))

    def binned(self, low: float, width: float, bins: int) -> Any:
        """Count the values in bins of equal width from `low` on; leave out empty bins."""
        if bins > _DENSE:
            every = _bins(self.values.astype(np.float64), low, width, bins)
            return np.unique(every, return_counts=True)[1]
        counted = np.zeros(bins, np.int64)
        for start in range(0, self.n, _BLOCK):
            some = self.values[start : start + _BLOCK].astype(np.float64)
            counted += np.bincount(_bins(some, low, width, bins), minlength=bins)
        return counted[counted > 0]

    def levels(self, most: int) -> tuple[Any, Any] | None:
        """Return the distinct values and their counts; None if there are more than `most`."""
        if len(np.unique(self.values[: 16 * most])) > most:
            return None
        values, times = np.unique(self.values, return_counts=True)
        return (values.astype(np.float64), times) if len(values) <= most else None


class Counted:
    """Values in ascending order, with their counts and the error of a value."""

    def __init__(self, codes: Any, times: Any, *, exact: bool) -> None:
        """Decode the codes that a tally counted."""
        self.values, first = np.unique(decoded(codes, exact=exact), return_index=True)
        self.times = np.add.reduceat(times, first)  # both zeros are one number
        self.n = int(times.sum())
        self.error = 0.0 if exact else ERROR

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Compute quantiles of type 7."""
        return _weighted(self.values, self.times, shares)

    def median_deviation(self, middle: float) -> float:
        """Compute the median of |x - middle|."""
        far = np.abs(self.values - middle)
        order = np.argsort(far, kind="stable")
        return _weighted(far[order], self.times[order], [0.5])[0]

    def mean_deviation(self, middle: float) -> float:
        """Compute the mean of |x - middle|."""
        return float(np.average(np.abs(self.values - middle), weights=self.times))

    def within(self, bound: float) -> int:
        """Count the values whose magnitude is at most `bound`."""
        return int(self.times[np.abs(self.values) <= bound].sum())

    def binned(self, low: float, width: float, bins: int) -> Any:
        """Count the values in bins of equal width from `low` on; leave out empty bins."""
        places = _bins(self.values, low, width, bins)
        return np.add.reduceat(self.times, np.unique(places, return_index=True)[1])

    def levels(self, most: int) -> tuple[Any, Any] | None:
        """Return the distinct values and their counts; None if there are more than `most`."""
        return (self.values, self.times) if len(self.values) <= most else None


def order_statistics(values: Any, ranks: Sequence[int], counted: Any = None) -> list[float]:
    """Return the values of these ranks, counted from 0, in ascending order of all values.

    `counted` holds the codes that occur and their counts, if these are known already.
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
    # How many values that were left out come before each value that is wanted.
    skipped = np.cumsum(np.where(wanted, 0, times))[holding]
    return [float(some[rank - before]) for rank, before in zip(ranks, skipped, strict=True)]


def _occupied(values: Any) -> tuple[Any, Any]:
    tally = Tally()
    for start in range(0, values.size, _BLOCK):
        tally.add(values[start : start + _BLOCK])
    return tally.occupied()


def _weighted(values: Any, times: Any, shares: Sequence[float]) -> list[float]:
    ends = np.cumsum(times)
    quantiles = []
    for share in shares:
        place = (int(ends[-1]) - 1) * share
        ranks = [int(place), min(int(place) + 1, int(ends[-1]) - 1)]
        below, above = values[np.searchsorted(ends, ranks, "right")]
        quantiles.append(_between(float(below), float(above), place - int(place)))
    return quantiles


def _between(below: float, above: float, part: float) -> float:
    half = (above / 2 - below / 2) * part  # halves, since the gap may overflow
    return min(max(below + half + half, below), above)


def _bins(values: Any, low: float, width: float, bins: int) -> Any:
    """Return the bin of each value: on an edge the upper bin, for the largest value the last."""
    with np.errstate(over="ignore"):  # halves, since the range of 64-bit numbers may overflow
        places = np.floor((values / 2 - low / 2) / (width / 2))
    return np.clip(places, 0, bins - 1).astype(np.int64)


def coded(values: Any) -> Any:
    """Return the code of each value; a larger value never has a smaller code."""
    if values.dtype == np.float64:  # values beyond float32 count as its largest number
        values = np.clip(values, -_LARGEST, _LARGEST)
    numbers = np.ascontiguousarray(values, np.float32).view(np.int32)
    # Negative floats with larger magnitudes have larger bits: invert their order.
    places = (numbers ^ ((numbers >> 31) & np.int32(0x7FFFFFFF))) >> _SHIFT
    places += _MIDDLE
    return places


def decoded(codes: Any, *, exact: bool) -> Any:
    """Return the number of each code: its only value, or the middle of its values."""
    places = codes.astype(np.int64) - _MIDDLE
    negative = places < 0
    bits = np.where(negative, ~places, places) << _SHIFT
    if not exact:
        bits = np.where(bits > 0, bits + (1 << (_SHIFT - 1)), bits)
    numbers = bits.astype(np.int32).view(np.float32).astype(np.float64)
    return np.where(negative, -numbers, numbers) + 0.0  # no negative zero


class Tally:
    """The number of finite values with each code."""

    def __init__(self) -> None:
        """Start with no values."""
        self.counts = np.zeros(CODES, np.int64)

    def add(self, values: Any) -> None:
        """Count more values."""
        if not values.size:
            return
        codes = coded(values)
        if values.size < _FEW_VALUES:
            some, times = np.unique(codes, return_counts=True)
            self.counts[some] += times
            return
        low = int(codes.min())
        codes -= low
        times = np.bincount(codes)
        self.counts[low : low + len(times)] += times

    def occupied(self) -> tuple[Any, Any]:
        """Return the codes that occur, ascending, and their counts."""
        codes = np.flatnonzero(self.counts)
        return codes, self.counts[codes]
