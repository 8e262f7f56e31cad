"""Edits of order: transposed, exchanged, permuted, and the rotations and rescalings akin to them.

A place is a tensor and the axis along which a unit lies: `("fc1.weight", 0)`. Units of two layers
that follow each other lie along axis 0 of the first and axis 1 of the second.
"""

from __future__ import annotations

import numpy as np

from ..model import Array, Model, as_float, like
from ..pairs import Edit, Edited, Expected
from .values import chosen

Place = tuple[str, int]


def transpose(where: str) -> Edit:
    """Transpose matrices."""

    def edit(model: Model) -> Edited:
        names = [name for name in chosen(model, where) if model.tensors[name].ndim == 2]
        tensors = dict(model.tensors)
        for name in names:
            tensors[name] = np.ascontiguousarray(tensors[name].T)
        return Edited(model._replace(tensors=tensors), (Expected("transposed", frozenset(names)),))

    return edit


def exchange(*pairs: tuple[str, str]) -> Edit:
    """Exchange tensors by pairs of names."""

    def edit(model: Model) -> Edited:
        tensors = dict(model.tensors)
        for one, other in pairs:
            tensors[one], tensors[other] = tensors[other], tensors[one]
        names = frozenset(name for pair in pairs for name in pair)
        return Edited(model._replace(tensors=tensors), (Expected("exchanged", names),))

    return edit


def permute(*groups: list[Place], seed: int, unit: int = 1) -> Edit:
    """Reorder the units of each group of places the same way; a unit is `unit` rows (heads)."""

    def edit(model: Model) -> Edited:
        rng, tensors = np.random.default_rng(seed), dict(model.tensors)
        for places in groups:
            name, axis = places[0]
            order = _order(tensors[name].shape[axis], unit, rng)
            for name, axis in places:
                tensors[name] = np.ascontiguousarray(tensors[name].take(order, axis))
        names = frozenset(name for places in groups for name, _ in places)
        return Edited(model._replace(tensors=tensors), (Expected("permuted", names),))

    return edit


def permute_inconsistently(*places: Place, seed: int, unit: int = 1) -> Edit:
    """Reorder the units of each place in an order of its own: the function is lost."""

    def edit(model: Model) -> Edited:
        rng, tensors = np.random.default_rng(seed), dict(model.tensors)
        for name, axis in places:
            order = _order(tensors[name].shape[axis], unit, rng)
            tensors[name] = np.ascontiguousarray(tensors[name].take(order, axis))
        names = frozenset(name for name, _ in places)
        return Edited(
            model._replace(tensors=tensors), (Expected("permuted_inconsistently", names),)
        )

    return edit


def _order(count: int, unit: int, rng: np.random.Generator) -> Array:
    starts = rng.permutation(count // unit) * unit
    return (starts[:, None] + np.arange(unit)).ravel()


def rotate(*places: Place, seed: int) -> Edit:
    """Multiply by one random orthogonal matrix along the axis of each place (QuaRot)."""

    def edit(model: Model) -> Edited:
        tensors = dict(model.tensors)
        name, axis = places[0]
        size = tensors[name].shape[axis]
        turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]
        for name, axis in places:
            values = np.moveaxis(as_float(tensors[name]), axis, -1) @ turn
            tensors[name] = like(np.moveaxis(values, -1, axis), tensors[name])
        names = frozenset(name for name, _ in places)
        return Edited(model._replace(tensors=tensors), (Expected("rotated", names),))

    return edit


def rescale_channels(*places: Place, seed: int, spread: float = 0.5) -> Edit:
    """Divide the channels of the first place by factors, and multiply those of the others.

    With a norm as the first place this is what SmoothQuant does: the function stays the same.
    """

    def edit(model: Model) -> Edited:
        tensors = dict(model.tensors)
        size = tensors[places[0][0]].shape[places[0][1]]
        factors = np.exp(spread * np.random.default_rng(seed).standard_normal(size))
        for index, (name, axis) in enumerate(places):
            by = factors if index else 1 / factors
            shape = [size if at == axis else 1 for at in range(tensors[name].ndim)]
            tensors[name] = like(as_float(tensors[name]) * by.reshape(shape), tensors[name])
        names = frozenset(name for name, _ in places)
        expected = Expected("rescaled_channels", names)
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit
