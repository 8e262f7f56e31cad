"""Edits of structure: vocabulary, layers, units and heads."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ..model import Array, Model, as_float, like
from ..pairs import Edit, Edited, Expected, Wanted
from .order import Place


def resize_vocabulary(names: Sequence[str], rows: int, seed: int) -> Edit:
    """Cut the rows of embeddings off, or add rows drawn around their mean."""

    def edit(model: Model) -> Edited:
        rng, tensors = np.random.default_rng(seed), dict(model.tensors)
        before = len(tensors[names[0]])
        for name in names:
            tensors[name] = _resized(tensors[name], rows, rng)
        config = model.config
        if config and "vocab_size" in config:
            config = {**config, "vocab_size": rows}
        expected = Expected(
            "vocabulary_resized",
            frozenset(names),
            {"from": before, "to": rows},
            vague=("reshaped",),
        )
        beside = Expected("config_changed", None, optional=True)
        result = model._replace(tensors=tensors, config=config)
        return Edited(result, (expected, beside) if config else (expected,))

    return edit


def _resized(array: Array, rows: int, rng: np.random.Generator) -> Array:
    if rows <= len(array):
        return np.ascontiguousarray(array[:rows])
    values = as_float(array)
    spread = values.std(0) * rng.standard_normal((rows - len(array), *array.shape[1:]))
    return np.concatenate([array, like(values.mean(0) + spread * 0.5, array)])


# What an answer may say of layers that came, went or moved: the exact kind, or less.
_COARSE = {
    "layers_removed": ("tensors_removed",),
    "layers_duplicated": ("layers_added", "tensors_added"),
    "layers_swapped": ("layers_reordered",),
    "layers_reordered": (),
    "layers_added": ("tensors_added",),
}


def relayer(stack: str, order: Sequence[int], kind: str, *, depth: str | None = None) -> Edit:
    """Build a stack of layers from those of the left: `order` lists which, first to last.

    `stack` is what stands before the number of a layer, as `encoder.layer.`; `depth` is the key
    of the config that counts layers.
    """

    def edit(model: Model) -> Edited:
        pattern = re.compile(rf"^{re.escape(stack)}(\d+)\.")
        tensors = {n: array for n, array in model.tensors.items() if not pattern.match(n)}
        for index, source in enumerate(order):
            prefix = f"{stack}{source}."
            for name, array in model.tensors.items():
                if name.startswith(prefix):
                    tensors[f"{stack}{index}.{name.removeprefix(prefix)}"] = array
        also = ("layers_swapped",) if _is_swap(order) else ()
        expected = [Expected(kind, None, also=also, vague=_COARSE[kind])]
        config = model.config
        if config and depth and config.get(depth) != len(order):
            config = {**config, depth: len(order)}
            expected.append(Expected("config_changed", None, optional=True))
        return Edited(model._replace(tensors=tensors, config=config), tuple(expected))

    return edit


def _is_swap(order: Sequence[int]) -> bool:
    moved = [index for index, source in enumerate(order) if index != source]
    return len(moved) == 2 and sorted(order) == list(range(len(order)))


def prune_units(*places: Place, keep: float, what: str, unit: int = 1) -> Edit:
    """Remove units along every place: those of the smallest norm; a unit is `unit` rows (heads)."""

    def edit(model: Model) -> Edited:
        tensors = dict(model.tensors)
        name, axis = places[0]
        values = np.moveaxis(as_float(tensors[name]), axis, 0)
        before = len(values) // unit
        norms = np.linalg.norm(values.reshape(before, -1), axis=1)
        after = max(1, round(keep * before))
        units = np.sort(norms.argsort(kind="stable")[before - after :])
        rows = (units[:, None] * unit + np.arange(unit)).ravel()
        for name, axis in places:
            tensors[name] = np.ascontiguousarray(tensors[name].take(rows, axis))
        expected = Expected(
            "pruned_structurally",
            frozenset(name for name, _ in places),
            {"what": _words(what), "from": _of(before, unit), "to": _of(after, unit)},
            vague=("reshaped",),
        )
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit


def _of(number: int, size: int) -> Wanted:
    """Heads may be counted by their rows: not every model says how many are one head."""
    return number if size == 1 else frozenset({str(number), str(number * size)})


def _words(what: str) -> frozenset[str]:
    """Units, channels, neurons and filters are one thing; heads are another."""
    return frozenset({"heads"} if what == "heads" else {"units", "channels", "neurons", "filters"})


def replace_head(weight: str, bias: str | None, classes: int, seed: int) -> Edit:
    """Put a fresh head of so many classes in the place of the one that was there."""

    def edit(model: Model) -> Edited:
        rng, tensors = np.random.default_rng(seed), dict(model.tensors)
        array = tensors[weight]
        drawn = rng.standard_normal((classes, *array.shape[1:])) * 0.02
        tensors[weight] = like(drawn, array)
        names = {weight}
        if bias:
            tensors[bias] = like(np.zeros(classes), tensors[bias])
            names.add(bias)
        same = classes == len(array)
        also = ("reinitialised",) if same else ()
        coarse = () if same else ("reshaped",)
        maybe = frozenset({bias}) if bias else frozenset()
        expected = Expected(
            "head_replaced", frozenset({weight}), maybe=maybe, also=also, vague=coarse
        )
        zeroed = Expected("zeroed", frozenset(), maybe=maybe, optional=True)
        result = model._replace(tensors=tensors)
        return Edited(result, (expected, zeroed) if bias and same else (expected,))

    return edit
