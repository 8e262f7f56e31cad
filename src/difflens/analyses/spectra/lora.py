"""Does a change look like a LoRA that was merged into its base? Evidence, never proof.

A merged adapter is of low rank, plus what rounding to storage added; everything it was not meant
for stays bit-identical (Hu et al. 2021, "LoRA").
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...diffs import Diff
from ..anatomy.roles import role
from .matrices import Changed


class Verdict(NamedTuple):
    """The word, the ranks by role behind it, and what speaks against it."""

    word: str
    ranks: dict[str, list[int]]
    against: list[str]

    def told(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {"verdict": self.word, "rank_by_role": self.ranks, "against": self.against}


def merged_lora(
    diff: Diff, matrices: list[Changed], ranks: dict[str, int | None], fraction: float
) -> Verdict:
    """Weigh it: equal and small ranks within each role, and nothing else changed at all."""
    against = [*_others(diff, matrices), *_too_high(matrices, ranks, fraction)]
    by_role: dict[str, set[int]] = {}
    for each in matrices:
        by_role.setdefault(role(each.name), set()).add(ranks[each.name] or 0)
    uneven = [f"{name}: {sorted(found)}" for name, found in by_role.items() if len(found) > 1]
    if uneven:
        against.append(f"ranks differ within a role: {'; '.join(uneven)}")
    word = "not_consistent" if against else "consistent"
    return Verdict(word, {name: sorted(found) for name, found in by_role.items()}, against)


def _others(diff: Diff, matrices: list[Changed]) -> list[str]:
    """Count tensors beside the changed matrices that are not bit-identical."""
    known = {id(each.delta) for each in matrices}
    same = {"identical", "tied", "paired"}
    others = sum(delta.kind not in same and id(delta) not in known for delta in diff.deltas)
    return [f"{others} tensors that are no matrices changed too"] if others else []


def _too_high(matrices: list[Changed], ranks: dict[str, int | None], fraction: float) -> list[str]:
    """Find ranks that are unknown, zero, or above a fraction of the smaller side."""
    unknown = sum(ranks[each.name] is None for each in matrices)
    nothing = sum(ranks[each.name] == 0 for each in matrices)
    high = sum(
        (ranks[each.name] or 0) > fraction * min(each.change.rows, each.change.columns)
        for each in matrices
    )
    diffuse = sum(_is_diffuse(each) for each in matrices)
    return [
        text
        for count, text in (
            (unknown, f"{unknown} matrices are too large for their rank to be known"),
            (nothing, f"{nothing} matrices have no direction above their noise"),
            (high, f"{high} matrices have a rank above {fraction:g} of their smaller side"),
            (diffuse, f"in {diffuse} matrices the rest is more than rounding explains"),
        )
        if count
    ]


def _is_diffuse(each: Changed) -> bool:
    """Is there a bulk of change that storage does not explain? Blocks of a quantised one do."""
    right = each.delta.pair.right
    return each.change.noise_source == "median" and not (right and right.stored)
