"""Gains of normalisation that start at next to nothing: what passes is multiplied by them."""

from __future__ import annotations

from .degrees import HALF, SOME
from .layers import place
from .sight import Sight


def small_gains(seen: Sight) -> list[str]:
    """Name the norms whose gains start near zero, in network order, where most of them do."""
    weights, layers = seen.history.course.field("weight_l2"), seen.history.info.layers
    if weights is None or not len(weights):
        return []
    norms = [i for i, layer in enumerate(layers) if "norm" in layer.kind.lower() and layer.count]
    gains = [i for i in norms if layers[i].role == "weight"]
    small = [i for i in gains if float(weights[0, i]) < SOME * layers[i].count ** 0.5]
    if len(small) <= HALF * len(gains):
        return []
    return [layers[i].name for i in sorted(small, key=lambda i: place(layers, i))]
