"""What stands out of the noise in one side's singular values, where there is a bulk of noise."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

from ...stats.random_matrix import bulk_distance, bulk_sigma, tracy_widom_threshold


def outliers(
    values: Sequence[float], rows: int, columns: int, alpha: float, distance: float
) -> dict[str, Any]:
    """Count singular values above what noise reaches with probability alpha.

    edge = sigma sqrt(Tracy-Widom threshold), sigma from the median (Johnstone 2001). Where the bulk
    is further than `distance` from the Marchenko-Pastur law the count has no meaning, and is null.
    """
    sigma = bulk_sigma(values, rows, columns)
    apart = bulk_distance(values, rows, columns, alpha)
    edge = sigma * sqrt(tracy_widom_threshold(rows, columns, alpha))
    fits = apart is not None and apart <= distance
    return {
        "outliers": sum(value > edge for value in values) if fits else None,
        "edge": edge,
        "sigma_bulk": sigma,
        "bulk_fit_ks": apart,
        "verdict": "bulk_MP" if fits else "bulk_not_MP",
    }
