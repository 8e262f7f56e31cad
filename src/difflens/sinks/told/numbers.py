"""The numbers of a frame by the names under which trackers get them.

A tracker takes a name and a number: of each layer it gets the norm of the gradient and the size of
the update beside the weights, which are what people look at; the run's own file has the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...history.frame import Frame
    from ...runs import RunInfo

GRADIENT, UPDATE, TOTAL = "grad_norm", "update_ratio", "global_grad_norm"


def scalars_of(frame: Frame, info: RunInfo) -> dict[str, float]:
    """Give what was recorded of the step, and the norm of the gradient over all layers."""
    import numpy as np

    from ...history.frame import is_missing

    there = ~is_missing(frame.scalars)
    found = {name: float(frame.scalars[i]) for i, name in enumerate(info.scalars) if there[i]}
    norms = _field(frame, info, "grad_l2")
    if norms:
        total = float(np.sqrt(np.square(np.array(list(norms.values()), np.float64)).sum()))
        found.setdefault(TOTAL, total)
    return found


def layers_of(frame: Frame, info: RunInfo) -> dict[str, float]:
    """Give the norm of each layer's gradient, and its update over its weights."""
    norms, weights = _field(frame, info, "grad_l2"), _field(frame, info, "weight_l2")
    updates = _field(frame, info, "update_l2")
    found = {f"{GRADIENT}/{name}": value for name, value in norms.items()}
    for name, value in updates.items():
        if weights.get(name, 0.0) > 0:
            found[f"{UPDATE}/{name}"] = value / weights[name]
    return found


def _field(frame: Frame, info: RunInfo, field: str) -> dict[str, float]:
    """Give a field by layer, without what was not recorded."""
    from ...history.frame import is_missing

    if field not in info.fields:
        return {}
    row = frame.layers[info.fields.index(field)]
    absent = is_missing(row)
    return {layer.name: float(row[i]) for i, layer in enumerate(info.layers) if not absent[i]}
