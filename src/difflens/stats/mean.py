"""The mean of a series whose neighbours resemble each other, with an interval that knows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .samples import sample

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Mean(NamedTuple):
    """A mean, its interval, and how many independent points the series is worth."""

    value: float
    low: float | None
    high: float | None
    n_effective: float


def correlated_mean(values: Sequence[float] | NDArray[Any], level: float = 0.95) -> Mean:
    """Estimate the mean with Student's interval at n (1 - phi)/(1 + phi) points (Bartlett 1935).

    phi is the lag-1 correlation, corrected as (n r + 1)/(n - 3) for the mean that was taken out,
    and never taken below zero. No interval below eight points.
    """
    from scipy.special import stdtrit

    array = sample(values, "series")
    n, mean = len(array), float(array.mean())
    if n < 8:
        return Mean(mean, None, None, float(n))
    rest = array - mean
    energy = float(rest @ rest)
    r = float(rest[1:] @ rest[:-1]) / energy if energy > 0 else 0.0
    phi = min(max((n * r + 1) / (n - 3), 0.0), 0.98) if energy > 0 else 0.0
    count = max(2.0, n * (1 - phi) / (1 + phi))
    # Neighbours that resemble each other scatter less about their own mean.
    variance = energy / (n - 1) / max(1 - 1 / count, 0.5)
    reach = float(stdtrit(count - 1, (1 + level) / 2)) * (variance / count) ** 0.5
    return Mean(mean, mean - reach, mean + reach, count)
