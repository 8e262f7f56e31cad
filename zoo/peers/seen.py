"""What the peers' rules look at: a recorded run as arrays, and its accuracy by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from difflens.training.history import read_history

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from difflens.training.history.history import Course
    from difflens.training.records.runs import Layer


class Seen(NamedTuple):
    """Arrays over steps, and over layers where there are two axes; NaN if nothing was."""

    layers: tuple[Layer, ...]
    loss: NDArray[Any]
    val_loss: NDArray[Any]
    accuracy: NDArray[Any]  # empty for regression
    grad_l2: NDArray[Any]
    grad_mean_abs: NDArray[Any]
    grad_max_abs: NDArray[Any]
    grad_zeros: NDArray[Any]
    grad_nonfinite: NDArray[Any]
    weight_l2: NDArray[Any]
    update_l2: NDArray[Any]  # 0 where none was seen: a tensor that no optimiser has stands still
    act_dead: NDArray[Any]
    act_saturated: NDArray[Any]
    epoch: int  # steps an epoch takes
    input_mean: float

    @property
    def weights(self) -> list[int]:
        """The places of weights in the order in which the network runs."""
        places = [i for i, layer in enumerate(self.layers) if layer.role == "weight"]
        return sorted(places, key=lambda i: (self.layers[i].depth or 0, i))

    def names(self, places: NDArray[Any]) -> tuple[str, ...]:
        """Name the layers that a mask picks."""
        return tuple(self.layers[int(i)].name for i in np.flatnonzero(places))


def _still(course: Course, updates: NDArray[Any]) -> NDArray[Any]:
    return np.where(course.missing("update_l2"), 0.0, updates)


def seen(folder: Path, epoch: int) -> Seen:
    """Read a run of the zoo."""
    history = read_history(folder)
    course = history.course
    outcome = json.loads((folder / "outcome.json").read_text())
    shape = len(course), len(course.layers)

    def field(name: str) -> NDArray[Any]:
        values = course.field(name)
        return np.full(shape, np.nan) if values is None else values.astype(np.float64)

    def scalar(name: str) -> NDArray[Any]:
        values = course.scalar(name)
        return np.full(shape[0], np.nan) if values is None else values

    given = history.fact("input")
    mean = float(given.get("mean") or 0.0) if isinstance(given, dict) else 0.0
    return Seen(
        course.layers, scalar("loss"), scalar("val_loss"), np.array(outcome["accuracies"]),
        field("grad_l2"), field("grad_mean_abs"), field("grad_max_abs"), field("grad_zeros"),
        field("grad_nonfinite"),
        field("weight_l2"), _still(course, field("update_l2")), field("act_dead"),
        field("act_saturated"),
        epoch, mean,
    )  # fmt: skip
