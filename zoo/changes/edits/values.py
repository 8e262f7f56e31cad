"""Edits of values: scaling, pruning, low rank, rows, elements, noise, re-initialisation.

Every edit is made by a function that takes what to do and returns an `Edit`. `where` is a regular
expression searched in the names of float tensors; results are rounded to the tensor's own dtype.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ..model import Array, Model, as_float, is_float, like
from ..pairs import Edit, Edited, Expected, Wanted


def chosen(model: Model, where: str, *, matrices: bool = False) -> list[str]:
    """List the float tensors whose name matches; with `matrices`, those of two axes or more."""
    names = [
        name
        for name, array in model.tensors.items()
        if re.search(where, name) and is_float(array) and (array.ndim >= 2 or not matrices)
    ]
    if not names:
        raise ValueError(f"no tensor of the model matches {where!r}")
    return names


def matrix(array: Array) -> Array:
    """Return the values as a matrix of float64: the first axis by all others."""
    return as_float(array).reshape(len(array), -1)


def about(value: float, within: float = 0.02) -> Wanted:
    """Accept numbers within a part of the value."""
    reach = abs(value) * within
    return value - reach, value + reach


def changed(model: Model, names: list[str], change: Callable[[str, Array], Array]) -> Model:
    """Replace tensors by what `change(name, float64 values)` returns, in their own dtype."""
    tensors = dict(model.tensors)
    for name in names:
        array = tensors[name]
        tensors[name] = like(change(name, as_float(array)).reshape(array.shape), array)
    return model._replace(tensors=tensors)


def scale(where: str, factor: float) -> Edit:
    """Multiply tensors by one number."""

    def edit(model: Model) -> Edited:
        names = chosen(model, where)
        result = changed(model, names, lambda _, values: values * factor)
        also = ("sign_flipped",) if factor == -1 else ()
        numbers = {"c": about(factor, 0.005)}
        return Edited(result, (Expected("scaled", frozenset(names), numbers, also=also),))

    return edit


def flip_sign(where: str) -> Edit:
    """Multiply tensors by minus one."""

    def edit(model: Model) -> Edited:
        names = chosen(model, where)
        result = changed(model, names, lambda _, values: -values)
        return Edited(result, (Expected("sign_flipped", frozenset(names), also=("scaled",)),))

    return edit


def prune(
    where: str, sparsity: float, pattern: str = "unstructured", *, overall: bool = False
) -> Edit:
    """Zero the smallest weights: by tensor or `overall`, in groups (2:4, 4:8), or whole rows."""

    def edit(model: Model) -> Edited:
        names = chosen(model, where, matrices=True)
        limit = _overall_limit(model, names, sparsity) if overall else None
        result = changed(model, names, lambda _, values: _pruned(values, sparsity, pattern, limit))
        shares = [float((result.tensors[name] == 0).mean()) for name in names]
        reach = min(shares) - 0.02, max(shares) + 0.02
        numbers: dict[str, Wanted] = {"sparsity": reach, "pattern": pattern}
        return Edited(result, (Expected("pruned", frozenset(names), numbers),))

    return edit


def _overall_limit(model: Model, names: list[str], sparsity: float) -> float:
    sizes = np.concatenate([np.abs(as_float(model.tensors[name])).ravel() for name in names])
    return float(np.quantile(sizes, sparsity))


def _pruned(values: Array, sparsity: float, pattern: str, limit: float | None) -> Array:
    size = np.abs(values)
    if pattern == "rows":
        norms = np.sqrt((size**2).reshape(len(size), -1).sum(1))
        rows = norms <= np.quantile(norms, sparsity)
        return np.where(rows.reshape(-1, *[1] * (values.ndim - 1)), 0.0, values)
    if ":" in pattern:
        few, many = map(int, pattern.split(":"))
        if values.size // len(values) % many:
            return values
        groups = size.reshape(-1, many)
        order = groups.argsort(1, kind="stable").argsort(1, kind="stable")
        return np.where((order < many - few).reshape(values.shape), 0.0, values)
    return np.where(size <= (np.quantile(size, sparsity) if limit is None else limit), 0.0, values)


def zero(where: str) -> Edit:
    """Set tensors to zero."""

    def edit(model: Model) -> Edited:
        names = chosen(model, where)
        result = changed(model, names, lambda _, values: values * 0.0)
        expected = Expected("zeroed", frozenset(names), vague=("scaled", "pruned"))
        return Edited(result, (expected,))

    return edit


def edit_elements(where: str, number: int, size: float, seed: int) -> Edit:
    """Set `number` elements of each tensor, drawn by lot, to `size` standard deviations."""

    def edit(model: Model) -> Edited:
        names, rng = chosen(model, where), np.random.default_rng(seed)

        def change(_: str, values: Array) -> Array:
            flat = values.ravel().copy()
            places = rng.choice(flat.size, number, replace=False)
            flat[places] = size * flat.std() * rng.choice([-1.0, 1.0], number)
            return flat

        result = changed(model, names, change)
        numbers: dict[str, Wanted] = {"elements": _moved(model, result, names)}
        return Edited(result, (Expected("sparse_edit", frozenset(names), numbers),))

    return edit


def _moved(before: Model, after: Model, names: list[str]) -> int:
    return sum(int((before.tensors[name] != after.tensors[name]).sum()) for name in names)


def edit_rows(where: str, rows: int, relative: float, seed: int) -> Edit:
    """Add to some rows of each matrix a vector of `relative` times the row's length."""

    def edit(model: Model) -> Edited:
        names, rng = chosen(model, where, matrices=True), np.random.default_rng(seed)

        def change(_: str, values: Array) -> Array:
            values = values.reshape(len(values), -1).copy()
            places = rng.choice(len(values), rows, replace=False)
            step = rng.standard_normal((rows, values.shape[1])) / np.sqrt(values.shape[1])
            norms = np.linalg.norm(values[places], axis=1, keepdims=True)
            values[places] += relative * np.maximum(norms, 1e-3) * step
            return values

        expected = Expected(
            "row_edit", frozenset(names), {"rows": rows * len(names)}, vague=("sparse_edit",)
        )
        return Edited(changed(model, names, change), (expected,))

    return edit


