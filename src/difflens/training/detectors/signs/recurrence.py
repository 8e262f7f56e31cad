"""By how much a plain recurrent layer multiplies what it remembers, at each step of a sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...history.history import History
from ...records.runs import Fix
from .degrees import CLEARLY
from .layers import SWAMPED

RECURRENT = ("RNN", "RNNCell", "SimpleRNN", "GRU", "GRUCell", "LSTM", "LSTMCell")
_GATES = {"LSTM": 4, "LSTMCell": 4, "GRU": 3, "GRUCell": 3}
GATED = tuple(_GATES)
_PLAIN = ("RNN", "RNNCell", "SimpleRNN")


def is_recurrent(history: History) -> bool:
    """Does the network go through time? Such ones rest long before they learn."""
    return any(layer.kind in RECURRENT for layer in history.info.layers)


def gains(history: History) -> dict[str, float]:
    """Return |W_hh|/sqrt(n) of each plain recurrent layer at the start, 1 for an orthogonal one.

    It is the root mean square of the singular values: below 1 a state fades as gain^t, above 1 it
    grows (Pascanu et al. 2013, On the difficulty of training recurrent neural networks). Gated
    layers are left out: their gates, not this matrix, decide what is kept. So are those of which
    the first step left little: weights are recorded behind it.
    """
    weights, updates = (history.course.field(name) for name in ("weight_l2", "update_l2"))
    if weights is None or not len(weights):
        return {}
    steps = np.zeros(weights.shape[1]) if updates is None else np.nan_to_num(updates[0])
    found = {}
    for i, layer in enumerate(history.info.layers):
        square = len(layer.shape) == 2 and layer.shape[0] == layer.shape[1]
        recurrent = "hh" in layer.name.lower() or "recurrent" in layer.name.lower()
        known = np.isfinite(weights[0, i]) and steps[i] <= SWAMPED * weights[0, i]
        if layer.kind in _PLAIN and square and recurrent and known:
            found[layer.name] = float(weights[0, i]) / layer.shape[0] ** 0.5
    return found


def biased_gates(history: History) -> list[str]:
    """Name the gated layers whose biases start far out; which way does not show in their size."""
    weights = history.course.field("weight_l2")
    if weights is None or not len(weights):
        return []
    found = []
    for i, layer in enumerate(history.info.layers):
        gates = _GATES.get(layer.kind)
        if gates and len(layer.shape) == 1 and np.isfinite(weights[0, i]):
            out = float(weights[0, i]) / (layer.shape[0] / gates) ** 0.5
            found += [layer.name] if out > CLEARLY else []  # frameworks start at 0 or 1
    return found


class Memory(NamedTuple):
    """The recurrent layers whose gain is wrong, the worst first, and its gain."""

    layers: list[str]
    gain: float
    fix: Fix


def wrong_memory(history: History, is_wrong: Callable[[float], bool]) -> Memory | None:
    """Return the recurrent layers whose gain is wrong; the worst is the farthest from one."""
    found = {name: gain for name, gain in gains(history).items() if is_wrong(gain)}
    if not found:
        return None
    worst = sorted(found, key=lambda name: (-abs(np.log(max(found[name], 1e-30))), name))
    scheme = "identity" if _is_unbounded(history) else "orthogonal"
    fix = Fix("reinitialise", {"scheme": scheme, "layers": worst})
    return Memory(worst, found[worst[0]], fix)


def _is_unbounded(history: History) -> bool:
    """Were the first outputs larger than states of at most one, as tanh gives, could make them?

    Then the states are those of a ReLU, which wants the identity for a start (Le et al. 2015, A
    simple way to initialize recurrent networks of rectified linear units): an orthogonal matrix
    turns signs, and ReLU cuts off what it turned. A row of W makes at most |W| sqrt(n) of states
    of one.
    """
    output: Any = history.fact("output")
    weights = history.course.field("weight_l2")
    if not isinstance(output, dict) or weights is None:
        return False
    ends = [
        abs(each) for key in ("min", "max") if isinstance(each := output.get(key), (int, float))
    ]
    last = [
        (float(weights[0, i]), layer.shape[-1])
        for i, layer in enumerate(history.info.layers)
        if layer.kind not in RECURRENT and len(layer.shape) == 2
    ]
    if not ends or not last:
        return False
    norm, width = last[-1]
    return bool(max(ends) > norm * width**0.5)
