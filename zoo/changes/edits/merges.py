"""Merges of several models into one, as a pair with the other models as evidence.

The left model is the first of those that were merged, the right one is the result; the base and
the other models are handed to difflens as `--base` and `--checkpoint`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..model import Array, Model, as_float, is_float, like
from ..pairs import Built, Expected, Wanted, with_bystanders
from .values import about


def combine(models: Sequence[Model], rule: Callable[..., Array]) -> Model:
    """Apply a rule to the tensors of that name in all models, float64 in and out."""
    first = models[0]
    tensors = {
        name: like(rule(*(as_float(each.tensors[name]) for each in models)), array)
        if is_float(array)
        else array
        for name, array in first.tensors.items()
    }
    return first._replace(tensors=tensors)


def average(models: Sequence[Model], weights: Sequence[float]) -> Model:
    """Add models up, each times its weight."""
    return combine(models, lambda *all_: sum(w * x for w, x in zip(weights, all_, strict=True)))


def slerp(left: Model, right: Model, t: float) -> Model:
    """Go from one model to the other on the sphere, tensor by tensor."""
    return combine([left, right], lambda a, b: _slerp(a, b, t))


def _slerp(a: Array, b: Array, t: float) -> Array:
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    cosine = float((a * b).sum()) / lengths if lengths else 1.0
    if cosine > 0.9995:
        return (1 - t) * a + t * b
    angle = np.arccos(np.clip(cosine, -1, 1))
    return (np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle)


def task_arithmetic(base: Model, models: Sequence[Model], factors: Sequence[float]) -> Model:
    """Add to the base what each model learned, times a factor."""

    def rule(start: Array, *others: Array) -> Array:
        return start + sum(f * (x - start) for f, x in zip(factors, others, strict=True))

    return combine([base, *models], rule)


def ties(base: Model, models: Sequence[Model], density: float, factor: float = 1.0) -> Model:
    """Trim what each learned to its largest part, elect signs, and average what agrees."""

    def rule(start: Array, *others: Array) -> Array:
        moves = np.stack([_trimmed(each - start, density) for each in others])
        sign = np.sign(moves.sum(0))
        agreeing = np.where(np.sign(moves) == sign, moves, 0.0)
        return start + factor * agreeing.sum(0) / np.maximum((agreeing != 0).sum(0), 1)

    return combine([base, *models], rule)


def _trimmed(move: Array, density: float) -> Array:
    size = np.abs(move)
    return np.where(size >= np.quantile(size, 1 - density), move, 0.0)


def dare(base: Model, models: Sequence[Model], drop: float, seed: int) -> Model:
    """Drop elements of each move by lot, scale up the rest, and add the mean to the base."""
    rng = np.random.default_rng(seed)

    def rule(start: Array, *others: Array) -> Array:
        moves = [(x - start) * (rng.random(x.shape) >= drop) / (1 - drop) for x in others]
        return start + sum(moves) / len(moves)

    return combine([base, *models], rule)


def ema(models: Sequence[Model], decay: float) -> Model:
    """Follow models, first to last, by an exponential moving average."""
    weights = [decay ** (len(models) - 1)]
    weights += [(1 - decay) * decay ** (len(models) - 1 - at) for at in range(1, len(models))]
    return average(models, weights)


# Kinds that are the same thing by another name, and what may be said where no base is known.
_ALSO = {
    "averaged": ("task_arithmetic", "ema"),
    "task_arithmetic": ("averaged",),
    "extrapolated": ("task_arithmetic",),
    "ema": ("averaged",),
    "slerp": (),
    "ties": (),
    "dare": (),
}
_COARSE: dict[str, tuple[str, ...]] = {
    "slerp": ("averaged",),
    "ties": ("task_arithmetic", "sparse_edit"),
    "dare": ("task_arithmetic", "sparse_edit"),
}


def merged_pair(
    kind: str,
    left: Model,
    right: Model,
    evidence: Mapping[str, Model],
    numbers: Mapping[str, Wanted] | None = None,
    *,
    also: tuple[str, ...] | None = None,
) -> Built:
    """Return the pair of a merge; without evidence that it is one, less may be said of it."""
    moved = frozenset(
        name
        for name, array in left.tensors.items()
        if array.tobytes() != right.tensors[name].tobytes()
    )
    names = frozenset(name for name in moved if is_float(left.tensors[name]))
    same = _ALSO[kind] if also is None else also
    expected = Expected(
        kind, names, numbers or {}, moved, same, vague=("trained", *_COARSE.get(kind, ()))
    )
    if not evidence:
        expected = Expected("trained", names, maybe=moved, also=(kind, *same))
    return Built(left, right, with_bystanders((expected,), left, right), evidence)


def near(value: float) -> Wanted:
    """Accept a coefficient within two hundredths."""
    return about(value, 0.02)
