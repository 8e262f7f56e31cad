"""An output head of another size, drawn anew, or under another name, on a body that is kept."""

from __future__ import annotations

from math import sqrt

from difflens.core.records import MOVED, Delta
from difflens.measure.scan import Scan
from difflens.models.anatomy.places import together
from difflens.models.anatomy.roles import layer, role

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from ..representations import embedding_table
from .records import explained, is_related, name_of
from .table_rows import compare_rows

_LEAST = 64  # elements that speak of a correlation
_SURE = 3.0  # standard errors of a correlation that is none
_ALIKE = 30.0  # how many times the size of before a head that was drawn anew may have


def replaced_heads(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """Explain the heads whose classes changed in number, and those that were drawn anew."""
    heads = [each for each in diff.deltas if _is_head(each)]
    if not heads or all(each.kind == "identical" for each in heads) or not is_related(diff):
        return []
    modules = {layer(each.name) for each in heads if _is_matrix(each)}
    records = []
    for module in sorted(modules):
        group = [each for each in heads if layer(each.name) == module]
        record = _resized(diff, group) or _drawn_anew(diff, group)
        records += [record] if record else []
    exchanged = _exchanged(diff, heads)
    return records + ([exchanged] if exchanged else [])


def _is_head(delta: Delta) -> bool:
    names = [info.name for info in (delta.pair.left, delta.pair.right) if info]
    # The bias of a head has the role `bias`: the weight beside it tells.
    return any(role(f"{layer(name)}.weight") == "head" for name in names)


def _is_matrix(delta: Delta) -> bool:
    left, right = delta.pair.left, delta.pair.right
    return bool(left and right and len(left.shape) == len(right.shape) == 2)


def _resized(diff: Diff, group: list[Delta]) -> Explained | None:
    """Tell a head of another number of classes, unless its rows are the vocabulary's."""
    main = next((each for each in group if _is_matrix(each) and each.kind == "reshaped"), None)
    left, right = (main.pair.left, main.pair.right) if main else (None, None)
    if main is None or left is None or right is None or left.shape[1:] != right.shape[1:]:
        return None
    table = embedding_table(diff)
    if table and table.left.shape[0] == left.shape[0] and table.right.shape[0] == right.shape[0]:
        return None
    import numpy as np

    first = np.arange(min(left.shape[0], right.shape[0]))
    sides = diff.values("left", left.name), diff.values("right", right.name)
    rows = compare_rows(sides[0], sides[1], (first, first))
    kept = rows.identical if rows.is_related else 0
    names = [name_of(each) for each in group if each.kind == "reshaped"]
    numbers = {"from": left.shape[0], "to": right.shape[0], "kept": kept}
    size = f"{left.shape[0]:,} to {right.shape[0]:,} outputs"
    module = layer(left.name)
    text = f"{module} replaced: {size}"
    if rows.is_related:
        moved = "unchanged" if kept == len(first) else "trained on"
        text = f"{module} resized from {size}, the first {len(first):,} {moved}"
    return explained(diff, "head_replaced", names, text, numbers)


def _drawn_anew(diff: Diff, group: list[Delta]) -> Explained | None:
    """Tell a head of the same shape that has nothing in common with the one before."""
    main = next((each for each in group if _is_matrix(each) and each.kind in MOVED), None)
    scan = main.measured(Scan) if main else None
    if main is None or scan is None or not _is_stranger(scan):
        return None
    names = [name_of(each) for each in group if each.kind in MOVED]
    r = scan.pearson or 0.0
    numbers = {"correlation": r, "elements": scan.count}
    text = f"{layer(name_of(main))} drawn anew (correlation with before {r:.2g})"
    return explained(diff, "reinitialised", names, text, numbers)


def _is_stranger(scan: Scan) -> bool:
    """Is it of similar size, not correlated, and no other order of the same values?"""
    if scan.pairs < max(_LEAST, scan.count) or not (scan.left_m2 > 0 and scan.right_m2 > 0):
        return False
    ratio = sqrt(scan.right_m2 / scan.left_m2)
    same = abs(ratio - 1) < 1e-6 and (scan.left_min, scan.left_max) == (
        scan.right_min,
        scan.right_max,
    )
    is_alike = 1 / _ALIKE < ratio < _ALIKE
    return is_alike and not same and abs(scan.pearson or 0.0) <= _SURE / sqrt(scan.count)


def _exchanged(diff: Diff, heads: list[Delta]) -> Explained | None:
    """Tell a head that went while another one came."""
    gone = [each for each in heads if each.kind == "removed"]
    new = [each for each in heads if each.kind == "added"]
    if not (gone and new):
        return None
    before, after = (sorted({layer(each.name) for each in side}) for side in (gone, new))
    numbers = {"from": before, "to": after}
    text = f"head {together(before[:3])} replaced by {together(after[:3])}"
    names = [name_of(each) for each in (*gone, *new)]
    return explained(diff, "head_replaced", names, text, numbers)
