"""Edits of storage: casts, and values on a grid that is still stored as floats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..model import DTYPES, Array, Model, as_float, dtype_of, rounded
from ..pairs import Edit, Edited, Expected, Wanted
from .values import about, changed, chosen

# The sixteen levels of NF4 (QLoRA, Dettmers et al. 2023).
_NF4 = np.array([
    -1.0, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.091050036, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0,
])  # fmt: skip


def cast(to: str, *, where: str = ".", rounding: str = "nearest") -> Edit:
    """Store float tensors in another dtype; `truncated` cuts bits off instead of rounding."""

    def edit(model: Model) -> Edited:
        names = [name for name in chosen(model, where) if dtype_of(model.tensors[name]) != to]
        tensors = dict(model.tensors)
        for name in names:
            tensors[name] = _cast(tensors[name], to, rounding)
        expected = tuple(
            _casts(names_of, dtype, to, rounding)
            for dtype, names_of in _by_dtype(model, names).items()
        )
        return Edited(model._replace(tensors=tensors), expected)

    return edit


def through(to: str, *, where: str = ".", rounding: str = "nearest") -> Edit:
    """Cast and cast back: values of the narrow dtype, stored as they were."""

    def edit(model: Model) -> Edited:
        names = chosen(model, where)
        tensors = dict(model.tensors)
        for name in names:
            array = tensors[name]
            tensors[name] = _cast(array, to, rounding).astype(np.float32).astype(array.dtype)
        expected = tuple(
            _casts(names_of, dtype, to, rounding)
            for dtype, names_of in _by_dtype(model, names).items()
        )
        return Edited(model._replace(tensors=tensors), expected)

    return edit


def _by_dtype(model: Model, names: list[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(dtype_of(model.tensors[name]), []).append(name)
    return groups


_BITS = {"F64": 52, "F32": 23, "F16": 10, "BF16": 7, "F8_E4M3": 3, "F8_E5M2": 2}


def _casts(names: list[str], before: str, after: str, rounding: str) -> Expected:
    numbers: dict[str, Wanted] = {"from": before, "to": after}
    if _BITS[after] < _BITS[before]:
        numbers["rounding"] = rounding
    return Expected("cast", frozenset(names), numbers)


def _cast(array: Array, to: str, rounding: str) -> Array:
    if rounding == "nearest":
        return rounded(array, to)
    if (dtype_of(array), to) != ("F32", "BF16"):
        raise ValueError("only F32 is truncated, and only to BF16")
    bits = np.asarray(array, order="C").view(np.uint32)
    return np.asarray(bits >> 16).astype(np.uint16).view(DTYPES["BF16"])


def quantise(where: str, scheme: str) -> Edit:
    """Put matrices on a grid, stored in the dtype they had: the schemes are in `SCHEMES`."""
    onto, numbers = SCHEMES[scheme]

    def edit(model: Model) -> Edited:
        names = chosen(model, where, matrices=True)
        result = changed(model, names, lambda _, values: onto(values))
        also = ("ternary",) if scheme == "ternary" else ()
        coarse = ("palette",) if scheme in {"ternary", "nf4-tensor"} else ()
        expected = Expected("quantised", frozenset(names), numbers, also=also, vague=coarse)
        return Edited(result, (expected,))

    return edit


def palette(where: str, colours: int) -> Edit:
    """Share a few values among all weights of a matrix: their means by quantile."""

    def edit(model: Model) -> Edited:
        def onto(_: str, values: Array) -> Array:
            edges = np.quantile(values, np.linspace(0, 1, colours + 1)[1:-1])
            places = np.searchsorted(edges, values.ravel())
            sums = np.bincount(places, values.ravel(), colours)
            counts = np.bincount(places, minlength=colours)
            return (sums / np.maximum(counts, 1))[places]

        names = chosen(model, where, matrices=True)
        numbers: dict[str, Wanted] = {"colours": (1, float(colours))}
        expected = Expected("palette", frozenset(names), numbers, vague=("quantised",))
        return Edited(changed(model, names, onto), (expected,))

    return edit


def _grouped(values: Array, size: int | None, onto: Callable[[Array], Array]) -> Array:
    """Apply a rule to every `size` values in a row; to every row (0), or to all (None)."""
    flat = values.reshape(len(values), -1) if size == 0 else values.ravel()
    if size is None:
        return onto(flat[None]).reshape(values.shape)
    if size == 0:
        return onto(flat).reshape(values.shape)
    padded = np.pad(flat, (0, -len(flat) % size)).reshape(-1, size)
    return onto(padded).ravel()[: len(flat)].reshape(values.shape)


def _absmax(bits: int) -> Callable[[Array], Array]:
    top = 2 ** (bits - 1) - 1

    def onto(rows: Array) -> Array:
        step = np.maximum(np.abs(rows).max(1, keepdims=True), 1e-30) / top
        return np.rint(rows / step) * step

    return onto


def _minmax(bits: int) -> Callable[[Array], Array]:
    def onto(rows: Array) -> Array:
        least = rows.min(1, keepdims=True)
        step = np.maximum(rows.max(1, keepdims=True) - least, 1e-30) / (2**bits - 1)
        zero = np.rint(-least / step)
        return (np.clip(np.rint(rows / step) + zero, 0, 2**bits - 1) - zero) * step

    return onto


def _nf4(rows: Array) -> Array:
    top = np.maximum(np.abs(rows).max(1, keepdims=True), 1e-30)
    middles = (_NF4[1:] + _NF4[:-1]) / 2
    return _NF4[np.searchsorted(middles, rows / top)] * top


def _q8_0(rows: Array) -> Array:
    step = np.abs(rows).max(1, keepdims=True) / 127
    return np.rint(rows / np.where(step, step, 1.0)) * step.astype(np.float16).astype(np.float64)


def _q4_0(rows: Array) -> Array:
    most = np.take_along_axis(rows, np.abs(rows).argmax(1)[:, None], 1)
    step = most / -8
    level = np.clip(np.floor(rows / np.where(step, step, 1.0) + 8.5), 0, 15) - 8
    return level * step.astype(np.float16).astype(np.float64)


def _fp8(dtype: str) -> Callable[[Array], Array]:
    top = float({"F8_E4M3": 448.0, "F8_E5M2": 57344.0}[dtype])

    def onto(rows: Array) -> Array:
        step = np.maximum(np.abs(rows).max(1, keepdims=True), 1e-30) / top
        return as_float(rounded(rows / step, dtype)) * step

    return onto


def _ternary(rows: Array) -> Array:
    step = np.maximum(np.abs(rows).mean(1, keepdims=True), 1e-30)
    return np.clip(np.rint(rows / step), -1, 1) * step


_Rule = Callable[[Array], Array]


def _scheme(
    onto: _Rule, size: int | None, bits: float, name: frozenset[str] | None = None
) -> tuple[_Rule, dict[str, Wanted]]:
    group: Wanted = {None: "tensor", 0: "row"}.get(size, size or 0)
    numbers: dict[str, Wanted] = {"bits": about(bits, 0.01), "group": group}
    if name:
        numbers["scheme"] = name
    return lambda values: _grouped(values, size, onto), numbers


SCHEMES: dict[str, tuple[_Rule, dict[str, Wanted]]] = {
    "int8-row": _scheme(_absmax(8), 0, 8),
    "int8-tensor": _scheme(_absmax(8), None, 8),
    "uint8-row": _scheme(_minmax(8), 0, 8),
    "int6-row": _scheme(_absmax(6), 0, 6),
    "int4-row": _scheme(_absmax(4), 0, 4),
    "int4-g32": _scheme(_absmax(4), 32, 4),
    "int4-g128": _scheme(_absmax(4), 128, 4),
    "uint4-g64": _scheme(_minmax(4), 64, 4),
    "nf4": _scheme(_nf4, 64, 4, frozenset({"nf4"})),
    "q8_0": _scheme(_q8_0, 32, 8),
    "q4_0": _scheme(_q4_0, 32, 4),
    "fp8": _scheme(_fp8("F8_E4M3"), None, 8, frozenset({"fp8", "e4m3"})),
    "fp8-e5m2": _scheme(_fp8("F8_E5M2"), None, 8, frozenset({"fp8", "e5m2"})),
    "ternary": _scheme(_ternary, None, 1.58),
}
