"""The numbers of the heat map: layers by columns of steps, every cell a level and a state.

Levels are logarithmic, on a scale that is fixed over the run: with one scale for each frame the
decay of a layer would be invisible, and on a linear scale all but the largest would be blank. Where
there are more frames than columns, a cell shows the value that lies farthest from its layer's
median, and the most alarming state: an average would hide the one step that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from difflens.core.errors import UnknownName
from difflens.core.natural_order import natural_key

from ..records.flow import FIRST_CODE, LAST_CODE, LEVELS, FlowPicture, FlowScale, GradientFlowConfig
from .aggregates import root_mean_square
from .files import empty_block
from .states import ABSENT, ZERO, Reading

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .aggregates import Moment

    Floats = NDArray[np.float64]


class Cells(NamedTuple):
    """Arrays are (frames,) or (frames, layers); NaN is no value. `bounds` is the run's scale."""

    field: str
    layers: tuple[str, ...]
    steps: NDArray[np.int64]
    first_steps: NDArray[np.int64]
    spans: NDArray[np.int64]
    mean: Floats
    low: Floats
    high: Floats
    states: NDArray[np.uint8]
    bounds: tuple[float, float] | None = None

    def of_layers(self, keep: Sequence[int]) -> Cells:
        """Return some of the layers, in the order named; the scale stays that of all."""
        places = list(keep)
        return self._replace(
            layers=tuple(self.layers[place] for place in places),
            mean=self.mean[:, places],
            low=self.low[:, places],
            high=self.high[:, places],
            states=self.states[:, places],
        )


def matching(layers: Sequence[str], pattern: str) -> list[int]:
    """Find the layers whose name matches the pattern (with * and ?) or contains it."""
    places = [
        place for place, name in enumerate(layers) if pattern in name or fnmatchcase(name, pattern)
    ]
    if not places:
        raise UnknownName("layer", pattern, layers)
    return places


FIELDS: dict[str, Callable[[Any], Any]] = {
    "grad_rms": root_mean_square,
    "grad_l2": lambda block: Reading(*block).norm,
    "grad_mean_abs": lambda block: Reading(*block).mean_abs,
    "grad_max_abs": lambda block: Reading(*block).max_abs,
    "weight_l2": lambda block: Reading(*block).weight_norm,
    "gradient_ratio": lambda block: _over(Reading(*block).norm, Reading(*block).weight_norm),
}


def cells_of(
    moments: list[Moment], layers: tuple[str, ...], field: str, bounds: tuple[float, float] | None
) -> Cells:
    """Lay retained frames side by side; what a layer was not in is no value."""
    blocks = [_widened(each.block, len(layers)) for each in moments]
    if field == "auto":  # a file of the first animator does not say how large its layers were
        counted = not any(np.isnan(Reading(*block).elements).any() for block in blocks)
        field = "grad_rms" if counted else "grad_l2"
    if field not in FIELDS:
        raise UnknownName("field", field, FIELDS)
    shape = (len(moments), len(layers))
    values = np.array([FIELDS[field](block) for block in blocks], np.float64).reshape(shape)
    states = np.full(shape, ABSENT, np.uint8)
    for row, moment in zip(states, moments, strict=True):
        row[: len(moment.states)] = moment.states
    whole = field == "grad_rms" or all(np.isnan(Reading(*each).elements).all() for each in blocks)
    return Cells(
        field,
        layers,
        np.array([each.step for each in moments], np.int64),
        np.array([each.first_step for each in moments], np.int64),
        np.array([each.frames for each in moments], np.int64),
        values,
        values,
        values,
        states,
        bounds if whole else None,
    )


def _widened(block: Floats, layers: int) -> Floats:
    more = layers - block.shape[1]
    return block if not more else np.concatenate([block, empty_block(more)], axis=1)


def _over(above: Any, below: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(below) > 0, above / below, np.nan)


MOST_DECADES, LEAST_DECADES = 12.0, 1.0  # that the shades run over
_ORDERS = ("network", "natural")


def picture(
    cells: Cells,
    *,
    columns: int = 1000,
    rows: int = 0,
    scale: FlowScale = "global",
    order: str = "network",
    title: str = "",
    config: GradientFlowConfig | None = None,
) -> FlowPicture:
    """Draw up at most so many columns and rows; 0 is all of them."""
    if order not in _ORDERS:
        raise UnknownName("order", order, _ORDERS)
    judged = config or GradientFlowConfig()
    if order == "natural":
        keys = [natural_key(name) for name in cells.layers]
        cells = cells.of_layers(sorted(range(len(keys)), key=keys.__getitem__))
    everything, frames = len(cells.layers), int(cells.spans.sum())
    bounds = cells.bounds or _bounds(cells.low, cells.high)
    cells = merged(cells, columns)
    drawn = _farthest(cells)
    if rows and rows < everything:
        kept = chosen_rows(cells, rows)
        cells, drawn = cells.of_layers(kept), drawn[:, kept]
    levels = _levels(drawn, cells, scale, bounds)
    code_low, code_high = _log_range(_bounds(cells.low, cells.high))
    lows, codes, highs = (
        _codes(each, code_low, code_high) for each in (cells.low, drawn, cells.high)
    )
    low, high = scale_of(bounds) if bounds and scale == "global" else (None, None)
    return FlowPicture(
        title,
        cells.field,
        cells.layers,
        tuple(cells.steps.tolist()),
        tuple(cells.first_steps.tolist()),
        tuple(cells.spans.tolist()),
        levels,
        cells.states.T.tobytes(),
        codes,
        lows,
        highs,
        scale,
        low,
        high,
        code_low,
        code_high,
        everything,
        frames,
        judged.vanishing_threshold,
        judged.exploding_threshold,
    )


