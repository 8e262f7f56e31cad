"""Which of two known levels noisy readings belong to: a sequential test with a stated error rate.

Both levels were read several times, and a third thing is read again and again until the likelihood
ratio of "like the one" against "like the other" is beyond 1/error (Wald 1945). Levels and spread
are themselves estimates, so the likelihoods are Student's for numbers, and shares of yes and no
are drawn to the middle by half a reading each way.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from statistics import NormalDist, fmean, variance
from typing import NamedTuple


class Levels(NamedTuple):
    """Two calibrated levels: their means, the spread of a reading, and readings of each."""

    high: float
    low: float
    spread: float
    readings: int
    is_share: bool = False  # readings are 1 or 0, and the levels are shares

    @property
    def separation(self) -> float:
        """How many spreads lie between the levels (d')."""
        if self.is_share:
            deviate = NormalDist().inv_cdf
            return abs(deviate(self.high) - deviate(self.low))
        return abs(self.high - self.low) / self.spread if self.spread > 0 else float("inf")

    def around(self, threshold: float) -> Levels:
        """Move both levels to the same distance from a threshold: that of the nearer one."""
        margin = min(abs(self.high - threshold), abs(self.low - threshold))
        sign = 1 if self.high >= self.low else -1
        return self._replace(high=threshold + sign * margin, low=threshold - sign * margin)


def calibrate(high: Sequence[float], low: Sequence[float]) -> Levels:
    """Estimate the levels from readings of both sides, the same number of each.

    >>> calibrate([1, 1, 1, 1], [0, 0, 0, 0])
    Levels(high=0.9, low=0.1, spread=0.0, readings=4, is_share=True)
    """
    number = min(len(high), len(low))
    if {*high, *low} <= {0, 1}:
        shares = [(sum(side) + 0.5) / (len(side) + 1) for side in (high, low)]
        return Levels(shares[0], shares[1], 0.0, number, is_share=True)
    spread = sqrt(fmean(variance(side) if len(side) > 1 else 0.0 for side in (high, low)))
    return Levels(fmean(high), fmean(low), spread, number)


def evidence(levels: Levels, values: Sequence[float]) -> float:
    """Return the logarithm of the likelihood ratio: positive for the high level.

    >>> levels = Levels(10.0, 8.0, 1.0, 6)
    >>> evidence(levels, [10.0]) > 0 > evidence(levels, [8.5, 7.9])
    True
    """
    if not values:
        return 0.0
    if levels.is_share:
        passed = sum(values)
        failed = len(values) - passed
        return passed * log(levels.high / levels.low) + failed * log(
            (1 - levels.high) / (1 - levels.low)
        )
    freedom = 2 * levels.readings - 2
    mean = fmean(values)
    square = levels.spread**2 * (1 / len(values) + 1 / levels.readings)
    if square <= 0 or freedom <= 0:
        nearer = abs(mean - levels.low) - abs(mean - levels.high)
        return float("inf") if nearer > 0 else float("-inf")
    apart = [log(1 + (mean - level) ** 2 / square / freedom) for level in (levels.low, levels.high)]
    return (freedom + 1) / 2 * (apart[0] - apart[1])


def decide(levels: Levels, values: Sequence[float], error: float) -> bool | None:
    """Say whether readings belong to the high level; None until there are enough of them."""
    ratio = evidence(levels, values)
    if abs(ratio) < log((1 - error) / error):
        return None
    return ratio > 0
