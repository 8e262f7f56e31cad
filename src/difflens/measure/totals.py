"""What a diff's deltas add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import isfinite, sqrt

from ..dtypes import FLOATS
from ..records import Delta, Pair, Totals
from .scan import Scan


def totals(deltas: Iterable[Delta], is_prefix_rename: Callable[[Pair], bool]) -> Totals:
    """Count the kinds, and say how far the float tensors that changed have moved."""
    kinds: Counter[str] = Counter()
    renamed = beyond = elements = changed_elements = 0
    moved = size = 0.0
    relative: list[float] = []
    for delta in deltas:
        kinds[delta.kind] += 1
        pair = delta.pair
        info = pair.right or pair.left
        elements += info.count if info else 0
        if pair.renamed and delta.kind != "tied":
            renamed += 1
            beyond += not is_prefix_rename(pair)
        scan = delta.measured(Scan)
        if scan is None or not (pair.left and pair.right):
            continue
        changed_elements += scan.changed
        moved_it = scan.changed and delta.kind != "within_epsilon"
        if moved_it and pair.left.dtype in FLOATS:
            moved += scan.square_sum
            size += scan.left_square_sum
            if scan.relative_l2 is not None:
                relative.append(scan.relative_l2)
    return Totals(
        tensors=sum(kinds.values()),
        **{kind: kinds[kind] for kind in Totals.__struct_fields__ if kind in kinds},
        renamed=renamed,
        renamed_beyond_prefix=beyond,
        elements=elements,
        changed_elements=None if kinds["paired"] else changed_elements,
        relative_l2=sqrt(moved / size) if size > 0 and isfinite(moved / size) else None,
        median_relative_l2=_median(relative),
    )


def _median(values: list[float]) -> float | None:
    """Give the middle one; the standard library's `statistics` takes 5 ms to import."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if not ordered:
        return None
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
