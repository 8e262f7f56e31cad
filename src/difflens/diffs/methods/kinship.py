"""Kinship of two models: how far the units of their layers keep their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import exp, inf, lgamma, log, log1p, log10
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from difflens.core.records import MOVED, SAME, Delta
from difflens.measure.scan import Scan

from ..diff import Diff
from .agreement import Agreement
from .changes.energy import is_rounding_only
from .likeness import Likeness, likeness
from .symmetry.matching import match_rows
from .symmetry.slots import Group, Slot, by_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray


_LN10 = log(10)


def spearman(left: NDArray[Any], right: NDArray[Any]) -> float:
    """Return Spearman's rank correlation of two sequences without ties."""
    import numpy as np

    ranks = [np.argsort(np.argsort(side)).astype(np.float64) for side in (left, right)]
    n = len(left)
    apart = float(np.square(ranks[0] - ranks[1]).sum())
    return 1 - 6 * apart / (n * (n * n - 1.0))


def log10_p_of_rank_correlation(rho: float, n: int) -> float:
    """Return log10 of the two-sided p under exchangeable order: Student's t with n - 2 degrees.

    p = I_x((n - 2) / 2, 1 / 2) with x = 1 - rho²; never below that of a perfect match, 2 / n!.
    """
    from scipy.special import betainc, betaln, hyp2f1

    floor = (log(2) - lgamma(n + 1)) / _LN10
    x, half = 1 - rho * rho, (n - 2) / 2
    if x <= 0:
        return floor
    p = float(betainc(half, 0.5, x))
    if p > 1e-200:
        return max(floor, log(p) / _LN10)
    # I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) 2F1(a + b, 1; a + 1; x)  (DLMF 8.17.8)
    tail = float(hyp2f1(half + 0.5, 1, half + 1, x))
    whole = half * log(x) + 0.5 * log1p(-x) - log(half) - float(betaln(half, 0.5)) + log(tail)
    return max(floor, whole / _LN10)


def fisher(log10_ps: Sequence[float]) -> float:
    """Combine independent p-values: -2 sum ln p is chi-squared with 2k degrees (Fisher 1925).

    For even degrees P(> 2s) = exp(-s) sum_{j<k} s^j / j!, here as a logarithm.
    """
    s = -sum(log10_ps) * _LN10
    if s <= 0:
        return 0.0
    terms = [j * log(s) - lgamma(j + 1) for j in range(len(log10_ps))]
    largest = max(terms, default=-inf)
    total = largest + log(sum(exp(term - largest) for term in terms))
    return min(0.0, (total - s) / _LN10)


def bonferroni(log10_ps: Sequence[float]) -> float:
    """Combine p-values that may depend on each other: the smallest times their number."""
    return min(0.0, min(log10_ps) + log(len(log10_ps)) / _LN10)


# Rows of a layer are exchangeable before training starts, so that two independent models match in
# a random order (Zhu, Ahmed, Kuditipudi & Liang 2025, Independence Tests for Language Models).
# Gates of a recurrent layer and halves of a fused one are blocks, not units: a unit is
# taken over all.

Load = Callable[[Slot], "NDArray[Any]"]


class Kinship(NamedTuple):
    """What the tests say of one layer; None if a test does not apply."""

    layer: str
    units: int
    sampled: int
    u_rho: float | None
    u_log10_p: float | None
    match_rho: float | None
    match_log10_p: float | None
    gram_rho: float | None = None
    gram_log10_p: float | None = None


def kinship(
    groups: tuple[Group, Group], loads: tuple[Load, Load], most: int, seed: int
) -> Kinship | None:
    """Test one layer; `most` units of the left are looked for among all of the right."""
    import numpy as np

    left, right = groups
    units = left.units
    random = np.random.default_rng(seed)
    chosen = np.sort(random.permutation(units)[: min(most, right.units)])
    whole, after = _views(left, loads[0]), _views(right, loads[1])
    before = [view[chosen] for view in whole]
    alike = zip(before, after, strict=False)
    found = [match_rows(a, b) for a, b in alike if _is_matchable(a, b)]
    n = len(chosen)
    u_rho = match_rho = gram = None
    if found and units == right.units:
        u_rho = spearman(chosen, found[0])
    if len(found) > 1 and len(found[0]) == len(found[1]):
        match_rho = spearman(found[0], found[1])
    if whole and after and units == right.units:
        gram = _gram(before[0], after[0][chosen])
    if u_rho is None and match_rho is None and gram is None:
        return None
    tests = (u_rho, _p(u_rho, n), match_rho, _p(match_rho, n))
    return Kinship(left.name, units, n, *tests, *(gram or (None, None)))


