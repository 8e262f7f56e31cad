"""Layers side by side that are copies of each other: the same weights, and the same gradients.

Experts or heads that start as copies stay so where what weighs them treats them alike: each gets
the gradient of the others. Two matrices drawn at random never have one norm to six digits, nor do
two that stand one behind the other have one gradient.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from .sight import Sight

if TYPE_CHECKING:
    from numpy.typing import NDArray

_POINTS, _LEAST = 10, 5  # of the start that are compared, and how many there must be
_SAME = 1e-5  # of a norm: by this much sums in another order differ
_VARIES = 1e-3  # of a gradient, from point to point: batches differ


def copies(seen: Sight) -> list[int]:
    """Give the columns of matrices that have a twin of the same make, in network order."""
    weights, gradients = seen.layers.field("weight_l2"), seen.layers.field("grad_l2")
    if weights is None or gradients is None or len(weights) < _LEAST:
        return []
    course = np.concatenate([weights[:_POINTS], gradients[:_POINTS]]).astype(np.float64)
    pulls = gradients[:_POINTS]
    kinds: dict[Any, list[int]] = {}
    for i in np.flatnonzero(seen.layers.trained):
        layer = seen.layers.of(int(i))
        if not np.isfinite(course[:, i]).all() or weights[0, i] <= 0:
            continue
        if np.ptp(pulls[:, i]) > _VARIES * np.max(pulls[:, i]) > 0:
            make = (layer.kind, layer.shape, re.sub(r"\d+", "#", layer.name))
            kinds.setdefault(make, []).append(int(i))
    return sorted(i for group in kinds.values() for i in group if _has_twin(course, i, group))


def _has_twin(course: NDArray[Any], i: int, group: list[int]) -> bool:
    # First by one number each: there may be thousands of experts.
    near = np.array(group)[np.abs(course[0, group] - course[0, i]) <= _SAME * course[0, i]]
    apart = np.abs(course[:, near] - course[:, [i]])
    return int((apart <= _SAME * course[:, [i]]).all(axis=0).sum()) > 1  # itself, and another
