"""Lone tensors that are stored once more on their own side: tied, neither added nor removed."""

from __future__ import annotations

from collections.abc import Iterable

from ..protocols import Engine, TensorSource
from ..records import Delta, Pair, TensorInfo
from .pairs import deltas

Candidate = tuple[Pair, str, TensorInfo, TensorInfo]  # the lone pair, its side, itself, its twin


def tied(
    candidates: Iterable[Candidate], left: TensorSource, right: TensorSource, engine: Engine
) -> dict[int, Delta]:
    """Compare each candidate with its twin, byte by byte: names propose, bytes decide.

    The deltas are keyed by the identity of the lone pair.
    """
    found: dict[int, Delta] = {}
    for lone, side, tensor, twin in candidates:
        source = left if side == "left" else right
        if id(lone) in found:
            continue
        if next(deltas([Pair(twin, tensor)], source, source, engine)).kind == "identical":
            found[id(lone)] = Delta(Pair(lone.left, lone.right, f"tied to {twin.name}"), "tied")
    return found
