"""Ratios of layers: gradient to weight and update to weight, in network order.

Raw norms grow with the size of a layer and say nothing between layers (training.md 2). Here a
gradient is measured by its layer's weights: r = rms(g)/rms(w), u = |update|/|w|. Only matrices
count: biases start at zero, gains at one, and a batch touches a few rows of an embedding.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...history.history import History
from ...records.runs import Layer
from .degrees import FEW, LONG, MOST

SWAMPED = 0.5  # update by weight above which the weights after a step say little of those before

SOUND_UPDATE = 7e-3  # of the weights: what a first update of a sound run changes


class Layers:
    """What the layers of a history show. Columns of arrays are `matrices`, input first."""

    def __init__(self, history: History) -> None:
        """Sort the layers by depth, those at one depth by name."""
        self.history, self.course = history, history.course
        order = [i for i, each in enumerate(self.course.layers) if is_matrix(each)]
        order.sort(key=lambda i: place(self.course.layers, i))
        self.matrices = order

    def named(self, columns: Any) -> list[str]:
        """Name matrices by their columns."""
        return [self.course.layers[self.matrices[i]].name for i in columns]

    @property
    def last(self) -> list[str]:
        """Name the matrix that makes the outputs, where there is one."""
        return self.named([-1]) if self.matrices else []

    def of(self, column: int) -> Layer:
        """Return the layer of a column."""
        return self.course.layers[self.matrices[column]]

    def field(self, name: str) -> NDArray[Any] | None:
        """Return a field of the matrices over the points."""
        found = self.course.field(name)
        return None if found is None or not self.matrices else found[:, self.matrices]

    @cached_property
    def gradient(self) -> NDArray[Any] | None:
        """Gradient by weight over the points, NaN if one is not known."""
        return self._by_weight("grad_l2")

    @cached_property
    def update(self) -> NDArray[Any] | None:
        """Update by weight over the points."""
        return self._by_weight("update_l2")

    @cached_property
    def weights(self) -> NDArray[Any] | None:
        """The norm of each matrix before the step of the point, as far as it can be known.

        The monitor records weights after the step: those before it are of the point before. At
        the first point they are what is left of them, and where the step was as large as the
        weights, what kaiming would have made them.
        """
        after, updates = self.field("weight_l2"), self.field("update_l2")
        if after is None or not len(after):
            return after
        first = np.where(np.isfinite(after[:1]), after[:1].astype(np.float64), np.nan)
        if updates is not None:
            usual = np.array([_kaiming(self.of(i)) for i in range(len(self.matrices))])
            swamped = (updates[:1] > SWAMPED * after[:1]) & np.isfinite(usual)
            first = np.where(swamped | np.isnan(first), usual, first)
        return np.concatenate([first, after[:-1]])

    def _by_weight(self, name: str) -> NDArray[Any] | None:
        above, weights = self.field(name), self.weights
        if above is None or weights is None:
            return None
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(weights > 0, above.astype(np.float64) / weights, np.nan)

    @cached_property
    def usual_update(self) -> float:
        """The update by weight of the middle layer at the middle point; NaN where none is known."""
        typical = self.typical_update
        known = np.zeros(0) if typical is None else typical[np.isfinite(typical)]
        return float(np.median(known)) if len(known) else float("nan")

    @cached_property
    def typical_update(self) -> NDArray[Any] | None:
        """The median update ratio of the trained matrices at each point; NaN if none."""
        return middle(self.update, self.trained)

    @cached_property
    def path(self) -> float:
        """The way that the weights went so far, step by step, in sizes of themselves.

        It is a clock that does not depend on the learning rate: a run that crawls is young.
        """
        typical = self.typical_update
        return 0.0 if typical is None else float(typical[np.isfinite(typical)].sum())

    @cached_property
    def typical_gradient(self) -> NDArray[Any] | None:
        """The median gradient ratio of the trained matrices at each point."""
        return middle(self.gradient, self.trained)

    @cached_property
    def trained(self) -> NDArray[np.bool_]:
        """Which matrices are meant to be trained."""
        chosen = [self.of(i) for i in range(len(self.matrices))]
        return np.array([each.trainable and each.optimised is not False for each in chosen], bool)

    def recent(self, values: NDArray[Any] | None, points: int = LONG) -> NDArray[Any] | None:
        """Return the median of the latest points for each column, NaN if nothing is known."""
        if values is None or not len(values):
            return None
        return median(values[-points:], axis=0)

    @cached_property
    def dead(self) -> NDArray[Any] | None:
        """The share of dead units of every layer (not only matrices) over the points."""
        return self.course.field("act_dead")


def are_clipped(layers: Layers) -> bool:
    """Is the largest entry of the first gradient one number in most layers? It is a bound, then."""
    largest = layers.field("grad_max_abs")
    if largest is None or not len(largest) or int(layers.trained.sum()) < FEW:
        return False
    found = largest[0, layers.trained]
    found = found[np.isfinite(found) & (found > 0)]
    if len(found) < FEW:
        return False
    return bool((np.abs(found - np.median(found)) <= 1e-4 * np.median(found)).mean() > MOST)


def initial_scales(layers: Layers) -> NDArray[Any]:
    """Return the norm of each matrix before the first step by that of kaiming; none if unknown."""
    weights = layers.weights
    if weights is None or not len(weights):
        return np.zeros(0)
    usual = np.array([_kaiming(layers.of(i)) for i in range(len(layers.matrices))])
    scales = np.asarray(weights[0] / usual)
    return np.zeros(0) if np.isnan(scales).all() else scales


def _kaiming(layer: Layer) -> float:
    """Return the norm that kaiming gives a matrix, sqrt(2/fan_in) a weight (He et al. 2015)."""
    if not layer.count or len(layer.shape) < 2:
        return float("nan")
    return float((2 * units(layer)) ** 0.5)


def units(layer: Layer) -> int:
    """Count the units of a matrix: a kernel of Keras and JAX has them last, PyTorch's weight first.

    0 if the shape is not known.
    """
    return layer.shape[-1 if layer.role == "kernel" else 0] if layer.shape else 0


def inputs(layer: Layer) -> int:
    """Count what each unit of a matrix reads at one place; 0 if the shape is not known."""
    if len(layer.shape) < 2:
        return 0
    return layer.shape[-2 if layer.role == "kernel" else 1]


def is_matrix(layer: Layer) -> bool:
    """Is it a matrix of weights that a gradient reaches as a whole?"""
    if "embedding" in layer.kind.lower() or "norm" in layer.kind.lower():
        return False
    if layer.role in ("bias", "running"):
        return False
    if layer.shape:
        return len(layer.shape) > 1
    last = layer.name.rpartition(".")[2].lower()
    return "bias" not in last and "norm" not in layer.name.lower()


def models_activations(history: History) -> list[str]:
    """Return the non-linearities of the model, also of those that belong to no layer."""
    named: Any = history.fact("activations")
    return [str(each) for each in named] if isinstance(named, (list, tuple)) else []


def place(layers: tuple[Layer, ...], i: int) -> tuple[int, str]:
    """Say where along the network a layer stands; recorded order where depth is not known."""
    depth = layers[i].depth
    return (i, "") if depth is None else (depth, layers[i].name)


def median(values: NDArray[Any], axis: int) -> NDArray[Any]:
    """Return the median over an axis, past what is not a number; NaN if all are not."""
    if not np.isnan(values).any():
        with np.errstate(invalid="ignore"):  # between infinities of both signs there is none
            return np.asarray(np.median(values, axis=axis))
    ordered = np.sort(values, axis=axis)  # NaN last
    count = (~np.isnan(values)).sum(axis=axis)
    low = np.expand_dims(np.maximum((count - 1) // 2, 0), axis)
    high = np.expand_dims(np.minimum(count // 2, values.shape[axis] - 1), axis)
    lower, upper = (np.take_along_axis(ordered, each, axis) for each in (low, high))
    # Halves before the sum, lest it overflow; of two alike no half, lest it underflow.
    with np.errstate(invalid="ignore"):
        both = np.where(lower == upper, lower, lower / 2 + upper / 2)
    return np.where(count > 0, np.squeeze(both, axis), np.nan)


def middle(values: NDArray[Any] | None, chosen: NDArray[np.bool_]) -> NDArray[Any] | None:
    """Return the median over chosen columns at each point; None if none is chosen."""
    if values is None or not chosen.any():
        return None
    return median(values[:, chosen], axis=1)
