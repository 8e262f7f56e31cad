"""The tests over all layers, and what needs no test."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from ...diffs import Diff
from ...measure.scan import Scan
from ...records import SAME, Delta
from ..anatomy.roles import is_parameter, role
from ..changes.rounding import is_rounding_only
from .layers import Kinship
from .ranks import bonferroni, fisher, log10_p_of_correlation

_SHARED = frozenset({"embedding", "norm", "bias"})  # these share means, or are laid down alike


class Found(NamedTuple):
    """One test over all layers: median effect, combined p, how many layers spoke."""

    rho: float
    log10_p: float
    spoke: int


def sameness(diff: Diff) -> str | None:
    """Are the models the same, bit for bit or but for storage rounding?"""
    if all(delta.kind in SAME - {"within_epsilon"} for delta in diff.deltas):
        return "identical"
    rest = [delta.measured(Scan) for delta in diff.deltas if delta.kind not in SAME]
    moved = [delta for delta in diff.deltas if delta.kind == "within_epsilon"]
    scans = [*rest, *(delta.measured(Scan) for delta in moved)]
    return "same_up_to_rounding" if all(map(_is_rounded, scans)) else None


def _is_rounded(scan: Scan | None) -> bool:
    return scan is not None and scan.count > 0 and is_rounding_only(scan)


def tests_of(diff: Diff, layers: list[Kinship]) -> dict[str, Found]:
    """Put the layers together, test by test."""
    tests = {}
    for name, prefix in (("u_test", "u"), ("match_test", "match")):
        rhos = [getattr(each, f"{prefix}_rho") for each in layers]
        ps = [getattr(each, f"{prefix}_log10_p") for each in layers]
        known = [(rho, p) for rho, p in zip(rhos, ps, strict=True) if rho is not None]
        if known:
            tests[name] = Found(median(rho for rho, _ in known), fisher([p for _, p in known]),
                                len(known))  # fmt: skip
    direct = list(_correlations(diff))
    if direct:
        ps = [log10_p_of_correlation(r, n) for r, n in direct]
        tests["direct"] = Found(median(r for r, _ in direct), bonferroni(ps), len(direct))
    return tests


def _correlations(diff: Diff) -> Iterator[tuple[float, int]]:
    """Yield the centred correlation of each matrix that moved, with how many numbers it holds."""
    for delta in diff.deltas:
        scan = delta.measured(Scan)
        if scan is None or not _is_matrix(delta) or delta.kind == "identical":
            continue
        r = scan.pearson
        if r is not None and scan.pairs == scan.count:
            yield r, scan.pairs


def _is_matrix(delta: Delta) -> bool:
    left, right = delta.pair.left, delta.pair.right
    if not (left and right) or left.shape != right.shape or len(left.shape) < 2:
        return False
    floats = is_parameter(delta.name, left.dtype, right.dtype)
    return floats and min(left.shape[:2]) >= 16 and role(delta.name) not in _SHARED
