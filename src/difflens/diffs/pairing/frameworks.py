"""Pairs the weights of Keras, Flax and TensorFlow with PyTorch's: the names say what is turned.

Those frameworks call a matrix `kernel` and keep it with its outputs last; PyTorch calls it
`weight` and keeps them first. A square matrix looks the same either way, so neither its shape
nor its values may decide: its name does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from difflens.core.natural_order import natural_key
from difflens.core.records import Pair, Recipe, TensorInfo

from .how import FRAMEWORK
from .names import core_of

Tensors = Mapping[str, TensorInfo]


# What the others call it, and what PyTorch does.
_WORDS = {
    "kernel": "weight",
    "gamma": "weight",
    "scale": "weight",
    "embedding": "weight",
    "embeddings": "weight",
    "beta": "bias",
    "bias": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
    "mean": "running_mean",
    "var": "running_var",
}
_OURS = {"weight", "bias", "running_mean", "running_var"}
_COLLECTIONS = re.compile(r"^(?:params|batch_stats)[./]")
_ATTRIBUTE = re.compile(r"(?:/\.ATTRIBUTES/VARIABLE_VALUE|:0)$")
_NUMBERED = re.compile(r"_(?:\._)?([0-9]+)(?=[./]|$)")


class _Part(NamedTuple):
    """One tensor under the name that PyTorch would give it."""

    info: TensorInfo
    is_kernel: bool


def pair_by_framework(left: Tensors, right: Tensors) -> Iterator[Pair]:
    """Yield the pairs of which one side has PyTorch's names and the other side another's."""
    for theirs, ours, is_left in ((left, right, True), (right, left, False)):
        known = _by_core(ours)
        if not known:
            continue
        for core, part in _translated(theirs, known).items():
            pair = _pair(part, known[core], is_left=is_left)
            if pair:
                yield pair


def _by_core(ours: Tensors) -> dict[str, TensorInfo]:
    """Gather what is named as PyTorch names it; a name that two have is nobody's."""
    by_core: dict[str, TensorInfo | None] = {}
    for name, info in ours.items():
        if name.rpartition(".")[2] in _OURS:
            core = core_of(name)
            by_core[core] = None if core in by_core else info
    return {core: info for core, info in by_core.items() if info}


def _translated(theirs: Tensors, known: Mapping[str, TensorInfo]) -> dict[str, _Part]:
    by_core: dict[str, _Part | None] = {}
    by_order = keras_names(theirs, known)
    for name, info in theirs.items():
        core, word = by_order.get(name) or _translate(name)
        for each in (core, core.replace("running_", "")) if word in {"mean", "var"} else (core,):
            if word and each in known:
                by_core[each] = None if each in by_core else _Part(info, word == "kernel")
    return {core: part for core, part in by_core.items() if part}


def _translate(name: str) -> tuple[str, str]:
    """Say what PyTorch would call it, and the word it has for it; empty if there is none.

    >>> _translate("bert/encoder/layer_0/output/dense/kernel")
    ('encoder.layer.0.output.dense.weight', 'kernel')
    """
    stem = _ATTRIBUTE.sub("", _COLLECTIONS.sub("", name))
    path = _NUMBERED.sub(r".\1", stem).replace("/", ".")
    module, _, word = path.rpartition(".")
    if word in _WORDS and module:
        return core_of(f"{module}.{_WORDS[word]}"), word
    if "/" in name:  # TensorFlow's tables have no word of their own
        return core_of(f"{path}.weight"), "embeddings"
    return "", ""


def _pair(part: _Part, other: TensorInfo, *, is_left: bool) -> Pair | None:
    """Turn the kernel; None if the shapes do not agree with what the name says."""
    info, recipe = part.info, None
    if part.is_kernel:
        recipe = _turned(info, other.shape)
        info = TensorInfo(info.name, info.dtype, other.shape, info.stored)
        if recipe is None:
            return None
    elif info.shape != other.shape:
        return None
    transform = None if recipe is None else f"{'left' if is_left else 'right'} transposed"
    how = f"{FRAMEWORK}{core_of((other if is_left else part.info).name)}"
    if is_left:
        return Pair(info, other, how, transform, left_recipe=recipe)
    return Pair(other, info, how, transform, right_recipe=recipe)


