"""By how much a plain recurrent layer multiplies what it remembers, at each step of a sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ...history.history import History

RECURRENT = ("RNN", "RNNCell", "SimpleRNN", "GRU", "GRUCell", "LSTM", "LSTMCell")
_PLAIN = ("RNN", "RNNCell", "SimpleRNN")


def gains(history: History) -> dict[str, float]:
    """Give |W_hh|/sqrt(n) of each plain recurrent layer at the start, 1 for an orthogonal one.

    It is the root mean square of the singular values: below 1 a state fades as gain^t, above 1 it
    grows (Pascanu et al. 2013, On the difficulty of training recurrent neural networks). Gated
    layers are left out: their gates, not this matrix, decide what is kept.
    """
    weights = history.course.field("weight_l2")
    if weights is None or not len(weights):
        return {}
    found = {}
    for i, layer in enumerate(history.info.layers):
        square = len(layer.shape) == 2 and layer.shape[0] == layer.shape[1]
        recurrent = "hh" in layer.name.lower() or "recurrent" in layer.name.lower()
        if layer.kind in _PLAIN and square and recurrent and np.isfinite(weights[0, i]):
            found[layer.name] = float(weights[0, i]) / layer.shape[0] ** 0.5
    return found
