"""Weight norms multiplied out: w = g v / ‖v‖ (Salimans and Kingma 2016), verified row by row.

In torch the norm is over all dimensions but the first.
"""

from __future__ import annotations

from math import prod

from difflens.models.anatomy.places import where

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from .records import counted, explained, name_of

_CLOSE = 1e-2  # rounding of BF16 leaves less

_SPELLINGS = (
    (".weight_g", ".weight_v", ".weight"),
    (".parametrizations.weight.original0", ".parametrizations.weight.original1", ".weight"),
)


def folded_weight_norms(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """Explain weights that are the product of a direction and a length which are gone."""
    lefts = {each.pair.left.name: each for each in diff.deltas if each.pair.left}
    rights = {each.pair.right.name: each for each in diff.deltas if each.pair.right}
    names: list[str] = []
    weights = []
    for name in lefts:
        for length, direction, weight in _SPELLINGS:
            module = name.removesuffix(length)
            if module == name or module + direction not in lefts or module + weight not in rights:
                continue
            if module + weight not in lefts and _is_product(
                diff, (name, module + direction), module + weight
            ):
                weights.append(module + weight)
                chosen = lefts[module + direction], rights[module + weight]
                names += [name, *dict.fromkeys(map(name_of, chosen))]
    if not weights:
        return []
    text = f"{counted(len(weights), 'weight norm')} multiplied out in {where(weights)}"
    numbers = {"folded": len(weights)}
    return [explained(diff, "weight_norm_folded", names, text, numbers)]


def _is_product(diff: Diff, parts: tuple[str, str], weight: str) -> bool:
    import numpy as np

    length, direction = (diff.values("left", name) for name in parts)
    held = diff.values("right", weight)
    rows = held.info.shape[0]
    if direction.info.shape != held.info.shape or prod(length.info.shape) != rows:
        return False
    if length.info.shape[0] != rows:
        return False
    lengths, at = length.array().astype("f8").ravel(), 0
    for one, two in zip(direction.rows(), held.rows(), strict=True):
        wide = one.astype("f8")
        size = np.linalg.norm(wide, axis=1, keepdims=True)
        wanted = lengths[at : at + len(wide), None] * wide / np.where(size > 0, size, 1)
        at += len(wide)
        if np.linalg.norm(two - wanted) > _CLOSE * np.linalg.norm(wanted):
            return False
    return True
