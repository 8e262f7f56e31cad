"""The network's own series: the norms of all layers side by side, and of all together.

Layers with gaps are left out of the whole: a norm over ever other layers would move with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .signals import LayerSignal, Signals

REGULAR = 0.8  # share of the steps at which a layer must have a norm to count
_TINY = 1e-300


class Series(NamedTuple):
    """Values at steps, oldest first, all of them finite."""

    steps: NDArray[np.float64]
    values: NDArray[np.float64]

    def last(self, points: int) -> Series:
        """Give the latest points alone."""
        start = max(0, len(self.steps) - points)
        return Series(self.steps[start:], self.values[start:])

    def later_half(self) -> Series:
        """Give the second half of the points."""
        return self.last((len(self.steps) + 1) // 2)

    @property
    def gap(self) -> float:
        """The usual number of steps from one point to the next."""
        return float(np.median(np.diff(self.steps))) if len(self.steps) > 1 else 1.0


NONE = Series(np.empty(0), np.empty(0))


class Totals(NamedTuple):
    """All that the network's analysis reads, lined up on the steps of the run."""

    names: tuple[str, ...]  # layers in the table
    steps: NDArray[np.float64]  # rows of the table
    table: NDArray[np.float64]  # ln norms, every one finite
    gradient: Series  # ln of the norm over all layers
    update: Series  # ln of the norm of all updates
    relative_update: Series  # update norm by weight norm
    cosine: Series  # of successive gradients, mean over layers
    loss: Series
    left_out: int  # layers that lack too many steps, or are zero or not finite too often


def totals(signals: Signals) -> Totals:
    """Line the layers up; keep the steps at which every regular layer has a finite norm."""
    steps = np.asarray(signals.steps, np.float64)
    regular = [each for each in signals.layers if _is_regular(each, len(steps))]
    table = np.full((len(steps), len(regular)), np.nan)
    for column, layer in enumerate(regular):
        with np.errstate(divide="ignore", invalid="ignore"):
            table[_rows(steps, layer), column] = np.log(layer.norms)
    table[~np.isfinite(table)] = np.nan
    whole = ~np.isnan(table).any(axis=1) if regular else np.zeros(len(steps), bool)
    kept = table if whole.all() and regular else table[whole]
    return Totals(
        tuple(each.name for each in regular),
        steps[whole],
        kept,
        Series(steps[whole], _ln_total(kept)) if regular else NONE,
        _squares_of(regular, steps, "update_norms", logarithm=True),
        _relative_updates(regular, steps),
        _cosines(regular, steps),
        _finite(steps, signals.loss),
        len(signals.layers) - len(regular),
    )


def _is_regular(layer: LayerSignal, count: int) -> bool:
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(layer.norms) & (layer.norms > _TINY)
    return count > 0 and int(usable.sum()) >= REGULAR * count


def _rows(steps: NDArray[np.float64], layer: LayerSignal) -> NDArray[np.int64]:
    return np.searchsorted(steps, layer.steps)


def _ln_total(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give ln sqrt(sum exp(2 x)) of every row, without leaving the range of numbers."""
    if not len(table):
        return np.empty(0)
    highest = table.max(axis=1)
    squares = np.zeros(len(table))
    for column in table.T:  # a second table would double the memory
        squares += np.exp(2 * (column - highest))
    return highest + 0.5 * np.log(squares)  # type: ignore[no-any-return]


def _summed(
    layers: list[LayerSignal], steps: NDArray[np.float64], field: str
) -> NDArray[np.float64] | None:
    """Give the norm over all layers at every step; NaN where one has none."""
    squares = np.zeros(len(steps))
    for layer in layers:
        values = getattr(layer, field)
        if values is None:
            return None
        full = np.full(len(steps), np.nan)
        full[_rows(steps, layer)] = values
        with np.errstate(invalid="ignore", over="ignore"):
            squares += full * full
    return np.sqrt(squares) if layers else None


def _squares_of(
    layers: list[LayerSignal], steps: NDArray[np.float64], field: str, *, logarithm: bool
) -> Series:
    total = _summed(layers, steps, field)
    if total is None:
        return NONE
    with np.errstate(divide="ignore", invalid="ignore"):
        return _finite(steps, np.log(total) if logarithm else total)


def _relative_updates(layers: list[LayerSignal], steps: NDArray[np.float64]) -> Series:
    updates, weights = (_summed(layers, steps, field) for field in ("update_norms", "weight_norms"))
    if updates is None or weights is None:
        return NONE
    with np.errstate(divide="ignore", invalid="ignore"):
        return _finite(steps, updates / weights)


def _cosines(layers: list[LayerSignal], steps: NDArray[np.float64]) -> Series:
    total, count = np.zeros(len(steps)), np.zeros(len(steps))
    for layer in layers:
        if layer.cosines is not None:
            known = np.isfinite(layer.cosines)
            rows = _rows(steps, layer)[known]
            total[rows] += layer.cosines[known]
            count[rows] += 1
    with np.errstate(invalid="ignore"):
        return _finite(steps, np.where(count > 0, total / count, np.nan))


def _finite(steps: NDArray[np.float64], values: Any) -> Series:
    if values is None:
        return NONE
    array = np.asarray(values, np.float64)
    there = np.isfinite(array)
    return Series(steps[there], array[there])
