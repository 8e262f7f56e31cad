"""The entropy of a tensor's values in bits, over bins as wide as Freedman and Diaconis say.

Empty bins take no memory, so one far value does not force the others into one bin, as it would
where the number of bins is kept small. Values that take few levels (a quantised tensor) are
counted level by level: bins across levels would say something of the bins alone.
"""

from __future__ import annotations

from math import ceil, inf, log, log2
from typing import Any, NamedTuple

import numpy as np

from .spread import Spread

LEVELS = 256  # most distinct values that are levels
MOST_BINS = 1 << 40  # so that the place of a bin stays an exact whole number
_ON_GRID = 1e-6  # of a step: how far off an evenly spaced level may be


class Entropy(NamedTuple):
    """Bits, the bins they are over, and the correction that few values call for."""

    bits: float
    bins: int
    width: float | None  # None where bins are levels
    correction: float
    method: str

    @property
    def normalised(self) -> float | None:
        """Bits over those of as many equally filled bins; None where there is one bin."""
        return self.bits / log2(self.bins) if self.bins > 1 else None


def shannon(counts: Any) -> float:
    """-Σ p log₂ p over the bins (Shannon 1948).

    >>> shannon([5] * 8)
    3.0
    """
    filled = np.asarray(counts)[np.asarray(counts) > 0]
    shares = filled / filled.sum()
    return max(0.0, -float((shares * np.log2(shares)).sum()))


def miller_madow(counts: Any) -> float:
    """(K - 1) / (2 n ln 2), K bins that are not empty: what to add (Miller 1955)."""
    filled = np.asarray(counts)[np.asarray(counts) > 0]
    return float((len(filled) - 1) / (2 * filled.sum() * log(2)))


def entropy(spread: Spread, low: float, high: float, quartiles: tuple[float, float]) -> Entropy:
    """Measure the entropy of a tensor whose least, largest and middle values are known."""
    found = spread.levels(LEVELS)
    if found is not None and _are_levels(found[0], spread.n):
        counts = found[1]
        bins, width, method = len(counts), None, "levels"
    else:
        width, bins, method = _width(low, high, quartiles, spread.n)
        counts = spread.binned(low, width, bins)
    return Entropy(shannon(counts), bins, width, miller_madow(counts), method)


def _are_levels(values: Any, n: int) -> bool:
    """Do values repeat, or stand on an even grid?"""
    if len(values) <= n / 2 or len(values) == 1:
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        places = (values - values[0]) / np.diff(values).min()
        even = np.abs(places - np.rint(places)).max() <= _ON_GRID
    return bool(len(values) > 2 and even and places[-1] < LEVELS)


def _width(
    low: float, high: float, quartiles: tuple[float, float], n: int
) -> tuple[float, int, str]:
    """2 IQR n^(-1/3) (Freedman & Diaconis 1981); log₂ n + 1 bins (Sturges 1926) where IQR is 0."""
    half_range = high / 2 - low / 2
    width = 4 * ((quartiles[1] / 2 - quartiles[0] / 2) / n ** (1 / 3))
    if 0 < width < inf and half_range / width < MOST_BINS / 2:
        bins = max(1, ceil(2 * (half_range / width)))
        return width, bins, "freedman-diaconis"
    bins = ceil(log2(n)) + 1
    return max(2 * (half_range / bins), 5e-324), bins, "sturges"
