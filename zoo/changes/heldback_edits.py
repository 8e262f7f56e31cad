"""Edits of the held-back part alone: real training, grids and masks of its own, other layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .edits.low_rank import merged
from .edits.values import about, changed, chosen
from .heldback_bases import weights_of
from .heldback_training import Recipe, fine_tuned, low_rank_trained
from .model import Array, Model, as_float, is_float, like, stored
from .pairs import Built, Edit, Edited, Expected, Pair, Wanted, edited

BUFFERS = ("running_mean", "running_var", "num_batches_tracked", "moving_mean", "moving_variance")
_STILL = 1e-6  # a tensor that moved by less, relative to its norm, need not be named


def of(
    name: str, base: str, kind: str, *edits: Edit, dtype: str = "", start: Sequence[Edit] = ()
) -> Pair:
    """Return a pair: the base, stored in a dtype and prepared by `start`, then the edits."""

    def build(model: Model) -> Built:
        left = model._replace(tensors=weights_of(model.tensors))
        left = stored(left, dtype) if dtype else left
        for edit in start:
            left = edit(left).model
        return edited(left, *edits)

    return Pair(f"h-{name}", "second", base, kind, build)


def relabel(
    edit: Edit,
    *,
    also: tuple[str, ...] = (),
    vague: tuple[str, ...] = (),
    optional: bool | None = None,
    numbers: dict[str, Wanted] | None = None,
    kind: str = "",
) -> Edit:
    """Return the edit with a label that accepts more, or names another kind."""

    def edit_relabelled(model: Model) -> Edited:
        result, labels = edit(model)
        return Edited(
            result,
            tuple(
                each._replace(
                    kind=kind or each.kind,
                    also=(*each.also, *also),
                    vague=(*each.vague, *vague),
                    optional=each.optional if optional is None else optional,
                    numbers=each.numbers if numbers is None else numbers,
                )
                for each in labels
            ),
        )

    return edit_relabelled


def is_buffer(name: str) -> bool:
    """Is this a running statistic, which training moves but no gradient reaches?"""
    return any(each in name for each in BUFFERS)


def distance(left: Model, right: Model, names: Sequence[str]) -> float:
    """Return |right - left| / |left| over the named tensors."""
    moved = sum(
        float(((as_float(right.tensors[n]) - as_float(left.tensors[n])) ** 2).sum()) for n in names
    )
    size = sum(float((as_float(left.tensors[n]) ** 2).sum()) for n in names)
    return float(np.sqrt(moved / size)) if size else 0.0


def trained_label(
    left: Model, right: Model, *, also: tuple[str, ...] = (), vague: tuple[str, ...] = ()
) -> Expected:
    """Label what training moved; its distance may be taken over these tensors or over all."""
    shared = [n for n in left.tensors if n in right.tensors and is_float(left.tensors[n])]
    moved = [n for n in shared if left.tensors[n].tobytes() != right.tensors[n].tobytes()]
    weights = [name for name in moved if not is_buffer(name)]
    named = [name for name in weights if distance(left, right, [name]) > _STILL]
    ways = [distance(left, right, each) for each in (moved, weights, shared) if each]
    numbers: dict[str, Wanted] = (
        {"relative_l2": (0.8 * min(ways), 1.25 * max(ways))} if ways else {}
    )
    beside = frozenset(n for n in left.tensors if is_buffer(n) or n in weights)
    return Expected("trained", frozenset(named), numbers, maybe=beside, also=also, vague=vague)


def tune(
    task: str, recipe: Recipe, *, also: tuple[str, ...] = (), vague: tuple[str, ...] = ()
) -> Edit:
    """Fine-tune a network in F32, and store it in the dtypes that it had."""

    def edit(model: Model) -> Edited:
        tuned = fine_tuned(task, model.tensors, recipe)
        tensors = {
            name: like(as_float(tuned[name]), array) if is_float(array) else tuned[name]
            for name, array in model.tensors.items()
        }
        right = model._replace(tensors=tensors)
        return Edited(right, (trained_label(model, right, also=also, vague=vague),))

    return edit


def lora_trained(task: str, where: str, rank: int, alpha: float, recipe: Recipe) -> Edit:
    """Train a LoRA on the matrices that match, and merge it."""

    def edit(model: Model) -> Edited:
        targets = [name for name in chosen(model, where) if model.tensors[name].ndim == 2]
        adapters = low_rank_trained(task, model.tensors, targets, rank, alpha=alpha, recipe=recipe)
        factors = {
            name: (each.scale * as_float(each.up), as_float(each.down))
            for name, each in adapters.items()
        }
        return merged(model, factors, rank)

    return edit


def grid(where: str, bits: int, group: int | None, *, symmetric: bool = True) -> Edit:
    """Round matrices to a grid of `bits`: by group of values, by row (0), or all at once (None)."""

    def onto(_: str, values: Array) -> Array:
        rows = values.reshape(1 if group is None else len(values), -1)
        if group and rows.shape[1] % group:
            raise ValueError(f"a row of {rows.shape[1]} is not cut into groups of {group}")
        pieces = rows.reshape(-1, group) if group else rows
        if symmetric:
            step = np.maximum(np.abs(pieces).max(1, keepdims=True), 1e-30) / (2 ** (bits - 1) - 1)
            return np.rint(pieces / step) * step
        least, most = (f(pieces, axis=1, keepdims=True) for f in (np.min, np.max))
        step = np.maximum(most - least, 1e-30) / (2**bits - 1)
        zero = np.rint(-least / step)
        return (np.clip(np.rint(pieces / step) + zero, 0, 2**bits - 1) - zero) * step

    def edit(model: Model) -> Edited:
        names = [n for n in chosen(model, where, matrices=True) if _is_cut(model.tensors[n], group)]
        size: Wanted = "tensor" if group is None else "row" if group == 0 else group
        numbers: dict[str, Wanted] = {"bits": about(float(bits), 0.01), "group": size}
        expected = Expected("quantised", frozenset(names), numbers)
        return Edited(changed(model, names, onto), (expected,))

    return edit


def _is_cut(array: Array, group: int | None) -> bool:
    return not group or (array.size // len(array)) % group == 0


def share_weights(where: str, colours: int, rounds: int = 6) -> Edit:
    """Share `colours` values among the weights of each tensor, found by k-means (palettes)."""

    def onto(_: str, values: Array) -> Array:
        flat = values.ravel()
        centres = np.quantile(flat, (np.arange(colours) + 0.5) / colours)
        for _round in range(rounds):
            places = np.searchsorted((centres[1:] + centres[:-1]) / 2, flat)
            counts = np.bincount(places, minlength=colours)
            means = np.bincount(places, flat, colours) / np.maximum(counts, 1)
            centres = np.sort(np.where(counts, means, centres))
        return centres[np.searchsorted((centres[1:] + centres[:-1]) / 2, flat)]

    def edit(model: Model) -> Edited:
        names = chosen(model, where, matrices=True)
        result = changed(model, names, onto)
        distinct = [float(len(np.unique(as_float(result.tensors[name])))) for name in names]
        numbers: dict[str, Wanted] = {"colours": (min(distinct), max(distinct))}
        expected = Expected("palette", frozenset(names), numbers, vague=("quantised",))
        return Edited(result, (expected,))

    return edit


def mask(
    where: str, keep: Callable[[np.random.Generator, Array], Array], pattern: Wanted, seed: int
) -> Edit:
    """Set to zero what `keep(random numbers, values)` leaves out."""

    def edit(model: Model) -> Edited:
        names, rng = chosen(model, where, matrices=True), np.random.default_rng(seed)
        result = changed(model, names, lambda _, values: np.where(keep(rng, values), values, 0.0))
        zeros = sum(int((result.tensors[name] == 0).sum()) for name in names)
        part = zeros / sum(result.tensors[name].size for name in names)
        numbers: dict[str, Wanted] = {"sparsity": (part - 0.02, part + 0.02), "pattern": pattern}
        return Edited(result, (Expected("pruned", frozenset(names), numbers),))

    return edit


def by_lot(sparsity: float) -> Callable[[np.random.Generator, Array], Array]:
    """Keep weights by lot, whatever their size."""
    return lambda rng, values: rng.random(values.shape) >= sparsity


def one_of_four(_: np.random.Generator, values: Array) -> Array:
    """Keep the largest of every four weights in a row."""
    groups = np.abs(values).reshape(-1, 4)
    return (groups.argmax(1)[:, None] == np.arange(4)).reshape(values.shape)


def relayout(where: str, axes: tuple[int, ...]) -> Edit:
    """Store tensors with their axes in another order, as another framework does."""

    def edit(model: Model) -> Edited:
        names = [n for n in chosen(model, where) if model.tensors[n].ndim == len(axes)]
        tensors = dict(model.tensors)
        for name in names:
            tensors[name] = np.ascontiguousarray(tensors[name].transpose(axes))
        return Edited(
            model._replace(tensors=tensors),
            (Expected("transposed", frozenset(names), vague=("reshaped",)),),
        )

    return edit


def replace_by(change: Callable[[Model], Model], *expected: Expected) -> Edit:
    """Change a model by a function, with a label that is written beside it."""
    return lambda model: Edited(change(model), expected)


def with_tensors(model: Model, **arrays: Array) -> Model:
    """Return the model with some tensors replaced; `__` in a keyword stands for a dot."""
    return model._replace(
        tensors={
            **model.tensors,
            **{key.replace("__", "."): array for key, array in arrays.items()},
        }
    )
