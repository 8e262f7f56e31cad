"""Gains of normalisation that start at next to nothing: what passes is multiplied by them."""

from __future__ import annotations

from .layers import place
from .sight import Sight

_SMALL = 0.1  # of one, where gains start
_MOST = 0.5  # share of the norms: single ones at zero are a custom (the last of a residual branch)


def small_gains(seen: Sight) -> list[str]:
    """Name the norms whose gains start near zero, in network order, where most of them do."""
    weights, layers = seen.history.course.field("weight_l2"), seen.history.info.layers
    if weights is None or not len(weights):
        return []
    norms = [i for i, layer in enumerate(layers) if "norm" in layer.kind.lower() and layer.count]
    gains = [i for i in norms if layers[i].role == "weight"]
    small = [i for i in gains if float(weights[0, i]) < _SMALL * layers[i].count ** 0.5]
    if len(small) <= _MOST * len(gains):
        return []
    return [layers[i].name for i in sorted(small, key=lambda i: place(layers, i))]
