"""A layer among the layers of its role: how large its gradient is beside theirs.

Layers of all sizes compare by rms(g)/rms(w), which is ‖g‖/‖w‖; where weights were not recorded by
rms(g), and where sizes are not known by the norm itself. All in logarithms: a thousandth and a
thousand times are equally far. A larger gradient is not a better one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..gradient_results import ComparativeAnalysis
from ..records import Missing
from ..stats.trend import theil_sen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .signals import LayerSignal

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
        """Give the share of records that lie below a ratio of the peers."""
        return float((self.gaps < log(ratio)).mean()) if len(self.gaps) else 0.0


def measure_of(layers: Sequence[LayerSignal]) -> str:
    """Name the measure that every layer with a record has."""
    recorded = [each for each in layers if len(each.norms)]
    if recorded and all(each.weight_norms is not None for each in recorded):
        return _RATIO
    return _RMS if recorded and all(each.count for each in recorded) else _NORM


def measured(layer: LayerSignal, measure: str) -> NDArray[np.float64]:
    """Give the logarithm of the measure, one a record; NaN where it has none."""
    values = layer.norms
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
    found = {}
    for role, members in _by_role(layers).items():
        logs = [measured(each, measure) for each in members]
        fades = _fades(members, logs)
        gaps = _gaps(members, logs)
        for layer, gap in zip(members, gaps, strict=True):
            found[layer.name] = Standing(role, measure, len(members) - 1, gap, fades)
    return found


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
    """Give the median of each row, NaN where the row has none."""
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
    found: dict[str, ComparativeAnalysis] = {}
    for role, members in _by_role(layers).items():
        logs = (measured(each, measure) for each in members)
        levels = [np.nan if np.isnan(each).all() else float(np.nanmedian(each)) for each in logs]
        found |= _compared([each.name for each in members], np.array(levels), measure, role)
    return {layer.name: found[layer.name] for layer in layers}


def _compared(
    names: Sequence[str], levels: NDArray[np.float64], measure: str, role: str
) -> dict[str, ComparativeAnalysis]:
    known = np.flatnonzero(~np.isnan(levels))
    found = {}
    for place, name in enumerate(names):
        others = known[known != place]
        if np.isnan(levels[place]) or not len(others):
            why = "it has no finite norm above zero" if np.isnan(levels[place]) else "it is alone"
            found[name] = _alone(measure, role, why)
            continue
        mine, theirs = float(levels[place]), levels[others]
        gap = mine - float(np.median(theirs))
        apart = np.abs(theirs - mine)
        near = others[np.argsort(apart, kind="stable")][: int((apart <= ALIKE).sum())]
        found[name] = ComparativeAnalysis(
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
    return found


_POTENTIAL = Missing(
    "optimization_potential", "runs with and without a change", "nothing here estimates it"
)


def _alone(measure: str, role: str, why: str) -> ComparativeAnalysis:
    fields = ("relative_performance", "rank_among_layers", "performance_gap", "relative_magnitude")
    reasons = [Missing(each, "another layer of the role", why) for each in fields]
    return ComparativeAnalysis(measure=measure, role=role, missing=(*reasons, _POTENTIAL))