def merged(cells: Cells, columns: int) -> Cells:
    """Merge neighbours so that at most so many columns are left; extremes stay."""
    frames = len(cells.steps)
    if columns < 1 or frames <= columns:
        return cells
    edges = np.linspace(0, frames, columns + 1).astype(np.int64)
    starts, ends = edges[:-1], edges[1:] - 1
    weight = np.where(np.isfinite(cells.mean), cells.spans[:, None], 0)
    total = np.add.reduceat(np.where(weight > 0, cells.mean, 0.0) * weight, starts, axis=0)
    count = np.add.reduceat(weight, starts, axis=0)
    return cells._replace(
        steps=cells.steps[ends],
        first_steps=cells.first_steps[starts],
        spans=np.add.reduceat(cells.spans, starts),
        mean=np.where(count > 0, total / np.maximum(count, 1), np.nan),
        low=np.fmin.reduceat(cells.low, starts, axis=0),
        high=np.fmax.reduceat(cells.high, starts, axis=0),
        states=np.maximum.reduceat(cells.states, starts, axis=0),
    )


def chosen_rows(cells: Cells, rows: int) -> list[int]:
    """Keep the most alarming layers, up to half of the rows, and the rest evenly spaced."""
    worst, often = cells.states.max(axis=0, initial=0), (cells.states >= ZERO).sum(axis=0)
    ranked = np.lexsort((np.arange(len(worst)), -often, -worst.astype(np.int64)))
    ill = [int(place) for place in ranked if worst[place] >= ZERO][: max(1, rows // 2)]
    others = [place for place in range(len(worst)) if place not in set(ill)]
    wanted = max(0, rows - len(ill))
    spread = np.linspace(0, len(others) - 1, wanted).round().astype(int).tolist()
    return sorted({*ill, *(others[place] for place in spread)})


def intensities(values: Any, bounds: tuple[float, float] | None) -> Floats:
    """Place values between 0 and 1 on the logarithmic scale; zero is 0, no value NaN."""
    if bounds is None:
        return np.where(np.asarray(values) == 0, 0.0, np.nan)
    low, high = map(np.log10, scale_of(bounds))
    return _placed(np.asarray(values), low, high)


def scale_of(bounds: tuple[float, float]) -> tuple[float, float]:
    """Say what the lightest and the darkest shade stand for: from one decade to twelve."""
    low, high = np.log10(bounds[0]), np.log10(bounds[1])
    reach = min(max(high - low, LEAST_DECADES), MOST_DECADES)
    return float(10 ** (high - reach)), float(bounds[1])


def _placed(values: Floats, low: Any, high: Any) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        placed = (np.log10(values) - low) / (high - low)
    # A logarithm may be a hair off; a level is a hundredth part, so that hair may go.
    placed = np.clip(np.round(placed, 9), 0.0, 1.0)
    return np.where(np.isfinite(values), placed, np.nan)


def _bounds(low: Floats, high: Floats) -> tuple[float, float] | None:
    lows, highs = low[(low > 0) & np.isfinite(low)], high[(high > 0) & np.isfinite(high)]
    if not highs.size:
        return None
    least = min(lows.min(), highs.min()) if lows.size else highs.min()
    return float(least), float(highs.max())


def _farthest(cells: Cells) -> Floats:
    """Return of lowest and highest the one farther, in decades, from the layer's median."""
    if cells.low is cells.high:
        return cells.mean
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, low, high = (
            np.where(np.isfinite(each) & (each > 0), np.log10(each), np.nan)
            for each in (cells.mean, cells.low, cells.high)
        )
    usual = np.zeros(mean.shape[1])
    there = np.isfinite(mean).any(axis=0)
    if there.any():
        usual[there] = np.nanmedian(mean[:, there], axis=0)
    lower = np.nan_to_num(usual - low, nan=-1.0) > np.nan_to_num(high - usual, nan=-1.0)
    return np.where(lower | ~np.isfinite(cells.high), cells.low, cells.high)


def _levels(
    drawn: Floats, cells: Cells, scale: FlowScale, bounds: tuple[float, float] | None
) -> bytes:
    """Return one byte per cell, row by row; halves round up, as a scale of five glyphs wants it."""
    if scale == "global":
        placed = intensities(drawn, bounds)
    else:
        axis = 0 if scale == "layer" else 1
        parts = range(drawn.shape[1 - axis])
        placed = np.full(drawn.shape, np.nan)
        for part in parts:
            place = (slice(None), part) if axis == 0 else (part, slice(None))
            own = _bounds(cells.low[place], cells.high[place])
            placed[place] = intensities(drawn[place], own)
    placed = np.nan_to_num(placed, nan=0.0)
    return np.floor(placed * LEVELS + 0.5).astype(np.uint8).T.tobytes()


def _log_range(bounds: tuple[float, float] | None) -> tuple[float, float]:
    if bounds is None:
        return 0.0, 0.0
    return float(np.log10(bounds[0])), float(np.log10(bounds[1]))


def _codes(values: Floats, low: float, high: float) -> bytes:
    """Return two bytes a cell: 0 no value, 1 zero, 2 not finite, else the place of its log."""
    with np.errstate(divide="ignore", invalid="ignore"):
        part = (np.log10(values) - low) / ((high - low) or 1.0)
        codes = np.round(FIRST_CODE + part * (LAST_CODE - FIRST_CODE))
    drawn = np.isfinite(codes) & (values > 0)
    coded = np.where(drawn, np.clip(np.where(drawn, codes, 0), FIRST_CODE, LAST_CODE), 0)
    coded = np.where(values == 0, 1, np.where(np.isinf(values), 2, coded))
    return coded.astype("<u2").T.tobytes()
