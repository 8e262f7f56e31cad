"""The hidden units of recurrent layers, each taken over all its gates at once.

Rows of an LSTM's matrices are blocked by gate; a unit is one row of every block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ...records import TensorInfo
from .slots import Group, Slot

_HIDDEN = re.compile(r"^(?P<prefix>(?:.*\.)?)weight_hh_l(?P<layer>[0-9]{1,4})$")


def recurrent(tensors: Mapping[str, TensorInfo]) -> Iterator[Group]:
    """Yield a group for every layer that runs one way and whose reader is known.

    Layers that run both ways hand two halves to the next one; those are left alone.
    """
    for name, info in tensors.items():
        found = _HIDDEN.match(name)
        if not found or f"{name}_reverse" in tensors or len(info.shape) != 2:
            continue
        prefix, index = found["prefix"], int(found["layer"])
        units = info.shape[1]
        gates, odd = divmod(info.shape[0], units) if units else (0, 1)
        inputs = tensors.get(f"{prefix}weight_ih_l{index}")
        projected = f"{prefix}weight_hr_l{index}" in tensors
        if odd or not gates or projected or not inputs or len(inputs.shape) != 2:
            continue
        slots = [
            Slot(inputs.name, "up", units, 0, gates),
            Slot(name, "recurrent", units, 0, gates),
            Slot(name, "recurrent", units, 1),
            *_biases(tensors, prefix, index, units, gates),
            *_readers(tensors, prefix, index, units),
        ]
        if inputs.shape[0] == units * gates:
            yield Group(f"{prefix}l{index}", "recurrent", units, tuple(slots))


def _biases(
    tensors: Mapping[str, TensorInfo], prefix: str, index: int, units: int, gates: int
) -> Iterator[Slot]:
    for kind in ("ih", "hh"):
        bias = tensors.get(f"{prefix}bias_{kind}_l{index}")
        if bias and bias.shape == (units * gates,):
            yield Slot(bias.name, "bias", units, 0, gates)


def _readers(
    tensors: Mapping[str, TensorInfo], prefix: str, index: int, units: int
) -> Iterator[Slot]:
    """Yield who reads the layer's output: the next layer, else the one matrix that fits."""
    following = tensors.get(f"{prefix}weight_ih_l{index + 1}")
    if following:
        yield Slot(following.name, "down", units, 1)
        return
    fitting = [
        info
        for name, info in tensors.items()
        if "weight_" not in name and len(info.shape) == 2 and info.shape[1] == units
    ]
    if len(fitting) == 1:
        yield Slot(fitting[0].name, "down", units, 1)
