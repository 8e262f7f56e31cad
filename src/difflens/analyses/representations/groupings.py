"""Groups of rows on both sides, how far they agree, and how far a side agrees with itself.

k-means finds groups in anything; only what it finds again from other starts can be said to have
changed. Rows are of length one. Beyond 64 dimensions the leading 64 principal coordinates are
grouped: those in which the best k groups lie (Ding and He 2004).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...stats.clustering import (
    adjusted_mutual_information,
    adjusted_rand,
    k_means,
    silhouette,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIMENSIONS = 64
_FEWEST_A_GROUP = 4  # rows a group, on average, below which groups mean nothing


class Groupings(NamedTuple):
    """One grouping a side with the same k, their agreement, and the noise of each side alone."""

    k: int
    left: NDArray[Any]
    right: NDArray[Any]
    ari: float
    ami: float
    left_self: list[float]
    right_self: list[float]
    silhouettes: dict[int, float]


def reduced(rows: NDArray[Any]) -> NDArray[Any]:
    """Give the leading principal coordinates of rows that have more than `DIMENSIONS`."""
    import numpy as np

    if rows.shape[1] <= DIMENSIONS or len(rows) <= DIMENSIONS:
        return rows
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(np.asarray(centred @ centred.T, np.float64))
    kept = np.sqrt(np.maximum(values[-DIMENSIONS:], 0))
    return np.asarray(vectors[:, -DIMENSIONS:] * kept, rows.dtype)


def groupings(
    left: NDArray[Any],
    right: NDArray[Any],
    ks: list[int],
    *,
    restarts: int,
    repeats: int,
    seed: int,
) -> Groupings | None:
    """Group both sides with the k whose mean silhouette is largest; None where k fits nowhere."""
    left, right = reduced(left), left if right is left else reduced(right)
    ks = [k for k in ks if k * _FEWEST_A_GROUP <= len(left)]
    if not ks:
        return None
    found = {k: [k_means(side, k, restarts, seed) for side in (left, right)] for k in ks}
    scores = {k: _score((left, right), found[k]) for k in ks}
    k = max(ks, key=lambda each: scores[each])
    first, second = found[k]
    others = range(seed + 1, seed + 1 + repeats)
    return Groupings(
        k,
        first,
        second,
        adjusted_rand(first, second),
        adjusted_mutual_information(first, second),
        [adjusted_rand(first, k_means(left, k, restarts, each)) for each in others],
        [adjusted_rand(second, k_means(right, k, restarts, each)) for each in others],
        scores,
    )


def moved(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Say which rows left their group, once each left group has its best partner on the right."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    table = np.zeros((left.max() + 1, right.max() + 1))
    np.add.at(table, (left, right), 1)
    partner = dict(zip(*linear_sum_assignment(table, maximize=True), strict=True))
    return np.array([partner.get(before, -1) != after
                     for before, after in zip(left, right, strict=True)], bool)  # fmt: skip


def _score(sides: tuple[NDArray[Any], NDArray[Any]], labels: list[NDArray[Any]]) -> float:
    found = [silhouette(rows, each) or 0.0 for rows, each in zip(sides, labels, strict=True)]
    return sum(found) / len(found)
