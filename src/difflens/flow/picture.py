"""The numbers of the heat map: layers by columns of steps, every cell a level and a state.

Levels are logarithmic, on a scale that is fixed over the run: with one scale for each frame the
decay of a layer would be invisible, and on a linear scale all but the largest would be blank. Where
there are more frames than columns, a cell shows the value that lies farthest from its layer's
median, and the most alarming state: an average would hide the one step that matters.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UnknownName
from ..flow_results import (
    FIRST_CODE,
    LAST_CODE,
    LEVELS,
    FlowPicture,
    FlowScale,
    GradientFlowConfig,
)
from .cells import Cells
from .states import ZERO

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

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
        cells = cells.of_layers(sorted(range(len(cells.layers)), key=_natural(cells.layers)))
    everything, frames = len(cells.layers), int(cells.spans.sum())
    bounds = cells.bounds or _bounds(cells.low, cells.high)
    cells = merged(cells, columns)
    drawn = _farthest(cells)
    if rows and rows < everything:
        kept = chosen_rows(cells, rows)
        cells, drawn = cells.of_layers(kept), drawn[:, kept]
    levels = _levels(drawn, cells, scale, bounds)
    code_low, code_high = _log_range(_bounds(cells.low, cells.high))
    lows, codes, highs = (_codes(each, code_low, code_high)
                          for each in (cells.low, drawn, cells.high))  # fmt: skip
    low, high = scale_of(bounds) if bounds and scale == "global" else (None, None)
    return FlowPicture(
        title, cells.field, cells.layers, tuple(cells.steps.tolist()),
        tuple(cells.first_steps.tolist()), tuple(cells.spans.tolist()), levels,
        cells.states.T.tobytes(), codes, lows, highs, scale, low, high, code_low, code_high,
        everything, frames, judged.vanishing_threshold, judged.exploding_threshold,
    )  # fmt: skip


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
    """Give of lowest and highest the one farther, in decades, from the layer's median."""
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
    """Give a byte a cell, row after row; halves round up, as a scale of five glyphs wants it."""
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
    """Give two bytes a cell: 0 no value, 1 zero, 2 not finite, else the place of its logarithm."""
    with np.errstate(divide="ignore", invalid="ignore"):
        part = (np.log10(values) - low) / ((high - low) or 1.0)
        codes = np.round(FIRST_CODE + part * (LAST_CODE - FIRST_CODE))
    drawn = np.isfinite(codes) & (values > 0)
    coded = np.where(drawn, np.clip(np.where(drawn, codes, 0), FIRST_CODE, LAST_CODE), 0)
    coded = np.where(values == 0, 1, np.where(np.isinf(values), 2, coded))
    return coded.astype("<u2").T.tobytes()


def _natural(names: tuple[str, ...]) -> Any:
    """Give a key of places: layer 2 before layer 10."""
    parts = [
        [(len(part.lstrip("0")), part) if part.isdigit() else (0, part)
         for part in re.split(r"([0-9]+)", name)]
        for name in names
    ]  # fmt: skip
    return lambda place: (parts[place], names[place])