def add_noise(where: str, relative: float, seed: int) -> Edit:
    """Add Gaussian noise of `relative` times each tensor's root mean square."""

    def edit(model: Model) -> Edited:
        names, rng = chosen(model, where), np.random.default_rng(seed)

        def change(_: str, values: Array) -> Array:
            return values + relative * np.sqrt((values**2).mean()) * rng.standard_normal(
                values.shape
            )

        numbers = {"relative": about(relative, 0.25)}
        expected = Expected("noise", frozenset(names), numbers, vague=("trained",))
        return Edited(changed(model, names, change), (expected,))

    return edit


def reinitialise(where: str, seed: int, *, law: str = "normal", ratio: float = 1.0) -> Edit:
    """Draw tensors anew, of `ratio` times their root mean square: normal or uniform."""

    def edit(model: Model) -> Edited:
        names, rng = chosen(model, where), np.random.default_rng(seed)

        def change(_: str, values: Array) -> Array:
            drawn = rng.standard_normal(values.shape)
            if law == "uniform":
                drawn = rng.uniform(-(3**0.5), 3**0.5, values.shape)
            return ratio * np.sqrt((values**2).mean()) * drawn

        return Edited(changed(model, names, change), (Expected("reinitialised", frozenset(names)),))

    return edit


def corrupt(where: str, how: str = "swapped", seed: int = 0) -> Edit:
    """Destroy tensors: bytes in the wrong order (swapped), random bytes, or some NaN values."""

    def edit(model: Model) -> Edited:
        names, rng = chosen(model, where), np.random.default_rng(seed)
        tensors = dict(model.tensors)
        for name in names:
            array = tensors[name].copy()
            if how == "swapped":
                array = array.byteswap()
            elif how == "random":
                array = np.frombuffer(rng.bytes(array.nbytes), array.dtype).reshape(array.shape)
            else:
                array.ravel()[rng.choice(array.size, max(1, array.size // 100), replace=False)] = (
                    np.nan
                )
            tensors[name] = array
        coarse = "sparse_edit" if how == "nan" else "reinitialised"
        expected = Expected("corrupted", frozenset(names), vague=(coarse,))
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit


def flip_zeros(where: str) -> Edit:
    """Flip the sign of every zero: no number changes, and nothing is to be named."""

    def edit(model: Model) -> Edited:
        tensors = dict(model.tensors)
        for name in chosen(model, where):
            tensors[name] = np.where(tensors[name] == 0, -tensors[name], tensors[name])
        return Edited(model._replace(tensors=tensors), ())

    return edit
