"""Tags: what kind of change it was, each with the numbers behind it.

A tag is said only if it explains every difference between the models. The tags
stand in order of precedence; the first that holds is the primary one. Those that
cost another pass are tested only where the scan leaves them possible.
"""

from __future__ import annotations

from collections.abc import Callable

from ..anatomy.roles import role
from .averaged import averaged
from .change import Change, Numbers
from .permuted import permuted
from .pruned import pruned
from .quantised import quantised
from .rounding import is_rounding_only
from .rows import row_edit
from .scale import uniform_scale
from .spectra import low_rank, sampled


def patterns(change: Change) -> dict[str, Numbers]:
    """Give every tag that holds, the primary one first; `mixed` where none does."""
    found: dict[str, Numbers] = {}
    for tag, test in TAGS.items():
        # What costs another pass is not tested where something cheaper explains everything.
        if (tag in _NARROW and found) or (tag == "full_finetune" and _NARROW & set(found)):
            continue
        numbers = test(change)
        if numbers is None:
            continue
        found[tag] = numbers
        if tag in _WHOLE:
            break
    return found or {"mixed" if change.differing else "within_epsilon": _counts(change)}


def _bitwise_identical(change: Change) -> Numbers | None:
    identical = sum(delta.kind in {"identical", "tied"} for delta in change.deltas)
    return {"identical": identical} if identical == len(change.deltas) else None


def _dtype_cast(change: Change) -> Numbers | None:
    scans = [each.scan for each in change.measured if each.delta.kind == "recast"]
    if not scans or len(scans) < len(change.differing) or not all(map(is_rounding_only, scans)):
        return None
    return {"recast": len(scans), "over_rounding": 0}


def _only(is_one: Callable[[str], bool]) -> Callable[[Change], Numbers | None]:
    def test(change: Change) -> Numbers | None:
        if not change.differing or not all(is_one(delta.name) for delta in change.differing):
            return None
        return _counts(change)

    return test


def _sparse_delta(change: Change) -> Numbers | None:
    elements = sum(each.scan.count for each in change.measured)
    if not change.is_measured or not elements:
        return None
    fraction = sum(each.scan.changed for each in change.measured) / elements
    limit = change.thresholds["sparse_fraction"]
    return {"changed_fraction": fraction} if fraction < limit else None


def _full_finetune(change: Change) -> Numbers | None:
    if not change.moved_parameters or _sparse_delta(change):
        return None
    fraction = change.moved_parameters / change.parameters
    limit = change.thresholds["full_fraction"]
    return {"moved_fraction": fraction} if fraction >= limit else None


def _counts(change: Change) -> Numbers:
    return {"differing": len(change.differing), "tensors": len(change.deltas)}


def tested(change: Change, found: dict[str, Numbers]) -> list[str]:
    """Say which tags were tested, which could not be, and why."""
    whole = next((tag for tag in found if tag in _WHOLE), None)
    names = list(TAGS)[: list(TAGS).index(whole) + 1 if whole else None]
    first = next(iter(found))
    skipped = [tag for tag in names if tag in _NARROW and _is_before(first, tag)]
    blind = not (change.evidence.base or change.evidence.trajectory)
    missing = {*skipped, *(["averaged"] if blind else [])}
    lines = [f"tags tested: {', '.join(name for name in names if name not in missing)}"]
    if skipped:
        lines.append(f"{' and '.join(skipped)} not tested: {first} explains every difference")
    if whole and names != list(TAGS):
        lines.append(f"tags after {whole} were not tested: it accounts for every element")
    elif blind:
        lines.append("averaged was not tested: it needs --base")
    if "low_rank" in found:
        lines.append("a low rank is evidence of a merged LoRA, not proof (other training has it)")
        lines.extend(sampled(change))
    if not change.is_measured and change.differing:
        lines.append(
            "tags about values were not tested: some tensors differ in shape, exist on one side"
            " only or could not be compared"
        )
    return lines


def _is_before(first: str, tag: str) -> bool:
    order = list(TAGS)
    return first in TAGS and order.index(first) < order.index(tag)


TAGS: dict[str, Callable[[Change], Numbers | None]] = {
    "bitwise_identical": _bitwise_identical,
    "dtype_cast": _dtype_cast,
    "uniform_scale": uniform_scale,
    "permuted": permuted,
    "quantised": quantised,
    "pruned": pruned,
    "averaged": averaged,
    "head_only": _only(lambda name: role(name) == "head"),
    "bias_only": _only(lambda name: name.endswith("bias")),
    "norm_only": _only(lambda name: role(name) == "norm"),
    "row_edit": row_edit,
    "low_rank": low_rank,
    "sparse_delta": _sparse_delta,
    "full_finetune": _full_finetune,
}
# These account for every element: no other tag adds anything to them.
_WHOLE = frozenset({
    "bitwise_identical", "dtype_cast", "uniform_scale", "permuted", "quantised", "pruned",
    "averaged",
})  # fmt: skip
# Few directions, however many tensors: that is not what a full fine-tune means.
_NARROW = frozenset({"row_edit", "low_rank"})
