"""Tensors that went, came or changed their shape, where no other record explains them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from difflens.core.records import Delta
from difflens.models.anatomy.places import short, where
from difflens.models.anatomy.roles import is_parameter

from ...diff import Diff
from ..changes.explained import Explained
from ..changes.order import is_turned
from .records import counted, explained, is_related, name_of
from .table_rows import compare_rows

_PACKED = "._packed_params."
_KINDS = (("removed", "tensors_removed"), ("added", "tensors_added"), ("reshaped", "reshaped"))


def leftovers(diff: Diff, before: Iterable[Explained]) -> list[Explained]:
    """List what is on one side only or has another shape, and is in none of these records."""
    covered = {name for record in before for name in record.names}
    if not is_related(diff):
        return []
    covered |= _activation_scales(diff)
    records = []
    for kind, title in _KINDS:
        rest = [each for each in diff.deltas if each.kind == kind and name_of(each) not in covered]
        rest = [each for each in rest if not is_turned(diff, each)]
        if rest:
            records.append(_record(diff, title, kind, rest))
    return records


def _activation_scales(diff: Diff) -> set[str]:
    """Name what torch stores beside a weight that it quantised: nothing of the model is in it."""
    rights = [each.pair.right.name for each in diff.deltas if each.pair.right]
    modules = {name.partition(_PACKED)[0] for name in rights if _PACKED in name}
    return {module + end for module in modules for end in (".scale", ".zero_point")}


def _record(diff: Diff, title: str, verb: str, rest: list[Delta]) -> Explained:
    names = [name_of(each) for each in rest]
    sides = [each.pair.left or each.pair.right for each in rest]
    parameters = sum(info.count for info in sides if info)
    numbers = {"tensors": len(rest), "elements": parameters}
    what = (
        short(names[0]) if len(names) == 1 else f"{counted(len(names), 'tensor')} of {where(names)}"
    )
    text = f"{what} {verb}"
    if verb == "reshaped":
        shapes = Counter(_shapes(each) for each in rest)
        text += f": {shapes.most_common(1)[0][0]}"
        text += f" and {len(shapes) - 1} other ways" if len(shapes) > 1 else ""
        text += _rows(diff, rest[0]) if len(rest) == 1 else ""
    return explained(diff, title, names, text, numbers)


def _rows(diff: Diff, delta: Delta) -> str:
    """Say that the first rows are those of before, where only the number of rows changed."""
    import numpy as np

    left, right = delta.pair.left, delta.pair.right
    if not (left and right) or len(left.shape) != 2 or left.shape[1:] != right.shape[1:]:
        return ""
    if not is_parameter(delta.name, left.dtype, right.dtype):
        return ""
    first = np.arange(min(left.shape[0], right.shape[0]))
    sides = diff.values("left", left.name), diff.values("right", right.name)
    rows = compare_rows(sides[0], sides[1], (first, first))
    if rows.order != "place" or not len(first):
        return ""
    state = "unchanged" if rows.identical == len(first) else f"moved by {rows.relative_l2:.2g}"
    return f", the first {len(first):,} rows {state}"


def _shapes(delta: Delta) -> str:
    left, right = delta.pair.left, delta.pair.right
    return f"{list(left.shape)} to {list(right.shape)}" if left and right else ""
