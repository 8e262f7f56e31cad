"""Edits that fold a norm into the weights beside it: batch norm, layer norm, weight norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..model import Model, as_float, like
from ..pairs import Edit, Edited, Expected
from .values import chosen


def fold_batch_norm(conv: str, norm: str, *, eps: float = 1e-5) -> Edit:
    """Fold a batch norm into the layer before it, and remove the norm."""

    def edit(model: Model) -> Edited:
        tensors = dict(model.tensors)
        part = {
            key: as_float(tensors.pop(f"{norm}.{key}"))
            for key in ("weight", "bias", "running_mean", "running_var")
        }
        tensors.pop(f"{norm}.num_batches_tracked", None)
        gain = part["weight"] / np.sqrt(part["running_var"] + eps)
        weight = tensors[f"{conv}.weight"]
        shape = (-1, *[1] * (weight.ndim - 1))
        bias = tensors.get(f"{conv}.bias")
        start = as_float(bias) if bias is not None else np.zeros(len(weight))
        tensors[f"{conv}.weight"] = like(as_float(weight) * gain.reshape(shape), weight)
        shifted = part["bias"] + (start - part["running_mean"]) * gain
        tensors[f"{conv}.bias"] = like(shifted, weight)
        removed = frozenset(name for name in model.tensors if name not in tensors)
        names = frozenset({f"{conv}.weight"})
        maybe = removed | {f"{conv}.bias"}
        expected = Expected(
            "norms_folded", names, maybe=maybe, vague=("tensors_removed", "tensors_added")
        )
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit


def fold_norm(norm: str, following: Sequence[str], *, remove: bool = False) -> Edit:
    """Fold the gain of a layer norm into the matrices that read it; the gain becomes one."""

    def edit(model: Model) -> Edited:
        tensors = dict(model.tensors)
        gain = as_float(tensors[norm])
        for name in following:
            tensors[name] = like(as_float(tensors[name]) * gain, tensors[name])
        if remove:
            del tensors[norm]
        else:
            tensors[norm] = np.ones_like(tensors[norm])
        expected = Expected(
            "norms_folded", frozenset(following), maybe=frozenset({norm}),
            vague=("rescaled_channels", "tensors_removed"),
        )  # fmt: skip
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit


def fold_weight_norm(where: str) -> Edit:
    """Replace `weight_g` and `weight_v` by the weight that they stand for."""

    def edit(model: Model) -> Edited:
        tensors = dict(model.tensors)
        names, maybe = set(), set()
        for name in chosen(model, rf"({where}).*weight_v$"):
            length, direction = name.removesuffix("_v") + "_g", tensors.pop(name)
            values = as_float(direction)
            norms = np.sqrt((values**2).reshape(len(values), -1).sum(1))
            gain = as_float(tensors.pop(length)).ravel() / norms
            weight = name.removesuffix("_v")
            shape = (-1, *[1] * (values.ndim - 1))
            tensors[weight] = like(values * gain.reshape(shape), direction)
            names.add(weight)
            maybe |= {name, length}
        expected = Expected(
            "weight_norm_folded", frozenset(), maybe=frozenset(names | maybe),
            vague=("tensors_added", "tensors_removed"),
        )  # fmt: skip
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit


def split_weight_norm(model: Model, where: str, seed: int = 0) -> Model:
    """Return the model with weights stored as weight norm stores them: a left side to fold.

    Training stretches the direction of each row, so its length says nothing.
    """
    tensors, rng = dict(model.tensors), np.random.default_rng(seed)
    for name in chosen(model, where, matrices=True):
        array = tensors.pop(name)
        values = as_float(array)
        norms = np.sqrt((values**2).reshape(len(values), -1).sum(1))
        shape = (-1, *[1] * (values.ndim - 1))
        stretched = values * np.exp(0.5 * rng.standard_normal(len(values))).reshape(shape)
        tensors[f"{name}_g"] = like(norms.reshape(shape), array)
        tensors[f"{name}_v"] = like(stretched, array)
    return model._replace(tensors=tensors)
