"""Gradients as recorded or left in the moments of Adam: norms by layer, and bursts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import fsum, isfinite, log, sqrt
from statistics import median
from typing import Any, NamedTuple

from difflens.core.protocols import Values
from difflens.models.anatomy.roles import block, role
from difflens.stats.explosion import parts_of_peers, rises, robust_scores, share_below
from difflens.stats.trend import Slope, theil_sen

from ...evidence.records import Gradients, Optimizer
from ..changes.energy import Weight
from .logs import Points

# With m = exp_avg/(1 - β1^t) and v = exp_avg_sq/(1 - β2^t), under a mean gradient G and noise of
# covariance S that do not change over the last 1/(1 - β2) steps:
#
#     E‖m‖² = |G|² + c tr S,  c = (1 - β1)(1 + β1^t) / ((1 + β1)(1 - β1^t))
#     E Σv  = |G|² +   tr S
#
# so |G|² = (‖m‖² - c Σv)/(1 - c); the noise scale is B tr S / |G|² (McCandlish et al. 2018).


class Moments(NamedTuple):
    """Sums over one parameter's bias-corrected moments, and the estimates that follow."""

    place: int  # the optimiser's index of the parameter
    elements: int
    first: float  # ‖m‖²
    second: float  # Σv
    signal: float  # |G|², below zero where noise dominates
    group: int

    @property
    def rms(self) -> float:
        """The size of a gradient's element, sqrt(mean v)."""
        return sqrt(max(0.0, self.second) / self.elements) if self.elements else 0.0


def settings(state: Optimizer) -> dict[int, tuple[int, dict[str, Any]]]:
    """Return for each index its group: where it stands, and its settings."""
    return {
        index: (at, group) for at, group in enumerate(state.groups) for index in group["params"]
    }


def corrections(
    moments: dict[str, Any], group: dict[str, Any]
) -> tuple[float, float, float] | None:
    """Return β1, 1 - β1^t and 1 - β2^t; None if step or betas are not those of Adam."""
    betas, step = group.get("betas"), moments.get("step")
    if not isinstance(betas, list | tuple) or len(betas) != 2 or not isinstance(step, int | float):
        return None
    first, second = betas
    if not (isinstance(first, float) and isinstance(second, float)):
        return None
    if not (0 <= first < 1 and 0 < second < 1 and step >= 1):
        return None
    return first, 1 - first**step, 1 - second**step


def adam_moments(state: Optimizer | None) -> list[Moments]:
    """Sum up every parameter's moments, a piece at a time; empty if there are none of Adam's."""
    if state is None:
        return []
    groups, found = settings(state), []
    for index, moments in sorted(state.moments.items()):
        at, group = groups.get(index, (0, {}))
        known = corrections(moments, group)
        first, second = moments.get("exp_avg"), moments.get("exp_avg_sq")
        if known is None or first is None or second is None:
            continue
        beta, one, two = known
        squares, sizes = _squares(first) / one**2, _sum(second) / two
        if isfinite(squares) and isfinite(sizes):
            c = (1 - beta) * (2 - one) / ((1 + beta) * one)
            signal = (squares - c * sizes) / (1 - c) if c < 1 else -1.0
            found.append(Moments(index, first.info.count, squares, sizes, signal, at))
    return found


def noise_to_signal(found: Iterable[Moments]) -> float | None:
    """Return tr S / |G|² over all parameters; None if noise hides the mean gradient."""
    known = list(found)
    signal = fsum(each.signal for each in known)
    total = fsum(each.second for each in known)
    return (total - signal) / signal if signal > 0 else None


def _squares(values: Values) -> float:
    import numpy as np

    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for piece in values.pieces():
            wide = piece.astype(np.float64)
            total += float(wide @ wide)
    return total


def _sum(values: Values) -> float:
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        return float(sum(float(piece.sum(dtype=np.float64)) for piece in values.pieces()))


_LEAST = 8  # points below which there is no history to judge against


class Burst(NamedTuple):
    """A jump: the step, how many times the norm before, and how unusual a step it was."""

    step: float
    ratio: float
    z: float


