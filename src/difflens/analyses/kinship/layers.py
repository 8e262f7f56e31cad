"""Layer by layer: do the units of two models match where they would not by chance?

Rows of a layer are exchangeable before training starts, so that two independent models match in
a random order (Zhu, Ahmed, Kuditipudi & Liang 2025, Independence Tests for Language Models). Gates
of a recurrent layer and halves of a fused one are blocks, not units: a unit is taken over all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..symmetry.matching import match_rows
from ..symmetry.slots import Group, Slot, by_unit
from .ranks import log10_p_of_rank_correlation, spearman

if TYPE_CHECKING:
    from numpy.typing import NDArray

Load = Callable[[Slot], "NDArray[Any]"]


class Kinship(NamedTuple):
    """What the tests say of one layer; None where a test does not apply."""

    layer: str
    units: int
    sampled: int
    u_rho: float | None
    u_log10_p: float | None
    match_rho: float | None
    match_log10_p: float | None


def kinship(
    groups: tuple[Group, Group], loads: tuple[Load, Load], most: int, seed: int
) -> Kinship | None:
    """Test one layer; `most` units of the left are looked for among all of the right."""
    import numpy as np

    left, right = groups
    units = left.units
    random = np.random.default_rng(seed)
    chosen = np.sort(random.permutation(units)[: min(most, right.units)])
    before = [view[chosen] for view in _views(left, loads[0])]
    after = _views(right, loads[1])
    alike = zip(before, after, strict=False)
    found = [match_rows(a, b) for a, b in alike if _is_matchable(a, b)]
    if not found:
        return None
    n = len(chosen)
    u_rho = match_rho = None
    if units == right.units:
        u_rho = spearman(chosen, found[0])
    if len(found) > 1 and len(found[0]) == len(found[1]):
        match_rho = spearman(found[0], found[1])
    if u_rho is None and match_rho is None:
        return None
    return Kinship(left.name, units, n, u_rho, _p(u_rho, n), match_rho, _p(match_rho, n))


def _p(rho: float | None, n: int) -> float | None:
    return None if rho is None else log10_p_of_rank_correlation(rho, n)


def _is_matchable(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Are there as many columns, as many units to look among, and rows that differ?"""
    import numpy as np

    if left.shape[1] != right.shape[1] or len(left) > len(right):
        return False
    finite = np.isfinite(left).all() and np.isfinite(right).all()
    return bool(finite and (left != left[0]).any() and (right != right[0]).any())


def _views(group: Group, load: Load) -> list[NDArray[Any]]:
    """Give the units' weights, and where there are any their weights in a second place.

    Both must be read in coordinates that no reordering touches: of a chain only the first is.
    """
    up, gate = group.slot("up"), group.slot("gate")
    fused, down = group.slot("gate_up"), group.slot("down")
    split = fused or (up if up and up.blocks > 1 else None)
    if split:
        whole = by_unit(load(split), split)
        part = whole.shape[1] // split.blocks * max(1, split.blocks // 2)
        return [whole[:, :part], whole[:, part:]]
    if up is None:
        return []
    views = [by_unit(load(up), up)]
    second = gate or (down if group.kind == "mlp" else None)
    return [*views, by_unit(load(second), second)] if second else views


def first_view(group: Group, load: Load) -> NDArray[Any] | None:
    """Give the units' weights in the first place."""
    slot = group.slot("up") or group.slot("gate_up")
    return by_unit(load(slot), slot) if slot else None
