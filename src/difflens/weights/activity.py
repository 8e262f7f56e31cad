"""Which units stayed silent, by activations that were recorded: only those are called dead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ModelError


def silent_units(activations: Mapping[str, Any], name: str, units: int) -> Any:
    """Say of each unit whether all that was recorded of it is zero; None where nothing was.

    Activations go by the name of the tensor or of its layer; the last axis is that of the units.
    """
    layer = name.rpartition(".")[0]
    given = activations.get(name, activations.get(layer) if layer else None)
    if given is None:
        return None
    if hasattr(given, "detach"):
        given = given.detach().cpu().double().numpy()
    array = np.asarray(given)
    if not array.ndim or array.shape[-1] != units or not array.size:
        reason = f"activations of shape {list(array.shape)} for {units} units"
        raise ModelError(name, reason, hint="the last axis is that of the units")
    return ~array.reshape(-1, units).any(axis=0)
