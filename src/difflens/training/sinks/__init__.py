"""Where frames go beside the run's own file while training: one file per destination.

A sink is made on the thread of the training loop, where trackers keep what is active, and is then
given each recorded frame on the recorder's thread. One that fails is left out with a single
warning, and the run goes on without it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from difflens.core.registry import Registry

if TYPE_CHECKING:
    from ..history.frame import Frame
    from ..records.runs import RunInfo


class Sink(Protocol):
    """A destination of frames."""

    def write(self, frame: Frame, info: RunInfo) -> None:
        """Write one frame, laid out as the info says."""

    def close(self) -> None:
        """Write what was kept back, and let go."""


# A plug-in is called with the run's folder and its first info.
sink: Registry[Callable[[Path, RunInfo], Sink]] = Registry("sink", __name__, "difflens.sinks")


GRADIENT, UPDATE, TOTAL = "grad_norm", "update_ratio", "global_grad_norm"


def scalars_of(frame: Frame, info: RunInfo) -> dict[str, float]:
    """Return what was recorded of the step, and the norm of the gradient over all layers."""
    import numpy as np

    from ..history.frame import is_missing

    there = ~is_missing(frame.scalars)
    numbers = {name: float(frame.scalars[i]) for i, name in enumerate(info.scalars) if there[i]}
    norms = _field(frame, info, "grad_l2")
    if norms:
        total = float(np.sqrt(np.square(np.array(list(norms.values()), np.float64)).sum()))
        numbers.setdefault(TOTAL, total)
    return numbers


def layers_of(frame: Frame, info: RunInfo) -> dict[str, float]:
    """Return the norm of each layer's gradient, and its update over its weights."""
    norms, weights = _field(frame, info, "grad_l2"), _field(frame, info, "weight_l2")
    updates = _field(frame, info, "update_l2")
    numbers = {f"{GRADIENT}/{name}": value for name, value in norms.items()}
    for name, value in updates.items():
        if weights.get(name, 0.0) > 0:
            numbers[f"{UPDATE}/{name}"] = value / weights[name]
    return numbers


def _field(frame: Frame, info: RunInfo, field: str) -> dict[str, float]:
    """Return a field by layer, without what was not recorded."""
    from ..history.frame import is_missing

    if field not in info.fields:
        return {}
    row = frame.layers[info.fields.index(field)]
    absent = is_missing(row)
    return {layer.name: float(row[i]) for i, layer in enumerate(info.layers) if not absent[i]}