def _gram(left: NDArray[Any], right: NDArray[Any]) -> Likeness | None:
    import numpy as np

    finite = np.isfinite(left).all() and np.isfinite(right).all()
    return likeness(left, right) if finite else None


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
    """Return the units' weights, and where there are any their weights in a second place.

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
    """Return the units' weights in the first place."""
    slot = group.slot("up") or group.slot("gate_up")
    return by_unit(load(slot), slot) if slot else None


Item = TypeVar("Item")


class Sides(NamedTuple):
    """The groups of units of both models."""

    left: list[Group]
    right: list[Group]


def paired(diff: Diff, sides: Sides) -> Iterator[tuple[Group, Group]]:
    """Yield the groups whose first tensors are a pair and that are made up alike."""
    pairs = (delta.pair for delta in diff.deltas)  # what content paired has a partner only here
    partners = {pair.left.name: pair.right.name for pair in pairs if pair.left and pair.right}
    after = {(group.kind, group.slots[0].name): group for group in sides.right}
    for group in sides.left:
        other = after.get((group.kind, partners.get(group.slots[0].name, "")))
        if other and [slot.part for slot in group.slots] == [slot.part for slot in other.slots]:
            yield group, other


def loads(diff: Diff) -> tuple[Load, Load]:
    """Return what reads a slot's tensor, for each side."""

    def of(side: Literal["left", "right"]) -> Load:
        def load(slot: Slot) -> NDArray[Any]:
            whole: NDArray[Any] = diff.values(side, slot.name).array()
            return whole

        return load

    return of("left"), of("right")


def spread(items: list[Item], most: int) -> list[Item]:
    """Take so many at most, evenly over the whole."""
    if len(items) <= most:
        return items
    return [items[index * len(items) // most] for index in range(most)]


class Found(NamedTuple):
    """One test over all layers: median effect, p of so much in half of them, how many spoke.

    `kin` counts the layers that speak for kinship each by itself.
    """

    rho: float
    log10_p: float
    spoke: int
    kin: int


class Bar(NamedTuple):
    """What one layer must pass to count as kin: effect, and log10 p times the number of tests."""

    rho: float
    log10_p: float


def sameness(diff: Diff) -> str | None:
    """Do both hold the same tensors, bit for bit or but for storage rounding?"""
    rest = [delta for delta in diff.deltas if delta.kind not in SAME - {"within_epsilon"}]
    if not rest:
        return "identical"
    return "same_up_to_rounding" if all(map(_is_rounded, rest)) else None


def _is_rounded(delta: Delta) -> bool:
    """Was it compared with a partner, and moved no further? A lone tensor has moved nowhere."""
    scan = delta.measured(Scan) if delta.kind in MOVED else None
    return scan is not None and scan.count > 0 and is_rounding_only(scan)


def tests_of(layers: list[Kinship], direct: list[Agreement], bar: Bar) -> dict[str, Found]:
    """Put the layers together, test by test."""
    found = {}
    for name, prefix in (("u_test", "u"), ("match_test", "match"), ("gram", "gram")):
        values = [
            (getattr(each, f"{prefix}_rho"), getattr(each, f"{prefix}_log10_p")) for each in layers
        ]
        found[name] = [(rho, p) for rho, p in values if rho is not None]
    found["direct"] = [(each.rho, each.log10_p) for each in direct]
    return {
        name: _together(values, bar, independent=name != "direct")
        for name, values in found.items()
        if values
    }


def _together(values: list[tuple[float, float]], bar: Bar, *, independent: bool) -> Found:
    """Combine the layers; what is small only in a few of them is no p of the model.

    The p of a partial conjunction, that fewer than half have an effect (Benjamini & Heller 2008):
    of the larger half of the p-values, so that it is small only where the median speaks too. By
    Fisher for units of layers, by Bonferroni for matrices, which share units.
    """
    ps = sorted(p for _, p in values)
    rest = ps[(len(ps) - 1) // 2 :]
    p = fisher(rest) if independent else bonferroni(rest)
    kin = sum(rho > bar.rho and one + log10(len(ps)) < bar.log10_p for rho, one in values)
    return Found(median(rho for rho, _ in values), p, len(values), kin)


def smallest_log10_p(layers: list[Kinship], direct: list[Agreement]) -> float | None:
    """Return the smallest p of any test of any layer, times their number; None without a test."""
    ps = [p for each in layers for p in (each.u_log10_p, each.match_log10_p, each.gram_log10_p)]
    known = [p for p in ps if p is not None] + [each.log10_p for each in direct]
    return bonferroni(known) if known else None
