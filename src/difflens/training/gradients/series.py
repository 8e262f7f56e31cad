"""The network's own series: the norms of all layers side by side and together, and their slopes.

Layers with gaps are left out of the total: a norm over ever other layers would move with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from difflens.core.findings import Interval, Missing
from difflens.stats.trend import correlated_slope, mann_kendall

from ..records.network import MeasuredTrend, NetworkPart

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .signals import LayerSignal, Signals

PartT = TypeVar("PartT", bound=NetworkPart)


def because(needs: str, why: str, *fields: str) -> tuple[Missing, ...]:
    """Return several fields the same reason."""
    return tuple(Missing(field, needs, why) for field in fields)


def blank(kind: type[PartT], needs: str, why: str, **known: Any) -> PartT:
    """Make a record of what is known; all else is null for one reason."""
    given = {each.field for each in known.get("missing", ())}
    missing = [
        Missing(each.field, needs, why)
        for each in getattr(kind(**known), "missing", ())
        if each.field not in given
    ]
    return kind(**{**known, "missing": (*known.get("missing", ()), *missing)})


REGULAR = 0.8  # share of the steps at which a layer must have a norm to count
_TINY = 1e-300


class Series(NamedTuple):
    """Values at steps, oldest first, all of them finite."""

    steps: NDArray[np.float64]
    values: NDArray[np.float64]

    def last(self, points: int) -> Series:
        """Return the latest points alone."""
        start = max(0, len(self.steps) - points)
        return Series(self.steps[start:], self.values[start:])

    def later_half(self) -> Series:
        """Return the second half of the points."""
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
    """Line the layers up; keep the steps at which every regular layer has a finite norm.

    A step that was recorded without layers is none of theirs; its loss counts all the same.
    """
    steps = _with_layers(signals)
    regular = [each for each in signals.layers if _is_regular(each, len(steps))]
    table = np.full((len(steps), len(regular)), np.nan)
    for column, layer in enumerate(regular):
        with np.errstate(divide="ignore", invalid="ignore"):
            table[_rows(steps, layer), column] = np.log(layer.norms)
    table[~np.isfinite(table)] = np.nan
    whole = ~np.isnan(table).any(axis=1) if regular else np.zeros(len(steps), bool)
    rows = table if whole.all() and regular else table[whole]
    return Totals(
        tuple(each.name for each in regular),
        steps[whole],
        rows,
        Series(steps[whole], _ln_total(rows)) if regular else NONE,
        _squares_of(regular, steps, "update_norms", logarithm=True),
        _relative_updates(regular, steps),
        _cosines(regular, steps),
        _finite(np.asarray(signals.steps, np.float64), signals.loss),
        len(signals.layers) - len(regular),
    )


def _with_layers(signals: Signals) -> NDArray[np.float64]:
    steps = np.asarray(signals.steps, np.float64)
    there = np.zeros(len(steps), bool)
    for layer in signals.layers:
        there[_rows(steps, layer)] = True
    return steps[there]


def _is_regular(layer: LayerSignal, count: int) -> bool:
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(layer.norms) & (layer.norms > _TINY)
    return count > 0 and int(usable.sum()) >= REGULAR * count


def _rows(steps: NDArray[np.float64], layer: LayerSignal) -> NDArray[np.int64]:
    return np.searchsorted(steps, layer.steps)


def _ln_total(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln sqrt(sum exp(2 x)) of every row, without leaving the range of numbers."""
    if not len(table):
        return np.empty(0)
    highest = table.max(axis=1)
    squares = np.zeros(len(table))
    for column in table.T:  # a second table would double the memory
        squares += np.exp(2 * (column - highest))
    return highest + 0.5 * np.log(squares)


def _summed(
    layers: list[LayerSignal], steps: NDArray[np.float64], field: str
) -> NDArray[np.float64] | None:
    """Return the norm over all layers at every step; NaN if one has none."""
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


LEAST = 20  # points below which no slope is judged
ALPHA = 0.01  # of a false "rises" or "falls": several are asked of every run
LEVEL = 1 - ALPHA
PER = 100  # steps to which slopes are told

Way = Literal["falls", "rises", "unclear", "unknown"]


def measured(series: Series, what: str) -> MeasuredTrend:
    """Measure the slope per 100 steps, interval and test allowing for autocorrelation."""
    n = len(series.steps)
    slope = correlated_slope(series.steps, series.values, LEVEL) if n >= LEAST else None
    if slope is None:
        why = f"{n} points of {what}, {LEAST} are needed"
        return blank(MeasuredTrend, f"more points of {what}", why, n=n)
    trend = mann_kendall(series.values, series.steps)
    ends = Interval(
        PER * slope.low, PER * slope.high, LEVEL, "Theil-Sen, widened for autocorrelation", n
    )
    return MeasuredTrend(
        slope=PER * slope.value,
        interval=ends,
        p_value=trend.p,
        autocorrelation=trend.phi,
        first_step=int(series.steps[0]),
        last_step=int(series.steps[-1]),
        n=n,
        note=trend.note,
    )


def way(trend: MeasuredTrend | None) -> Way:
    """Say which way a slope goes: by its interval and by the test, both."""
    if trend is None or trend.slope is None or trend.interval is None or trend.p_value is None:
        return "unknown"
    low, high = trend.interval.low, trend.interval.high
    if trend.p_value <= ALPHA and low is not None and high is not None:
        if high < 0:
            return "falls"
        if low > 0:
            return "rises"
    return "unclear"


class TwoWays(NamedTuple):
    """The same series now and over its later half: one window may be too short to tell."""

    recent: MeasuredTrend
    later: MeasuredTrend

    @property
    def way(self) -> Way:
        """Say which way it goes where one of both tells and the other does not deny."""
        ways = {way(self.recent), way(self.later)}
        if "rises" in ways and "falls" in ways:
            return way(self.recent)
        for word in ("rises", "falls", "unclear"):
            if word in ways:
                return word
        return "unknown"

    @property
    def clearest(self) -> MeasuredTrend:
        """The one that tells; the recent where both or neither do."""
        return self.recent if way(self.recent) in {"rises", "falls"} else self.later


def two_ways(series: Series, window: int, what: str) -> TwoWays:
    """Measure a series over its latest window and over its later half, whichever is longer."""
    recent = measured(series.last(window), what)
    later = series.later_half()
    return TwoWays(recent, measured(later, what) if len(later.steps) > window else recent)
