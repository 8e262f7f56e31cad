"""Were weights set to zero, and nothing else done?"""

from __future__ import annotations

from statistics import median

from ...measure.sparsity import Sparsity
from .change import Change, Numbers


def pruned(change: Change) -> Numbers | None:
    """Give the part of the changed tensors that is zero now and was not.

    If every element that differs were one that became zero, then the differing elements would be
    as many as the zeros gained; and only then, for an element that changed otherwise, or ceased to
    be zero, adds to the one number and not to the other.
    """
    if not change.is_measured:
        return None
    scans = [each.scan for each in change.measured]
    gained = [scan.right_zeros - scan.left_zeros for scan in scans]
    told = zip(scans, gained, strict=True)
    if not all(0 < number == scan.changed for scan, number in told):
        return None
    elements = sum(scan.count for scan in scans)
    zeros = sum(scan.right_zeros for scan in scans)
    found = {"newly_zeroed": sum(gained) / elements, "zeros": zeros / elements}
    return found | _pattern(change)


def _pattern(change: Change) -> Numbers:
    """Tell how the zeros lie: the least part of groups that keep to n of m, and who was zeroed."""
    names = set(change.scans)
    taken = [found for delta, found in change.diff.measured(Sparsity) if delta.name in names]
    figures: Numbers = {}
    for name in ("two_of_four", "four_of_eight"):
        shares = [value for each in taken if (value := getattr(each, f"right_{name}")) is not None]
        if shares:
            figures[name] = min(shares)
    ranked = [each.pruning_auc for each in taken if each.pruning_auc is not None]
    if ranked:
        figures["pruning_auc"] = median(ranked)
    return figures
