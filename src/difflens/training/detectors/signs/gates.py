"""Gates: sigmoids that multiply what other layers give, and how far open they should start.

A gate is no non-linearity that could be exchanged: to replace it by ReLU would take it away. What
mends gates that pass on too little is to start them open (Gers et al. 2000, Learning to forget).
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from .degrees import FEW, HALF
from .layers import Layers, models_activations, units
from .sight import Sight

_ASKING = frozenset({"query", "key", "q_proj", "k_proj", "to_q", "to_k", "wq", "wk"})


def gates(layers: Layers, columns: Any) -> list[int]:
    """Return the places of matrices that make gates: sigmoids among as many layers without one.

    The last matrix scores and is not counted. Where every hidden layer ends in a sigmoid, these
    are its non-linearities; where none without one has as many units, nothing is there to multiply
    (a layer in two factors has its sigmoid behind the second).
    """
    if are_sigmoids_alone(layers, columns):
        return []
    hidden = [layers.of(int(column)) for column in columns[:-1]]
    found = [place for place, layer in enumerate(hidden) if "igmoid" in layer.activation]
    others = {units(layer) for layer in hidden if "igmoid" not in layer.activation}
    multiplies = all(units(hidden[place]) in others for place in found)
    return found if multiplies and len(found) <= len(hidden) - len(found) else []


def are_sigmoids_alone(layers: Layers, columns: Any) -> bool:
    """Are sigmoids the only non-linearities, and does the first matrix, alone in its place, end so?

    Behind a pool or a sum a sigmoid belongs to no layer, so that others may seem to have none. A
    gate has the layer that it multiplies beside it.
    """
    named = models_activations(layers.history)
    if not named or len(columns) <= FEW:
        return False
    places = [layers.of(int(each)).name.rpartition(".")[0].rpartition(".") for each in columns]
    first = "igmoid" in layers.of(int(columns[0])).activation
    # Modules that are numbered stand one behind the other.
    beside = [each for each in places[1:] if each[0] == places[0][0] and not each[2].isdigit()]
    return first and not beside and all("igmoid" in str(each) for each in named)


def asking(layers: Layers, columns: Any) -> list[int]:
    """Return the places of queries and keys: what they get has passed the slope of a softmax.

    That slope is small where attention is even, and where it is sharp; values and what gathers
    them lie on the way, and get their gradient past it.
    """
    names = [layers.of(int(column)).name.lower().split(".") for column in columns]
    return [place for place, parts in enumerate(names) if not _ASKING.isdisjoint(parts)]


def in_series(layers: Layers, columns: Any) -> int:
    """Count the gates that a signal meets one behind the other."""
    return len({layers.of(int(column)).depth for column in columns}) or 1


def bias_of(seen: Sight, columns: Any) -> float:
    """Return the median size of the first biases of these gates; 0 if none is known."""
    weights, layers = seen.history.course.field("weight_l2"), seen.history.info.layers
    modules = {seen.layers.of(int(column)).name.rpartition(".")[0] for column in columns}
    if weights is None or not len(weights):
        return 0.0
    found = [
        float(weights[0, i]) / layer.count**0.5
        for i, layer in enumerate(layers)
        if layer.role == "bias" and layer.count and layer.name.rpartition(".")[0] in modules
    ]
    return float(np.median(found)) if found else 0.0


def open_bias(series: int) -> float:
    """Return the bias with which gates, one behind the other, pass on half of a signal.

    n gates of s(b) pass s(b)^n, so s(b) = 2^(-1/n).

    >>> open_bias(1), round(open_bias(6), 1)
    (0.0, 2.1)
    """
    share = HALF ** (1 / series)  # what all gates along the way should let through together
    return log(share / (1 - share))


def has_rectifiers(seen: Sight) -> bool:
    """Is some non-linearity of the network one that cuts negative numbers off?"""
    kinds = [layer.activation for layer in seen.history.info.layers]
    return any(each in _RECTIFIERS for each in (*models_activations(seen.history), *kinds))


_RECTIFIERS = ("ReLU", "LeakyReLU", "PReLU", "ReLU6", "GELU", "SiLU", "Mish")
