"""The mean of scores that come in clusters: same passage, same template, same user."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .comparison import quantile
from .samples import probability, sample, variance

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ClusteredMean(NamedTuple):
    """A mean, its standard error with and without regard to clusters, and an interval.

    `design_effect` is (se / naive_se)², by which the clusters make the sample smaller.
    """

    mean: float
    se: float | None
    naive_se: float | None
    low: float | None
    high: float | None
    df: int
    clusters: int
    design_effect: float | None


def clustered_mean(
    values: Sequence[float], clusters: Sequence[Hashable], level: float = 0.95
) -> ClusteredMean:
    """Give the mean with a cluster-robust standard error (Miller 2024, arXiv 2411.00640).

    SE² = C/(C - 1) · Σ_c (Σ_i (s_ic - s̄))² / n², and t with C - 1 degrees of freedom.

    >>> clustered_mean([1.0, 1.0, 0.0, 0.0], ["a", "a", "b", "b"]).clusters
    2
    """
    probability(level, "level")
    array = sample(values, "values")
    sums, sizes = cluster_sums(array, clusters)
    mean, count = float(array.mean()), sums.size
    spread = variance(array) if array.size > 1 else 0.0
    naive = (spread / array.size) ** 0.5 or None
    if count < 2 or naive is None:
        return ClusteredMean(mean, None, naive, None, None, count - 1, count, None)
    residuals = float(((sums - mean * sizes) ** 2).sum())
    error = (count / (count - 1) * residuals) ** 0.5 / array.size
    reach = quantile((1 + level) / 2, count - 1) * error
    return ClusteredMean(
        mean, error, naive, mean - reach, mean + reach, count - 1, count, (error / naive) ** 2
    )


def cluster_sums(
    array: NDArray[np.float64], clusters: Sequence[Hashable]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the sum of each cluster's values and how many it has, in order of appearance."""
    import numpy as np

    if len(clusters) != array.size:
        raise ValueError(f"{array.size} values need as many clusters, there are {len(clusters)}")
    index: dict[Hashable, int] = {}
    places = np.array([index.setdefault(each, len(index)) for each in clusters])
    sums = np.bincount(places, weights=array).astype(np.float64)
    return sums, np.bincount(places).astype(np.float64)


def design_effect(size: float, correlation: float) -> float:
    """Give 1 + (m - 1)·ICC: how much larger clusters of m make the variance (Kish 1965).

    >>> design_effect(10, 0.5)
    5.5
    """
    return 1 + (size - 1) * correlation
