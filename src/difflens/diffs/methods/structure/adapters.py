"""Adapters: is a model its base with the adapter merged? Verified by what was added."""

from __future__ import annotations

import re

from difflens.core.records import SAME, Delta, TensorInfo
from difflens.models.anatomy.places import where

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from .adapter_products import compared_adapters
from .records import explained, name_of

_MERGED = re.compile(r".* \+ (?P<kind>LoRA|DoRA) rank (?P<rank>[0-9]+)")
_REST = 0.02  # part of ‖B A‖² that a merge may leave: rounding to BF16 leaves some of a small one


def adapters(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """Explain models by the adapters that are at hand: as a side, or as a checkpoint."""
    applied = _applied(diff)
    if applied:
        return applied
    compared = compared_adapters(diff)
    if compared:
        return compared
    trajectory = evidence.trajectory
    for other in trajectory.diffs[1:] if trajectory else ():
        if is_merged_with_adapter(other):
            return _verified(diff, other)
    return []


def is_merged_with_adapter(diff: Diff) -> bool:
    """Is its left side an adapter, which was merged into the right to compare them?"""
    return any(each.left and _merged(each.left) for each in diff.pairs)


def _merged(info: TensorInfo) -> re.Match[str] | None:
    return _MERGED.fullmatch(info.stored or "")


def _applied(diff: Diff) -> list[Explained]:
    """Tell a diff of a base and an adapter, which stands for the merged model."""
    for side, verb in (("right", "merged"), ("left", "taken out")):
        chosen = [each for each in diff.deltas if (info := _info(each, side)) and _merged(info)]
        moved = [each for each in chosen if each.kind not in SAME]
        if not moved:
            continue
        names = [name_of(each) for each in moved]
        matches = [_merged(info) for each in moved if (info := _info(each, side))]
        ranks = sorted({int(match["rank"]) for match in matches if match})
        kind = next(match["kind"] for match in matches if match)
        numbers = {"rank": ranks[-1], "ranks": ranks, "matrices": len(names)}
        text = f"the adapter ({kind}, rank {_ranks(ranks)}) {verb} in {where(names)}"
        return [explained(diff, "adapter_merged", names, text, numbers)]
    return []


def _info(delta: Delta, side: str) -> TensorInfo | None:
    return delta.pair.left if side == "left" else delta.pair.right


def _ranks(ranks: list[int]) -> str:
    return str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]} to {ranks[-1]}"


def _verified(diff: Diff, other: Diff) -> list[Explained]:
    """Compare what was added to the left with what the adapter adds.

    The other diff has the right with the adapter once more on its left side: less the right, that
    is what the adapter adds.
    """
    import numpy as np

    homes = {each.pair.right.name: each for each in diff.deltas if each.pair.right}
    names, ranks = [], set()
    dot = size = moved = 0.0
    for delta in other.deltas:
        left, right = delta.pair.left, delta.pair.right
        match = _merged(left) if left else None
        home = homes.get(right.name) if right else None
        if not (left and right and match and home and home.pair.left):
            continue
        if match["kind"] == "DoRA" or home.pair.left.shape != right.shape:
            return []
        before = diff.values("left", home.pair.left.name).pieces()
        more = other.values("left", left.name).pieces()
        for one, two, three in zip(
            before, diff.values("right", right.name).pieces(), more, strict=True
        ):
            added = two.astype(np.float64) - one
            adapter = three.astype(np.float64) - two
            dot += float(added @ adapter)
            size += float(adapter @ adapter)
            moved += float(added @ added)
        names.append(name_of(home))
        ranks.add(int(match["rank"]))
    if not names or size == 0 or moved == 0:
        return []
    strength = dot / size
    rest = max(0.0, moved - strength * dot)
    if rest > _REST * moved:
        return []
    order = sorted(ranks)
    numbers = {"rank": order[-1], "strength": strength, "rest": rest / moved}
    times = "" if abs(strength - 1) <= 0.01 else f" times {strength:.4g}"
    text = f"the rank-{_ranks(order)} adapter merged{times} into {where(names)} (verified)"
    return [explained(diff, "adapter_merged", names, text, numbers, rest=rest)]
