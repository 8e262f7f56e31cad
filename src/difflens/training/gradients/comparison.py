"""A layer among the layers of its role, and how gradients change along the depth.

Layers of all sizes compare by rms(g)/rms(w), which is ‖g‖/‖w‖; where weights were not recorded by
rms(g), and where sizes are not known by the norm itself. All in logarithms: a thousandth and a
thousand times are equally far. A larger gradient is not a better one. Over the depth one slope by
Theil and Sen is drawn, so that a single odd layer bends nothing; a mean norm over all layers would
hide that the first layer gets a thousandth of the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp, log
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from difflens.core.findings import Interval, Missing
from difflens.stats.explosion import share_below
from difflens.stats.trend import Slope, theil_sen

from ..records.gradients import ComparativeAnalysis
from ..records.network import DepthProfile, DepthWindow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .signals import LayerSignal, Signals

ALIKE = log(1.2)
MOST_ALIKE = 10
FEW = 5  # layers of a role below which a layer is held against the median of the others alone
_RATIO, _RMS, _NORM = "rms(g)/rms(w)", "rms(g)", "norm"


class Standing(NamedTuple):
    """Where a layer stands in the latest window, in logarithms of the ratio to its peers."""

    role: str
    measure: str
    peers: int  # other layers of the role
    gaps: NDArray[np.float64]  # one a record; empty where there is no peer
    fades_to_input: bool  # does the measure fall, layer by layer, towards the input?

    def share_below(self, ratio: float) -> float:
        """Return the share of records that lie below a ratio of the peers."""
        return float(share_below(self.gaps, log(ratio)))


def measure_of(layers: Sequence[LayerSignal]) -> str:
    """Name the measure that every layer with a record has."""
    recorded = [each for each in layers if len(each.norms)]
    if recorded and all(each.weight_norms is not None for each in recorded):
        return _RATIO
    return _RMS if recorded and all(each.count for each in recorded) else _NORM


def measured(layer: LayerSignal, measure: str) -> NDArray[np.float64]:
    """Return the logarithm of the measure, one a record; NaN if it has none."""
    values = layer.norms
    if not len(values):  # frozen, or cut off from the loss: nothing of it was recorded
        return np.empty(0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if measure == _RATIO:
            values = values / layer.weight_norms
        elif measure == _RMS:
            values = values / np.sqrt(layer.count or np.nan)
        logs = np.log(values)
    return np.where(np.isfinite(logs), logs, np.nan)


def role_of(layer: LayerSignal) -> str:
    """Name what a layer is for: the last word of its name, apart for layers that normalise."""
    word = layer.name.rpartition(".")[2] if "." in layer.name else ""
    return f"norm {word}".strip() if "norm" in layer.kind.lower() else word


def standings(layers: Sequence[LayerSignal]) -> dict[str, Standing]:
    """Hold every layer against those of its role, record by record."""
    measure = measure_of(layers)
    standing_of = {}
    for role, members in _by_role(layers).items():
        logs = [measured(each, measure) for each in members]
        fades = _fades(members, logs)
        gaps = _gaps(members, logs)
        for layer, gap in zip(members, gaps, strict=True):
            standing_of[layer.name] = Standing(role, measure, len(members) - 1, gap, fades)
    return standing_of


def _by_role(layers: Sequence[LayerSignal]) -> dict[str, list[LayerSignal]]:
    roles: dict[str, list[LayerSignal]] = {}
    for each in layers:
        roles.setdefault(role_of(each), []).append(each)
    return roles


def _gaps(
    members: Sequence[LayerSignal], logs: Sequence[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    if len(members) < 2:
        return [np.array([]) for _ in members]
    steps = np.unique(np.concatenate([each.steps for each in members]))
    table = np.full((len(steps), len(members)), np.nan)
    for column, (layer, values) in enumerate(zip(members, logs, strict=True)):
        table[np.searchsorted(steps, layer.steps), column] = values
    if len(members) < FEW:
        places = range(len(members))
        middles = np.stack([_middle(np.delete(table, place, axis=1)) for place in places], axis=1)
    else:
        middles = _middle(table)[:, None]
    apart = table - middles
    return [column[~np.isnan(column)] for column in apart.T]


def _middle(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of each row, NaN if the row has none."""
    some = ~np.isnan(table).all(axis=1)
    middle = np.full(len(table), np.nan)
    if some.any():
        whole = not np.isnan(table[some]).any()
        middle[some] = (np.median if whole else np.nanmedian)(table[some], axis=1)
    return middle


def _fades(members: Sequence[LayerSignal], logs: Sequence[NDArray[np.float64]]) -> bool:
    points = [
        (layer.depth if layer.depth is not None else place, float(np.nanmedian(values)))
        for place, (layer, values) in enumerate(zip(members, logs, strict=True))
        if not np.isnan(values).all()
    ]
    if len(points) < 4:
        return False
    line = theil_sen([depth for depth, _ in points], [level for _, level in points])
    return line is not None and line.low is not None and line.low > 0


def comparisons(layers: Sequence[LayerSignal]) -> dict[str, ComparativeAnalysis]:
    """Compare the layers' typical magnitudes, each with the others of its role."""
    measure = measure_of(layers)
    by_name: dict[str, ComparativeAnalysis] = {}
    for role, members in _by_role(layers).items():
        logs = (measured(each, measure) for each in members)
        levels = [np.nan if np.isnan(each).all() else float(np.nanmedian(each)) for each in logs]
        by_name |= _compared([each.name for each in members], np.array(levels), measure, role)
    return {layer.name: by_name[layer.name] for layer in layers}


