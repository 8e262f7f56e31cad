"""The series that the gradient analysis reads, whatever they came from: a run or plain norms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..history.history import History

Floats = Any  # NDArray[np.float64]; the alias keeps the records below readable


class LayerSignal(NamedTuple):
    """One layer's series over the frames in which it had a gradient, oldest first.

    Series other than the norms are None where they were not recorded; all have one length.
    """

    name: str
    steps: NDArray[np.int64]
    norms: Floats
    count: int | None = None  # parameters
    depth: int | None = None  # place along the network, from 0 at the input
    kind: str = ""
    trainable: bool = True
    means: Floats | None = None
    stds: Floats | None = None
    max_abs: Floats | None = None
    zeros: Floats | None = None  # share of exact zeros
    nonfinite: Floats | None = None  # how many values were NaN or infinite
    weight_norms: Floats | None = None
    update_norms: Floats | None = None
    cosines: Floats | None = None  # with the gradient one step before
    dead_units: Floats | None = None  # share of units that never were active


class Signals(NamedTuple):
    """What is known of a run: every layer in network order, and the scalars of its steps."""

    layers: tuple[LayerSignal, ...]
    steps: NDArray[np.int64]
    loss: Floats | None = None
    validation_steps: NDArray[np.int64] | None = None
    validation_loss: Floats | None = None
    lr: Floats | None = None
    thinned: bool = False  # points of a long run that stand for several frames each


def signals_of_run(history: History, *, recent: bool = False) -> Signals:
    """Take the series out of a run: its whole course, or its latest frames, one point each."""
    from ..runs import VALIDATION_LOSSES

    course = history.recent if recent else history.course
    names = {"weight_norms": "weight_l2", "update_norms": "update_l2", "cosines": "grad_cosine",
             "means": "grad_mean", "max_abs": "grad_max_abs", "zeros": "grad_zeros",
             "nonfinite": "grad_nonfinite", "dead_units": "act_dead"}  # fmt: skip
    columns = {key: course.field(field) for key, field in names.items()}
    norms, absent = course.field("grad_l2"), course.missing("grad_l2")
    layers = []
    for i, layer in enumerate(course.layers):
        there = ~absent[:, i]
        series = {
            key: None if column is None else _kept(column[there, i])
            for key, column in columns.items()
        }
        if series["zeros"] is not None and layer.count:
            series["zeros"] = series["zeros"] / layer.count
        layers.append(
            LayerSignal(
                layer.name,
                course.steps[there],
                np.array([]) if norms is None else norms[there, i].astype(np.float64),
                layer.count or None,
                layer.depth,
                layer.kind,
                layer.trainable,
                **series,
            )
        )
    held = course.first_scalar(VALIDATION_LOSSES)
    there = None if held is None else np.isfinite(held[1])
    return Signals(
        tuple(layers),
        course.steps,
        course.scalar("loss"),
        None if there is None else course.steps[there],
        None if held is None else held[1][there],
        course.scalar("lr"),
        not course.is_whole,
    )


def _kept(values: Any) -> Floats | None:
    """Give the series as 64-bit numbers; None where nothing in it was recorded."""
    from ..history.frame import is_missing

    return None if is_missing(values).all() else values.astype(np.float64)
