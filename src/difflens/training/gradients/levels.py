"""Which levels of the network move together, and which of two moves first.

Correlating norms as they are finds "significant" pairs everywhere: each series remembers its past.
So the trend is taken out and each series is pre-whitened by its own AR(1); then the points of one
series are nearly independent and r has its textbook law.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import erfc
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from difflens.stats.decision import benjamini_hochberg

from ..records.gradients import CrossLevelInteraction, InteractionDirection
from .flow import log_norms, residuals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .signals import LayerSignal

LATEST = 1000  # records looked at
LEAST = 20  # records below which nothing is correlated


class Whitened(NamedTuple):
    """Standardised columns, one a layer: mean 0, mean square 1, AR(1) taken out."""

    names: tuple[str, ...]
    columns: NDArray[np.float64]  # (records, layers)

    def of(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return the columns of some layers, those that could be used."""
        places = {name: place for place, name in enumerate(self.names)}
        return self.columns[:, [places[each] for each in names if each in places]]


def whitened(layers: Sequence[LayerSignal]) -> Whitened:
    """Line the layers up on the steps that most of them share; leave out those that lack some."""
    steps = _shared_steps(layers)
    names, columns = [], []
    for layer in layers:
        series = log_norms(layer)
        place = np.searchsorted(series.steps, steps)
        if len(steps) < LEAST or len(series.steps) < len(steps):
            continue
        place = np.minimum(place, len(series.steps) - 1)
        if not (series.steps[place] == steps).all():
            continue
        rest = _independent(residuals(series)[place])
        if rest is not None:
            names.append(layer.name)
            columns.append(rest)
    table = np.stack(columns, axis=1) if columns else np.empty((0, 0))
    return Whitened(tuple(names), table)


def _shared_steps(layers: Sequence[LayerSignal]) -> NDArray[np.float64]:
    counts: dict[bytes, int] = {}
    kept: dict[bytes, NDArray[np.float64]] = {}
    for layer in layers:
        steps = log_norms(layer).steps[-LATEST:]
        key = steps.tobytes()
        counts[key] = counts.get(key, 0) + 1
        kept.setdefault(key, steps)
    best = max(counts, key=lambda key: (counts[key], len(kept[key])), default=None)
    return np.array([]) if best is None else kept[best]


def _independent(rest: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Take the AR(1) out and standardise; None if nothing varies."""
    rest = rest - rest.mean()
    energy = float(rest @ rest)
    if energy <= len(rest) * 1e-20:
        return None
    phi = float(rest[1:] @ rest[:-1]) / energy
    new = rest[1:] - phi * rest[:-1]
    new = new - new.mean()
    size = float(np.sqrt((new**2).mean()))
    return new / size if size > 1e-10 else None


FURTHEST = 5  # records that one level may follow another
LEVEL = 0.05


def cross_level(
    groups: Sequence[Sequence[str]], common: Whitened
) -> tuple[CrossLevelInteraction, ...]:
    """Correlate the levels' mean pre-whitened series over lags; keep what is beyond chance.

    p is of the largest of 2·5 + 1 correlations (Šidák 1967), q over the pairs of levels.
    """
    series = [_mean(common.of(names)) for names in groups]
    pairs = [
        (first, second, *_strongest(left, right))
        for (first, left), (second, right) in combinations(enumerate(series), 2)
        if left is not None and right is not None
    ]
    if not pairs:
        return ()
    adjusted = benjamini_hochberg([p for *_, p in pairs])
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
        for (first, second, r, lag, _), q in zip(pairs, adjusted, strict=True)
        if q <= LEVEL
    )


def _mean(columns: NDArray[np.float64]) -> NDArray[np.float64] | None:
    if columns.shape[1] == 0 or len(columns) < LEAST + 2 * FURTHEST:
        return None
    mean = columns.mean(axis=1)
    size = float(np.sqrt((mean**2).mean()))
    return mean / size if size > 1e-10 else None


def _strongest(left: NDArray[np.float64], right: NDArray[np.float64]) -> tuple[float, int, float]:
    """Return r, the lag by which the right follows the left, and p of so large an r at any lag."""
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
