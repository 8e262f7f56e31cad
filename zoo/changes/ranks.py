"""How many directions of an added update can be seen over the noise of storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .model import Array, Model, as_float

if TYPE_CHECKING:
    from .pairs import Expected

_STEPS = 40  # power steps: the largest singular value of noise to about a hundredth


def visible(each: Expected, left: Model, right: Model) -> tuple[float, float]:
    """Return the least rank that shows in every matrix, and the rank that was added.

    A direction shows where its singular value is above the largest one of what is left of the
    difference without the update: storage noise, and whatever else was done to the matrix.
    """
    least, most = [], 0
    for name, (up, down) in each.factors.items():
        values = singular_values(up, down)
        difference = as_float(right.tensors[name]) - as_float(left.tensors[name])
        noise = difference.reshape(len(difference), -1) - (up @ down)
        edge = largest(noise)
        least.append(int((values > edge).sum()))
        most = max(most, len(values))
    return float(min(least)), float(most)


def singular_values(up: Array, down: Array) -> Array:
    """Return those of `up @ down` that are not zero, from the factors alone."""
    left, right = np.linalg.qr(up)[1], np.linalg.qr(down.T)[1]
    values = np.linalg.svd(left @ right.T, compute_uv=False)
    return values[values > values[0] * 1e-12]


def largest(matrix: Array) -> float:
    """Return the largest singular value, by power iteration from a fixed start."""
    vector = np.random.default_rng(0).standard_normal(matrix.shape[1])
    length = 0.0
    for _ in range(_STEPS):
        turned = matrix.T @ (matrix @ vector)
        length = float(np.linalg.norm(turned))
        if length == 0:
            return 0.0
        vector = turned / length
    return float(np.sqrt(length))
