"""Which levels of the network move together, and which of two moves first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import erfc
from typing import TYPE_CHECKING

import numpy as np

from ..gradient_results import CrossLevelInteraction, InteractionDirection
from ..stats.adjust import benjamini_hochberg
from .whitening import LEAST, Whitened

if TYPE_CHECKING:
    from numpy.typing import NDArray

FURTHEST = 5  # records that one level may follow another
LEVEL = 0.05


def cross_level(
    groups: Sequence[Sequence[str]], common: Whitened
) -> tuple[CrossLevelInteraction, ...]:
    """Correlate the levels' mean pre-whitened series over lags; keep what is beyond chance.

    p is of the largest of 2·5 + 1 correlations (Šidák 1967), q over the pairs of levels.
    """
    series = [_mean(common.of(names)) for names in groups]
    found = [
        (first, second, *_strongest(left, right))
        for (first, left), (second, right) in combinations(enumerate(series), 2)
        if left is not None and right is not None
    ]
    if not found:
        return ()
    adjusted = benjamini_hochberg([p for *_, p in found])
    return tuple(
        CrossLevelInteraction(
            from_level=first,
            to_level=second,
            interaction_strength=abs(r),
            correlation=r,
            interaction_direction=_direction(lag),
            lag=lag,
            q=q,
            n=len(common.columns),
        )
        for (first, second, r, lag, _), q in zip(found, adjusted, strict=True)
        if q <= LEVEL
    )


def _mean(columns: NDArray[np.float64]) -> NDArray[np.float64] | None:
    if columns.shape[1] == 0 or len(columns) < LEAST + 2 * FURTHEST:
        return None
    mean = columns.mean(axis=1)
    size = float(np.sqrt((mean**2).mean()))
    return mean / size if size > 1e-10 else None


def _strongest(left: NDArray[np.float64], right: NDArray[np.float64]) -> tuple[float, int, float]:
    """Give r, the lag by which the right follows the left, and p of so large an r at any lag."""
    n = len(left)
    lags = sorted(range(-FURTHEST, FURTHEST + 1), key=abs)  # of equal ones the shortest counts
    rs = [
        float(left[max(0, -lag) : n - max(0, lag)] @ right[max(0, lag) : n - max(0, -lag)])
        / (n - abs(lag))
        for lag in lags
    ]
    best = max(range(len(lags)), key=lambda place: abs(rs[place]))
    r = float(np.clip(rs[best], -1, 1))
    one = erfc(abs(r) * (n - abs(lags[best])) ** 0.5 / 2**0.5)
    return r, lags[best], float(-np.expm1(len(lags) * np.log1p(-min(one, 1 - 1e-16))))


def _direction(lag: int) -> InteractionDirection:
    """Levels are counted from the input: who follows upwards was moved from the bottom."""
    if lag == 0:
        return "Bidirectional"
    return "BottomUp" if lag > 0 else "TopDown"
