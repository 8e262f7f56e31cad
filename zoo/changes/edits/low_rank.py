"""Edits of few directions: LoRA and its relatives, one outer product, abliteration."""

from __future__ import annotations

import numpy as np

from ..model import Array, Model, as_float, like
from ..pairs import Edit, Edited, Expected, Wanted
from .values import chosen, matrix


def lora(where: str, rank: int, seed: int, *, relative: float = 0.03, decay: float = 0.8) -> Edit:
    """Merge random factors into matrices: `relative` of each norm, singular values that decay.

    Trained updates decay: with `decay` 0.8 the eighth singular value is a fifth of the first.
    With 1.0 all are alike.
    """

    def edit(model: Model) -> Edited:
        rng = np.random.default_rng(seed)
        factors = {
            name: _factors(matrix(model.tensors[name]), rank, relative, decay, rng)
            for name in chosen(model, where, matrices=True)
        }
        return merged(model, factors, rank)

    return edit


def merge(factors: dict[str, tuple[Array, Array]], rank: int) -> Edit:
    """Merge factors that were trained: `up` and `down` by the name of the matrix."""

    def edit(model: Model) -> Edited:
        return merged(model, factors, rank)

    return edit


def merged(model: Model, factors: dict[str, tuple[Array, Array]], rank: int) -> Edited:
    """Add `up @ down` to each matrix, and expect its rank of an answer."""
    tensors = dict(model.tensors)
    for name, (up, down) in factors.items():
        array = tensors[name]
        tensors[name] = like(as_float(array) + (up @ down).reshape(array.shape), array)
    expected = Expected(
        "low_rank",
        frozenset(factors),
        {"rank": float(rank)},
        also=("outer_product",) if rank == 1 else (),
        factors=factors,
    )
    return Edited(model._replace(tensors=tensors), (expected,))


def _factors(
    values: Array, rank: int, relative: float, decay: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    rows, columns = values.shape
    rank = min(rank, rows, columns)
    up = np.linalg.qr(rng.standard_normal((rows, rank)))[0]
    down = np.linalg.qr(rng.standard_normal((columns, rank)))[0].T
    sizes = decay ** np.arange(rank)
    sizes *= relative * np.linalg.norm(values) / np.linalg.norm(sizes)
    return up * sizes, down


def outer_product(where: str, relative: float, seed: int) -> Edit:
    """Add one outer product to each matrix, as an edit of facts (ROME) does."""

    def edit(model: Model) -> Edited:
        names, rng = chosen(model, where, matrices=True), np.random.default_rng(seed)
        factors = {
            name: _factors(matrix(model.tensors[name]), 1, relative, 1.0, rng) for name in names
        }
        result, (expected,) = merged(model, factors, 1)
        numbers: dict[str, Wanted] = {"matrices": len(names)}
        named = expected._replace(
            kind="outer_product", numbers=numbers, also=("low_rank",), factors={}
        )
        return Edited(result, (named,))

    return edit


def abliterate(where: str, seed: int, *, strength: float = 1.0) -> Edit:
    """Take one direction of the outputs out of every matrix: W - strength * u (u' W)."""

    def edit(model: Model) -> Edited:
        names = chosen(model, where, matrices=True)
        rows = len(model.tensors[names[0]])
        unit = np.random.default_rng(seed).standard_normal(rows)
        unit /= np.linalg.norm(unit)
        tensors = dict(model.tensors)
        for name in names:
            values = matrix(tensors[name])
            if len(values) != rows:
                raise ValueError(f"{name} has {len(values)} rows, not {rows}")
            result = values - strength * np.outer(unit, unit @ values)
            tensors[name] = like(result.reshape(tensors[name].shape), tensors[name])
        expected = Expected(
            "abliterated", frozenset(names), {"matrices": len(names)},
            vague=("low_rank", "outer_product"),
        )  # fmt: skip
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit
