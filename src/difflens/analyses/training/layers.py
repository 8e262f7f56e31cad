"""Gradients of layers held against their weights: a ratio without units, layer by layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import log, sqrt
from statistics import median
from typing import Any, NamedTuple

from ...evidences import Gradients
from ...stats.trend import Slope, theil_sen
from ..anatomy.roles import block, role
from .adam import Moments
from .series import Points
from .weights import Weight


class Layer(NamedTuple):
    """One layer's gradient norms over time (a single one from moments), and its weights' norm."""

    name: str
    norms: tuple[float, ...]
    weight: float | None

    @property
    def ratio(self) -> float | None:
        """Typical ‖g‖ / ‖w‖, which is rms(g) / rms(w)."""
        return median(self.norms) / self.weight if self.weight else None

    def told(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {"layer": self.name, "norm": median(self.norms), "ratio_to_weights": self.ratio}


def recorded_layers(gradients: Gradients, found: Iterable[Weight]) -> list[Layer]:
    """Give the layers of a recording; their weights are the tensors under their name."""
    weights = list(found)
    return [Layer(name, tuple(norm for _, norm in points), _norm_under(name, weights))
            for name, points in gradients.norms.items() if points]  # fmt: skip


def moment_layers(
    moments: Iterable[Moments], names: Mapping[int, str], found: Iterable[Weight]
) -> list[Layer]:
    """Give the parameters whose moments are known by name, with sqrt(Σv) as their norm."""
    weights = {each.name: sqrt(each.right) for each in found}
    return [Layer(names[each.place], (sqrt(max(0.0, each.second)),), weights.get(names[each.place]))
            for each in moments if each.place in names]  # fmt: skip


def global_norms(gradients: Gradients) -> Points:
    """Give sqrt(Σ‖g_l‖²) at the steps at which every layer was recorded."""
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
        middles = [median(_ratio(each, at) for each in group) for at in range(length)]
        for each in group:
            parts = [_ratio(each, at) / middle for at, middle in enumerate(middles) if middle]
            if parts and sum(part < share for part in parts) >= steps * len(parts):
                found[each.name] = median(parts)
    return found


def judged_layers(layers: list[Layer], least: int) -> int:
    """Count the layers that have enough others of their role to be judged."""
    roles = [role(each.name) for each in layers if each.weight]
    return sum(roles.count(each) >= least for each in roles)


def depth_slope(layers: list[Layer]) -> Slope | None:
    """Estimate how ln(‖g‖/‖w‖) changes from block to block."""
    places = [(place[1], log(ratio)) for each in layers
              if (place := block(f"{each.name}.")) and (ratio := each.ratio)]  # fmt: skip
    return theil_sen([at for at, _ in places], [value for _, value in places]) if places else None


def _ratio(layer: Layer, at: int) -> float:
    return layer.norms[at] / (layer.weight or 1.0)


def _norm_under(name: str, weights: list[Weight]) -> float | None:
    squares = [each.right for each in weights
               if each.name == name or each.name.startswith(f"{name}.")]  # fmt: skip
    return sqrt(sum(squares)) if squares else None
