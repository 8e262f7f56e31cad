"""Series of several layers side by side, so that what they have in common can be counted.

Correlating norms as they are finds "significant" pairs everywhere: each series remembers its past.
So the trend is taken out and each series is pre-whitened by its own AR(1); then the points of one
series are nearly independent and r has its textbook law.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

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
        """Give the columns of some layers, those that could be used."""
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
    """Take the AR(1) out and standardise; None where nothing varies."""
    rest = rest - rest.mean()
    energy = float(rest @ rest)
    if energy <= len(rest) * 1e-20:
        return None
    phi = float(rest[1:] @ rest[:-1]) / energy
    new = rest[1:] - phi * rest[:-1]
    new = new - new.mean()
    size = float(np.sqrt((new**2).mean()))
    return new / size if size > 1e-10 else None
