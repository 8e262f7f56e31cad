"""Which tensors two snapshots share, by headers and fingerprints alone: no file is needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ..comparisons import TensorChanges
from ..snapshots import TensorSummary, WeightsSummary

Tensors = Mapping[str, TensorSummary]


def tensor_changes(left: WeightsSummary, right: WeightsSummary) -> TensorChanges | None:
    """Hold the tensors of two snapshots side by side; None where one lists none."""
    before, after = ({each.name: each for each in side.tensors} for side in (left, right))
    if not before or not after:
        return None
    renamed = _renamed(before, after)
    shared = [name for name in before if name in after]
    told = [name for name in shared if _is_fingerprinted(before[name], after[name])]
    same = [name for name in told if before[name].sha256 == after[name].sha256]
    alike = [name for name in shared if before[name].shape == after[name].shape]
    sets = [{(each.name, each.shape) for each in side.values()} for side in (before, after)]
    return TensorChanges(
        added=tuple(n for n in after if n not in before and n not in set(renamed.values())),
        removed=tuple(n for n in before if n not in after and n not in renamed),
        reshaped=tuple(n for n in shared if before[n].shape != after[n].shape),
        recast=tuple(n for n in alike if before[n].dtype != after[n].dtype),
        renamed=renamed,
        changed=len(told) - len(same) if told or not shared else None,
        identical=len(same) + len(renamed) if told or not shared else None,
        jaccard=len(sets[0] & sets[1]) / len(sets[0] | sets[1]),
    )


def changed_names(left: WeightsSummary, right: WeightsSummary) -> list[str]:
    """List the tensors of one shape and type on both sides whose fingerprints differ."""
    before, after = ({each.name: each for each in side.tensors} for side in (left, right))
    return [
        name
        for name in before
        if name in after
        and _is_fingerprinted(before[name], after[name])
        and before[name].sha256 != after[name].sha256
    ]


def _is_fingerprinted(left: TensorSummary, right: TensorSummary) -> bool:
    """Can their bytes be compared: one shape, one type, both hashed?"""
    alike = left.shape == right.shape and left.dtype == right.dtype
    return alike and left.sha256 is not None and right.sha256 is not None


def _renamed(before: Tensors, after: Tensors) -> dict[str, str]:
    """Match what is on one side only by its bytes, where only one tensor can be meant."""
    gone = _by_content(each for each in before.values() if each.name not in after)
    come = _by_content(each for each in after.values() if each.name not in before)
    return {
        names[0]: come[content][0]
        for content, names in gone.items()
        if len(names) == 1 and len(come.get(content, ())) == 1
    }


def _by_content(tensors: Iterable[TensorSummary]) -> dict[tuple[object, ...], list[str]]:
    found: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for each in tensors:
        if each.sha256 is not None:
            found[each.dtype, each.shape, each.sha256].append(each.name)
    return found