def _compared(
    names: Sequence[str], levels: NDArray[np.float64], measure: str, role: str
) -> dict[str, ComparativeAnalysis]:
    known = np.flatnonzero(~np.isnan(levels))
    by_name = {}
    for place, name in enumerate(names):
        others = known[known != place]
        if np.isnan(levels[place]) or not len(others):
            why = "it has no finite norm above zero" if np.isnan(levels[place]) else "it is alone"
            by_name[name] = _alone(measure, role, why)
            continue
        mine, theirs = float(levels[place]), levels[others]
        gap = mine - float(np.median(theirs))
        apart = np.abs(theirs - mine)
        near = others[np.argsort(apart, kind="stable")][: int((apart <= ALIKE).sum())]
        by_name[name] = ComparativeAnalysis(
            relative_performance=exp(min(gap, 700.0)),
            rank_among_layers=1 + int((theirs > mine).sum()),
            similar_layers=tuple(names[each] for each in near[:MOST_ALIKE]),
            performance_gap=abs(exp(min(mine, 700.0)) - exp(min(mine - gap, 700.0))),
            relative_magnitude=gap,
            similar_count=len(near),
            compared_with=len(others),
            measure=measure,
            role=role,
            missing=(_POTENTIAL,),
        )
    return by_name


_POTENTIAL = Missing(
    "optimization_potential", "runs with and without a change", "nothing here estimates it"
)


def _alone(measure: str, role: str, why: str) -> ComparativeAnalysis:
    fields = ("relative_performance", "rank_among_layers", "performance_gap", "relative_magnitude")
    reasons = [Missing(each, "another layer of the role", why) for each in fields]
    return ComparativeAnalysis(measure=measure, role=role, missing=(*reasons, _POTENTIAL))


LEAST_DEPTHS = 4
WINDOWS = 10
LEAST_RECORDS = 5  # of a window
STEEP = log(10)  # change over the whole depth from which a slope has a word
Verdict = Literal["vanishing", "exploding", "even", "cannot_tell"]


class _Row(NamedTuple):
    depth: float
    steps: NDArray[np.int64]
    logs: NDArray[np.float64]


def depth_profile(signals: Signals) -> DepthProfile:
    """Fit ln rms(g)/rms(w), or what of it was recorded, against depth: overall and over time."""
    measure = measure_of(signals.layers)
    rows, basis = _rows(signals.layers, measure)
    depths = [row.depth for row in rows]
    if len(set(depths)) < LEAST_DEPTHS:
        why = f"layers of one role at {len(set(depths))} depths, {LEAST_DEPTHS} are needed"
        reasons = [Missing(each, "more layers", why) for each in ("slope", "interval", "verdict")]
        return DepthProfile(layers=len(rows), measure=f"ln {measure}", missing=tuple(reasons))
    line = _line(rows, None)
    sure = _interval(line)
    return DepthProfile(
        slope=line.value if line else None,
        interval=sure,
        measure=f"ln {measure}{basis}",
        layers=len(rows),
        verdict=_verdict(line, max(depths) - min(depths)),
        windows=tuple(_windows(rows, signals.steps)),
    )


def _rows(layers: tuple[LayerSignal, ...], measure: str) -> tuple[list[_Row], str]:
    """Take the role that most layers have; without recorded depths their order stands for it."""
    alive = [each for each in layers if np.isfinite(measured(each, measure)).any()]
    roles = Counter(role_of(each) for each in layers)  # of equals the first: weights
    chosen = roles.most_common(1)[0][0] if roles else ""
    members = [each for each in alive if role_of(each) == chosen]
    known = all(each.depth is not None for each in members)
    rows = [
        _Row(float(each.depth or 0) if known else float(place), each.steps, measured(each, measure))
        for place, each in enumerate(members)
    ]
    return rows, "" if known else ", by the order of the layers"


def _line(rows: list[_Row], steps: tuple[int, int] | None) -> Slope | None:
    points = []
    for row in rows:
        logs = row.logs
        if steps is not None:
            logs = logs[(row.steps >= steps[0]) & (row.steps <= steps[1])]
        if np.isfinite(logs).any():
            points.append((row.depth, float(np.nanmedian(logs))))
    if len({depth for depth, _ in points}) < LEAST_DEPTHS:
        return None
    return theil_sen([depth for depth, _ in points], [level for _, level in points])


def _interval(line: Slope | None) -> Interval | None:
    if line is None or line.low is None:
        return None
    return Interval(line.low, line.high, method="Sen 1968", n=line.n)


def _verdict(line: Slope | None, reach: float) -> Verdict | None:
    """Judge by the interval over the whole depth; too wide a one cannot tell."""
    if line is None or line.low is None or line.high is None:
        return None
    low, high, middle = line.low * reach, line.high * reach, line.value * reach
    if low > 0 and middle >= STEEP:
        return "vanishing"
    if high < 0 and middle <= -STEEP:
        return "exploding"
    return "even" if low > -STEEP and high < STEEP else "cannot_tell"


def _windows(rows: list[_Row], steps: NDArray[np.int64]) -> list[DepthWindow]:
    parts = np.array_split(steps, max(1, min(WINDOWS, len(steps) // LEAST_RECORDS)))
    windows = []
    for part in parts:
        if len(part):
            line = _line(rows, (int(part[0]), int(part[-1])))
            windows.append(
                DepthWindow(
                    first_step=int(part[0]),
                    last_step=int(part[-1]),
                    slope=line.value if line else None,
                    interval=_interval(line),
                    layers=line.n if line else 0,
                )
            )
    return windows
