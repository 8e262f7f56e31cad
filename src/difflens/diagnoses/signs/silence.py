"""Gradients that are exactly zero: behind which layers nothing is active, or that none arrives."""

from __future__ import annotations

from typing import Any

import numpy as np

from .layers import place
from .sight import Sight

_POINTS = 10  # points over which a gradient must have been exactly zero


def starved(seen: Sight) -> list[int]:
    """Give the layers, nearest first, before one whose bias gets a gradient and its weights none.

    The gradient of weights is that of the outputs times the inputs, and the bias gets that of the
    outputs alone. So all inputs of that layer are exactly zero: nothing before it is active.
    """
    gradients, layers = seen.history.course.field("grad_l2"), seen.history.info.layers
    if gradients is None or len(gradients) < _POINTS:
        return []
    late = gradients[-_POINTS:]
    silent = (late == 0).all(axis=0)
    biases = {layer.name.rpartition(".")[0]: i for i, layer in enumerate(layers)
              if layer.role == "bias" and (late[:, i] > 0).all()}  # fmt: skip
    hit = [i for i, layer in enumerate(layers)
           if silent[i] and layer.trainable and len(layer.shape) > 1
           and "norm" not in layer.kind.lower() and layer.name.rpartition(".")[0] in biases
           and layer.role != "bias"]  # fmt: skip
    if not hit:
        return []
    first = min(hit, key=lambda i: place(layers, i))
    before = [i for i in range(len(layers)) if silent[i] and layers[i].trainable
              and len(layers[i].shape) > 1 and place(layers, i) < place(layers, first)]  # fmt: skip
    return sorted(before, key=lambda i: place(layers, i), reverse=True)


def is_silent(seen: Sight) -> bool:
    """Was every gradient exactly zero at every point, that of the last layer included?"""
    gradients: Any = seen.history.course.field("grad_l2")
    if gradients is None or len(gradients) < _POINTS:
        return False
    known = gradients[:, ~np.isnan(gradients).all(axis=0)]
    return bool(known.size and not np.nan_to_num(known, nan=1.0).any())
