"""Edits of the part `fresh` alone: adapters, formats, masks, folds, and how its pairs are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from .edits.low_rank import merged
from .edits.values import about, changed, chosen, matrix, prune
from .model import DTYPES, Array, Model, as_float, like, rounded, stored
from .pairs import Built, Edit, Edited, Expected, Pair, Wanted, edited


def of(
    name: str, base: str, kind: str, *edits: Edit, dtype: str = "", start: Sequence[Edit] = ()
) -> Pair:
    """Return a pair: the base, stored in a dtype and prepared by `start`, then the edits."""

    def build(model: Model) -> Built:
        left = stored(model, dtype) if dtype else model
        for edit in start:
            left = edit(left).model
        return edited(left, *edits)

    return Pair(f"f-{name}", "fresh", base, kind, build)


def only(pattern: str) -> Callable[[str], bool]:
    """Train the parameters whose name matches."""
    return lambda name: bool(re.search(pattern, name))


def adapter(where: str, rank: int, seed: int, *, relative: float) -> Edit:
    """Merge factors of normal numbers, their sizes log-normal by direction, as adapters have."""

    def edit(model: Model) -> Edited:
        rng, factors = np.random.default_rng(seed), {}
        for name in chosen(model, where, matrices=True):
            values = matrix(model.tensors[name])
            up = rng.standard_normal((len(values), rank)) * np.exp(0.4 * rng.standard_normal(rank))
            down = rng.standard_normal((rank, values.shape[1]))
            size = relative * np.linalg.norm(values) / np.linalg.norm(up @ down)
            factors[name] = (up * size, down)
        return merged(model, factors, rank)

    return edit


def fp8_rows(where: str) -> Edit:
    """Put matrices on the grid of FP8 E4M3 with a scale for each row, stored as they were."""

    def onto(_: str, values: Array) -> Array:
        rows = values.reshape(len(values), -1)
        step = np.maximum(np.abs(rows).max(1, keepdims=True), 1e-30) / 448.0
        return as_float(rounded(rows / step, "F8_E4M3")) * step

    def edit(model: Model) -> Edited:
        names = chosen(model, where, matrices=True)
        numbers: dict[str, Wanted] = {
            "bits": about(8, 0.01), "group": "row", "scheme": frozenset({"fp8", "e4m3"}),
        }  # fmt: skip
        expected = Expected("quantised", frozenset(names), numbers)
        return Edited(changed(model, names, onto), (expected,))

    return edit


def fp8_natively(where: str) -> Edit:
    """Store matrices as F8_E4M3 with one F32 scale beside each, as inference servers do."""

    def edit(model: Model) -> Edited:
        names, tensors = chosen(model, where, matrices=True), dict(model.tensors)
        for name in names:
            values = as_float(tensors[name])
            step = np.float32(np.abs(values).max() / 448.0)
            tensors[name] = rounded(values / step, "F8_E4M3")
            tensors[f"{name}_scale"] = np.array([step], np.float32)
        return Edited(model._replace(tensors=tensors), _native(names, 8, "tensor", ["_scale"]))

    return edit


def uint8_natively(where: str) -> Edit:
    """Store matrices as U8 with a scale and a zero point for each row."""

    def edit(model: Model) -> Edited:
        names, tensors = chosen(model, where, matrices=True), dict(model.tensors)
        for name in names:
            values = matrix(tensors[name])
            least, most = values.min(1, keepdims=True), values.max(1, keepdims=True)
            step = ((most - least) / 255).astype(np.float32)
            zero = np.rint(-least / step)
            levels = np.clip(np.rint(values / step) + zero, 0, 255).astype(np.uint8)
            tensors[name] = levels.reshape(tensors[name].shape)
            tensors[f"{name}_scale"] = step
            tensors[f"{name}_zero_point"] = zero.astype(np.uint8)
        labels = _native(names, 8, "row", ["_scale", "_zero_point"])
        return Edited(model._replace(tensors=tensors), labels)

    return edit


def _native(names: list[str], bits: int, group: str, beside: list[str]) -> tuple[Expected, ...]:
    more = frozenset(name + ending for name in names for ending in beside)
    numbers: dict[str, Wanted] = {"bits": bits, "group": group}
    expected = Expected("quantised", frozenset(names), numbers, maybe=more, vague=("cast",))
    return expected, Expected("tensors_added", frozenset(), maybe=more, optional=True)


def fp8_to_floats(where: str) -> Edit:
    """Multiply F8 matrices by the scales beside them, and store BF16 alone."""

    def edit(model: Model) -> Edited:
        tensors = dict(model.tensors)
        names = [name for name in model.tensors if re.search(where, name)]
        matrices = [name for name in names if not name.endswith("_scale")]
        for name in matrices:
            scale = as_float(tensors.pop(f"{name}_scale"))
            tensors[name] = rounded(as_float(tensors[name]) * scale, "BF16")
        scales = frozenset(f"{name}_scale" for name in matrices)
        expected = Expected("dequantised", frozenset(matrices), maybe=scales, vague=("cast",))
        removed = Expected("tensors_removed", frozenset(), maybe=scales, optional=True)
        return Edited(model._replace(tensors=tensors), (expected, removed))

    return edit


def by_rows(sparsity: float) -> Callable[[np.random.Generator, Array], Array]:
    """Keep the largest weights of each row, as many in every row."""

    def keep(_: np.random.Generator, values: Array) -> Array:
        size = np.abs(values.reshape(len(values), -1))
        edge = np.quantile(size, sparsity, axis=1, keepdims=True)
        return (size > edge).reshape(values.shape)

    return keep


def few_of_many(few: int, many: int) -> Callable[[np.random.Generator, Array], Array]:
    """Keep the largest `few` of every `many` weights that stand side by side."""

    def keep(_: np.random.Generator, values: Array) -> Array:
        size = np.abs(values).reshape(-1, many)
        order = size.argsort(1, kind="stable").argsort(1, kind="stable")
        return (order >= many - few).reshape(values.shape)

    return keep


def filters(where: str, sparsity: float) -> Edit:
    """Zero the smallest filters of convolutions; they are rows by another name."""

    def edit(model: Model) -> Edited:
        result, (label,) = prune(where, sparsity, "rows")(model)
        names = frozenset({"rows", "filters", "channels"})
        return Edited(result, (label._replace(numbers={**label.numbers, "pattern": names}),))

    return edit


def fold_into(conv: str, norm: Sequence[str], bias: str, *, eps: float, axis: int = 0) -> Edit:
    """Fold a batch norm (gain, shift, mean, variance) into the layer before it; add its bias."""

    def edit(model: Model) -> Edited:
        tensors = dict(model.tensors)
        gain, shift, mean, variance = (as_float(tensors.pop(name)) for name in norm)
        factor = gain / np.sqrt(variance + eps)
        array = tensors[conv]
        shape = [-1 if at == axis % array.ndim else 1 for at in range(array.ndim)]
        tensors[conv] = like(as_float(array) * factor.reshape(shape), array)
        tensors[bias] = like(shift - mean * factor, array)
        expected = Expected(
            "norms_folded", frozenset({conv}), maybe=frozenset({*norm, bias}),
            vague=("tensors_removed", "tensors_added"),
        )  # fmt: skip
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit


def append_head(name: str, rows: int, width: int, seed: int, dtype: str = "F32") -> Edit:
    """Add a small head beside the others: a score, as reward models have it."""

    def edit(model: Model) -> Edited:
        drawn = np.random.default_rng(seed).standard_normal((rows, width)) * 0.02
        tensors = {**model.tensors, name: drawn.astype(np.float32).astype(DTYPES[dtype])}
        expected = Expected("tensors_added", frozenset({name}))
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit
