"""Gradients that are exactly zero: behind which layers nothing is active, or that none arrives."""

from __future__ import annotations

from typing import Any

import numpy as np

from .degrees import ALMOST, MOST, NEARLY
from .layers import place
from .sight import Sight

_LEAST_HALF = 2.0**-24  # the smallest number above zero in half precision
_FEW = 64  # times that: an entry of this size is known to a hundredth at best
POINTS = 10  # points over which a gradient must have been exactly zero


def starved(seen: Sight) -> list[int]:
    """Return the layers, nearest first, before one whose bias gets a gradient and its weights none.

    The gradient of weights is that of the outputs times the inputs, and the bias gets that of the
    outputs alone. So all inputs of that layer are exactly zero: nothing before it is active.
    """
    gradients, layers = seen.history.course.field("grad_l2"), seen.history.info.layers
    if gradients is None or len(gradients) < POINTS:
        return []
    late = gradients[-POINTS:]
    silent = _are_silent(late)
    biases = {
        layer.name.rpartition(".")[0]: i
        for i, layer in enumerate(layers)
        if layer.role == "bias" and (late[:, i] > 0).all()
    }
    hit = [
        i
        for i, layer in enumerate(layers)
        if silent[i]
        and layer.trainable
        and len(layer.shape) > 1
        and "norm" not in layer.kind.lower()
        and layer.name.rpartition(".")[0] in biases
        and layer.role != "bias"
    ]
    if not hit:
        return []
    first = min(hit, key=lambda i: place(layers, i))
    before = [
        i
        for i in range(len(layers))
        if silent[i]
        and layers[i].trainable
        and len(layers[i].shape) > 1
        and place(layers, i) < place(layers, first)
    ]
    return sorted(before, key=lambda i: place(layers, i), reverse=True)


def is_out_of_reach(seen: Sight) -> bool:
    """Did the first matrices never get any gradient, from before the first update, but others did?

    Whatever stands between was so before a step was made: no step did it.
    """
    gradients = seen.layers.field("grad_l2")
    if gradients is None or len(gradients) < POINTS or not seen.layers.trained.any():
        return False
    silent = (gradients[:, seen.layers.trained] == 0).all(axis=0)
    return bool(silent[0] and not silent.all())


def is_barred(seen: Sight, columns: list[int]) -> bool:
    """Is every matrix before these silent as well? Else what is dead is a branch that may rest."""
    gradients, layers = seen.history.course.field("grad_l2"), seen.history.info.layers
    if gradients is None or not columns:
        return False
    nearest = max(place(layers, i) for i in columns)
    matrices = [i for i, layer in enumerate(layers) if layer.trainable and len(layer.shape) > 1]
    before = [i for i in matrices if place(layers, i) < nearest]
    return bool(_are_silent(np.nan_to_num(gradients[-POINTS:][:, before])).all())


def _are_silent(gradients: Any) -> Any:
    """Tell which columns are exactly zero at all points, or at all but a few."""
    return (gradients == 0).mean(axis=0) >= MOST


def is_silent(seen: Sight) -> bool:
    """Are gradients rounded to zero, or to a few of the smallest numbers, in the last bias too?

    A bias of the outputs gets the mean slope of the loss, which is never exactly zero unless it is
    rounded to it. Half precision does so below a bound that single entries pass now and then.
    """
    return _are_all_zero(seen) or _are_next_to_all_zero(seen) or are_rounded_off(seen)


def _are_all_zero(seen: Sight) -> bool:
    gradients: Any = seen.history.course.field("grad_l2")
    if gradients is None or len(gradients) < POINTS:
        return False
    known = gradients[:, ~np.isnan(gradients).all(axis=0)]
    return bool(known.size and not np.nan_to_num(known, nan=1.0).any())


def _are_next_to_all_zero(seen: Sight) -> bool:
    zeros: Any = seen.history.course.field("grad_zeros")
    layers = seen.history.info.layers
    biases = [i for i, layer in enumerate(layers) if layer.role == "bias" and layer.trainable]
    if zeros is None or len(zeros) < POINTS or not biases:
        return False
    counts = np.array([layer.count for layer in layers], float)
    known = ~np.isnan(zeros).all(axis=0) & ~np.isinf(zeros).any(axis=0) & (counts > 0)
    last = max(biases, key=lambda i: place(layers, i))
    if not known[last]:
        return False
    zeros = zeros.astype(np.float64)
    found = np.nanmean(zeros[:, known], axis=0)
    whole, end = float(found.sum() / counts[known].sum()), float(np.nanmean(zeros[:, last]))
    return whole > ALMOST and end / float(counts[last]) > NEARLY


def are_rounded_off(seen: Sight) -> bool:
    """Were the largest entries of first gradients small multiples of half precision's least number?

    Of numbers in single precision next to none is such a multiple. What is left of a gradient that
    is a few of them large is mostly rounding.
    """
    largest: Any = seen.history.course.field("grad_max_abs")
    if largest is None or len(largest) < POINTS:
        return False
    first = largest[:POINTS]
    found = first[np.isfinite(first) & (first > 0)].astype(np.float64) / _LEAST_HALF
    if not len(found) or float(np.median(found)) > _FEW:
        return False
    return bool((np.abs(found - np.round(found)) < 1e-3).all())
