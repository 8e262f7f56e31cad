"""What is done to a model to make its relative, and what leaves nothing of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import ml_dtypes
import numpy as np

Model = dict[str, np.ndarray]
_LAYER = re.compile(r"(?P<stack>.*?layers?\.)(?P<index>\d+)(?P<rest>\..*)")


def is_matrix(value: np.ndarray) -> bool:
    """Is it a float tensor of at least two dimensions?"""
    return value.ndim > 1 and value.dtype.kind not in "iub"


def each(model: Model, change: Callable[[np.ndarray], np.ndarray], part: str = "") -> Model:
    """Change every float matrix whose name contains the part."""
    return {
        name: change(value).astype(value.dtype) if is_matrix(value) and part in name else value
        for name, value in model.items()
    }


def cast(model: Model, dtype: type) -> Model:
    """Store every float in another type."""
    return {
        name: value.astype(dtype) if value.dtype.kind == "f" else value
        for name, value in model.items()
    }


def bfloat(model: Model) -> Model:
    """Store every float as BF16."""
    return cast(model, ml_dtypes.bfloat16)


def noisy(model: Model, times: float, part: str = "", seed: int = 3) -> Model:
    """Add noise of so many standard deviations to each float tensor."""
    random = np.random.default_rng(seed)
    return {
        name: (v + times * v.std() * random.standard_normal(v.shape)).astype(v.dtype)
        if v.dtype.kind == "f" and part in name
        else v
        for name, v in model.items()
    }


def low_rank(model: Model, part: str, rank: int = 4) -> Model:
    """Merge an adapter of a tenth of the weights' size."""
    random = np.random.default_rng(rank)

    def merge(value: np.ndarray) -> np.ndarray:
        flat = value.reshape(len(value), -1)
        product = random.normal(size=(len(flat), rank)) @ random.normal(size=(rank, flat.shape[1]))
        return (flat + 0.1 * flat.std() * product / rank**0.5).reshape(value.shape)

    return each(model, merge, part)


def pruned(model: Model, share: float) -> Model:
    """Zero the smallest weights of each matrix."""
    return each(model, lambda v: np.where(np.abs(v) < np.quantile(np.abs(v), share), 0, v))


def quantised(model: Model, bits: int) -> Model:
    """Round every row to a symmetric grid, stored as floats."""

    def grid(value: np.ndarray) -> np.ndarray:
        flat = value.reshape(len(value), -1)
        step = np.abs(flat).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
        return (np.rint(flat / np.where(step > 0, step, 1)) * step).reshape(value.shape)

    return each(model, grid)


def redrawn(model: Model, part: str = "", but: str = "\n", seed: int = 9) -> Model:
    """Draw the weights anew, each tensor with its own mean and deviation."""
    random = np.random.default_rng(seed)
    return {
        name: random.normal(value.mean(), value.std(), value.shape).astype(value.dtype)
        if value.dtype.kind == "f" and part in name and but not in name
        else value
        for name, value in model.items()
    }


def shuffled(model: Model, seed: int = 4) -> Model:
    """Put the values of each tensor in another order: nothing of its function is left."""
    random = np.random.default_rng(seed)
    return each(model, lambda v: random.permutation(v.ravel()).reshape(v.shape))


def relayered(model: Model, order: list[int]) -> Model:
    """Make the layers of the right model from these of the left one."""
    other = {name: value for name, value in model.items() if not _LAYER.match(name)}
    for name, value in model.items():
        found = _LAYER.match(name)
        for place, source in enumerate(order):
            if found and int(found["index"]) == source:
                other[f"{found['stack']}{place}{found['rest']}"] = value
    return other


def grafted(model: Model, other: Model, layers: tuple[int, ...]) -> Model:
    """Take some layers of the model, everything else of the other."""
    return {
        name: model[name]
        if (found := _LAYER.match(name)) and int(found["index"]) in layers
        else other[name]
        for name in model
    }


def grown(model: Model, rows: int, part: str = "word_embeddings") -> Model:
    """Add rows to the vocabulary."""
    random = np.random.default_rng(rows)
    return {
        name: np.concatenate(
            [value, random.normal(0, value.std(), (rows, *value.shape[1:])).astype(value.dtype)]
        )
        if part in name
        else value
        for name, value in model.items()
    }


_READS = ("query.weight", "key.weight", "value.weight", "intermediate.dense.weight")
_BESIDE = ("embeddings.weight", "pooler.dense.weight", "output.dense.bias")
_WRITES = ("attention.output.dense.weight", "output.dense.weight")


def turned(model: Model, matrix: np.ndarray) -> Model:
    """Turn the residual stream of a BERT: what reads it from the right, what writes it likewise."""
    other = dict(model)
    for name, value in model.items():
        if name.endswith(_WRITES):
            other[name] = (matrix.T @ value).astype(value.dtype)
        elif name.endswith((*_READS, *_BESIDE)):
            other[name] = (value @ matrix).astype(value.dtype)
    return other


def rotated(model: Model, width: int = 384) -> Model:
    """Turn the residual stream by one random orthogonal matrix."""
    return turned(model, np.linalg.qr(np.random.default_rng(1).normal(size=(width, width)))[0])


def channels_permuted(model: Model, width: int = 384) -> Model:
    """Put the channels of the residual stream in another order."""
    return turned(model, np.eye(width)[np.random.default_rng(2).permutation(width)])


def units_permuted(model: Model, seed: int = 5) -> Model:
    """Put the hidden units of every feed-forward layer of a BERT in another order."""
    random, other = np.random.default_rng(seed), dict(model)
    for name in model:
        if name.endswith("intermediate.dense.weight"):
            order = random.permutation(len(model[name]))
            stem = name.removesuffix("intermediate.dense.weight")
            other[name] = model[name][order]
            other[f"{stem}intermediate.dense.bias"] = model[f"{stem}intermediate.dense.bias"][order]
            other[f"{stem}output.dense.weight"] = model[f"{stem}output.dense.weight"][:, order]
    return other


def units_removed(model: Model, share: float = 0.25) -> Model:
    """Remove the weakest hidden units of every feed-forward layer of a BERT."""
    other = dict(model)
    for name, value in model.items():
        if name.endswith("intermediate.dense.weight"):
            norms = np.linalg.norm(value, axis=1)
            left = np.sort(np.argsort(norms)[int(share * len(norms)) :])
            stem = name.removesuffix("intermediate.dense.weight")
            other[name] = value[left]
            other[f"{stem}intermediate.dense.bias"] = model[f"{stem}intermediate.dense.bias"][left]
            other[f"{stem}output.dense.weight"] = model[f"{stem}output.dense.weight"][:, left]
    return other


def chain_permuted(model: Model, names: list[str], seed: int = 6) -> Model:
    """Put the units between consecutive weights in another order, the function unchanged."""
    random, other = np.random.default_rng(seed), dict(model)
    for first, second in pairwise(names):
        order = random.permutation(len(other[first]))
        other[first] = other[first][order]
        bias = first.removesuffix("weight") + "bias"
        if bias in other:
            other[bias] = other[bias][order]
        other[second] = other[second][:, order]
    return other