def bursts(points: Points, limits: Mapping[str, float]) -> list[Burst]:
    """Find one-step rises of ln‖g‖ with a robust z above `z` after which the norm stays up.

    It stays up where the median of the next `hold` points is `ratio` times the median of the
    `window` points before (Iglewicz & Hoaglin 1993 for the robust z).
    """
    import numpy as np

    known = [(step, norm) for step, norm in points if norm > 0]
    if len(known) < _LEAST:
        return []
    norms = np.array([norm for _, norm in known])
    changes = np.diff(np.log(norms))
    window, hold = int(limits["window"]), int(limits["hold"])
    return [
        Burst(known[each.place][0], each.after / each.before, each.z)
        for each in rises(norms, robust_scores(changes), z=limits["z"], window=window, hold=hold)
        if each.count_after == limits["hold"] and each.after / each.before >= limits["ratio"]
    ]


class Layer(NamedTuple):
    """One layer's gradient norms over time (a single one from moments), and its weights' norm."""

    name: str
    norms: tuple[float, ...]
    weight: float | None

    @property
    def ratio(self) -> float | None:
        """Typical ‖g‖ / ‖w‖, which is rms(g) / rms(w)."""
        return median(self.norms) / self.weight if self.weight else None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"layer": self.name, "norm": median(self.norms), "ratio_to_weights": self.ratio}


def recorded_layers(gradients: Gradients, found: Iterable[Weight]) -> list[Layer]:
    """Return the layers of a recording; their weights are the tensors under their name."""
    weights = list(found)
    return [
        Layer(name, tuple(norm for _, norm in points), _norm_under(name, weights))
        for name, points in gradients.norms.items()
        if points
    ]


def moment_layers(
    moments: Iterable[Moments], names: Mapping[int, str], found: Iterable[Weight]
) -> list[Layer]:
    """Return the parameters whose moments are known by name, with sqrt(Σv) as their norm."""
    weights = {each.name: sqrt(each.right) for each in found}
    return [
        Layer(names[each.place], (sqrt(max(0.0, each.second)),), weights.get(names[each.place]))
        for each in moments
        if each.place in names
    ]


def global_norms(gradients: Gradients) -> Points:
    """Return sqrt(Σ‖g_l‖²) at the steps at which every layer was recorded."""
    tables = [dict(points) for points in gradients.norms.values() if points]
    shared = set.intersection(*map(set, tables)) if tables else set()
    return tuple((step, sqrt(sum(table[step] ** 2 for table in tables))) for step in sorted(shared))


def vanishing(layers: list[Layer], share: float, steps: float, least: int) -> dict[str, float]:
    """Find layers whose ‖g‖/‖w‖ is below `share` of the median of their role's in most steps.

    Roles with fewer than `least` layers are not judged. Gives the typical ratio to that median.
    """
    groups: dict[str, list[Layer]] = defaultdict(list)
    for each in layers:
        if each.weight:
            groups[role(each.name)].append(each)
    found: dict[str, float] = {}
    for group in groups.values():
        length = min(len(each.norms) for each in group)
        if len(group) < least or not length:
            continue
        parts = parts_of_peers([[_ratio(each, at) for at in range(length)] for each in group])
        for each, own, below in zip(group, parts, share_below(parts, share), strict=True):
            known = own[own == own]  # noqa: PLR0124  NaN where the median is zero
            if len(known) and below >= steps:
                found[each.name] = median(known.tolist())
    return found


def judged_layers(layers: list[Layer], least: int) -> int:
    """Count the layers that have enough others of their role to be judged."""
    roles = [role(each.name) for each in layers if each.weight]
    return sum(roles.count(each) >= least for each in roles)


def depth_slope(layers: list[Layer]) -> Slope | None:
    """Estimate how ln(‖g‖/‖w‖) changes from block to block."""
    places = [
        (place[1], log(ratio))
        for each in layers
        if (place := block(f"{each.name}.")) and (ratio := each.ratio)
    ]
    return theil_sen([at for at, _ in places], [value for _, value in places]) if places else None


def _ratio(layer: Layer, at: int) -> float:
    return layer.norms[at] / (layer.weight or 1.0)


def _norm_under(name: str, weights: list[Weight]) -> float | None:
    squares = [
        each.right for each in weights if each.name == name or each.name.startswith(f"{name}.")
    ]
    return sqrt(sum(squares)) if squares else None