def _turned(info: TensorInfo, wanted: tuple[int, ...]) -> Recipe | None:
    """Move the outputs to the front: [..., in, out] becomes [out, in, ...]."""
    if len(wanted) == 2 and info.count == wanted[0] * wanted[1]:  # heads may have a dimension each
        fits = info.shape[-1] == wanted[0] or info.shape[0] == wanted[1]
        return Recipe(info.name, transposed=True, length=wanted[1]) if fits else None
    if len(wanted) < 3 or info.shape != (*wanted[2:], wanted[1], wanted[0]):
        return None
    outputs, inputs = wanted[:2]
    order = tuple((i * outputs + o, 1) for o in range(outputs) for i in range(inputs))
    return Recipe(info.name, order, transposed=True, length=info.count // (outputs * inputs))


# `layers.dense_1.vars.0` says the kind of the layer, its place among those of its kind, and the
# variable's place in the layer. Modules of PyTorch have their kind by the shapes of their parts,
# and their order by their numbers. Where two modules could be meant, none is.

# The variables of a layer, in Keras's order: its word for each, and PyTorch's.
_NORM = (("gamma", "weight"), ("beta", "bias"))
_STATISTICS = (("moving_mean", "running_mean"), ("moving_variance", "running_var"))
_AFFINE = (("kernel", "weight"), ("bias", "bias"))
_VARIABLES = {
    "dense": _AFFINE,
    "conv1d": _AFFINE,
    "conv2d": _AFFINE,
    "conv3d": _AFFINE,
    "batch_normalization": (*_NORM, *_STATISTICS),
    "layer_normalization": _NORM,
    "embedding": (("embeddings", "weight"),),
}
_LAYER = re.compile(
    r"(?:^|.*\.)(?P<kind>[a-z0-9_]*?[a-z0-9])(?:_(?P<n>[0-9]+))?\.vars\.(?P<v>[0-9])"
)
_DIGITS = re.compile("[0-9]+")

Shape = tuple[int, ...]


def keras_names(
    theirs: Mapping[str, TensorInfo], ours: Mapping[str, TensorInfo]
) -> dict[str, tuple[str, str]]:
    """Say for each variable of Keras which tensor of PyTorch it is, and Keras's word for it."""
    layers = _layers(theirs)
    if not layers:
        return {}
    modules = _modules(ours)
    words: dict[str, tuple[str, str]] = {}
    for kind, numbered in layers.items():
        ordered = [numbered[n] for n in sorted(numbered)]
        for layer, module in _matched(kind, ordered, modules.get(kind, {}), theirs, ours):
            for at, (word, last) in enumerate(_VARIABLES[kind]):
                core = f"{module}.{last}"
                if at in layer and core in ours:
                    words[layer[at]] = core, word
    return words


def _layers(theirs: Mapping[str, TensorInfo]) -> dict[str, dict[int, dict[int, str]]]:
    """Gather the names by kind, by the layer's number, by the variable's place."""
    numbered: dict[str, dict[int, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    for name in theirs:
        match = _LAYER.fullmatch(name)
        if match and match["kind"] in _VARIABLES:
            numbered[match["kind"]][int(match["n"] or 0)][int(match["v"])] = name
    return numbered


def _modules(ours: Mapping[str, TensorInfo]) -> dict[str, dict[str, Shape]]:
    """Gather the modules by the kind that their parts show, with the shape of their weight."""
    shapes: dict[str, dict[str, Shape]] = defaultdict(dict)
    for core, info in ours.items():
        module, _, last = core.rpartition(".")
        if last == "weight":
            shapes[_kind(module, len(info.shape), ours)][module] = info.shape
    return shapes


def _kind(module: str, dimensions: int, ours: Mapping[str, TensorInfo]) -> str:
    if dimensions == 1:
        counted = f"{module}.running_mean" in ours
        return "batch_normalization" if counted else "layer_normalization"
    if dimensions == 2:
        return "embedding" if "emb" in module.lower() else "dense"
    return f"conv{dimensions - 2}d"


def _matched(
    kind: str,
    layers: list[dict[int, str]],
    modules: Mapping[str, Shape],
    theirs: Mapping[str, TensorInfo],
    ours: Mapping[str, TensorInfo],
) -> list[tuple[dict[int, str], str]]:
    """Match layers and modules of one shape in their order, where the modules have one."""
    by_shape: dict[Shape, list[dict[int, str]]] = defaultdict(list)
    for layer in layers:
        if 0 in layer:
            by_shape[_as_ours(kind, theirs[layer[0]].shape)].append(layer)
    pairs = []
    for shape, alike in by_shape.items():
        same = sorted((m for m, wanted in modules.items() if wanted == shape), key=natural_key)
        parts = {len(layer) for layer in alike} | {_parts(module, ours) for module in same}
        if len(same) == len(alike) and len(parts) == 1 and _is_ordered(same):
            pairs += list(zip(alike, same, strict=True))
    return pairs


def _as_ours(kind: str, shape: Shape) -> Shape:
    is_kernel = _VARIABLES[kind][0][0] == "kernel" and len(shape) > 1
    return (shape[-1], shape[-2], *shape[:-2]) if is_kernel else shape


def _parts(module: str, ours: Mapping[str, TensorInfo]) -> int:
    lasts = ("weight", "bias", "running_mean", "running_var")
    return sum(f"{module}.{last}" in ours for last in lasts)


def _is_ordered(modules: list[str]) -> bool:
    """Do numbers alone tell them apart?"""
    return len({_DIGITS.sub("#", module) for module in modules}) <= 1
