"""Tags: one word for the kind of change, where one record of `changes` explains all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from difflens.models.anatomy.roles import role

from .change import Change, Numbers
from .directions import SPECTRA
from .explain import left_name
from .explained import Explained
from .groups import Summary
from .texts import is_full

# The tag of a record that explains every difference. Other kinds are their own tag.
_TAGS = {
    "cast": "dtype_cast",
    "scaled": "uniform_scale",
    "sign_flipped": "uniform_scale",
    "dequantised": "quantised",
    "palette": "quantised",
    "outer_product": "row_edit",
    "sparse_edit": "sparse_delta",
    "extrapolated": "averaged",
}
TAGS = (
    "bitwise_identical",
    "dtype_cast",
    "uniform_scale",
    "permuted",
    "quantised",
    "pruned",
    "averaged",
    "head_only",
    "bias_only",
    "norm_only",
    "row_edit",
    "low_rank",
    "sparse_delta",
    "full_finetune",
)
_ONLY: dict[str, Callable[[str], bool]] = {
    "head_only": lambda name: role(name) == "head",
    "bias_only": lambda name: name.endswith("bias"),
    "norm_only": lambda name: role(name) == "norm",
}
# These account for every element: no other tag adds anything to them.
_WHOLE = frozenset(TAGS[:7])


def patterns(change: Change, summary: Summary) -> dict[str, Numbers]:
    """Return every tag that holds, the primary one first; `mixed` where none does."""
    if not change.differing:
        identical = sum(delta.kind in {"identical", "tied"} for delta in change.deltas)
        if identical == len(change.deltas):
            return {"bitwise_identical": {"identical": identical}}
        return {"within_epsilon": _counts(change)}
    names = {delta.name for delta in change.differing}
    only = {tag: _counts(change) for tag, is_one in _ONLY.items() if all(map(is_one, names))}
    tag, numbers = _single(change, summary)
    found = {tag: numbers} if tag and numbers is not None else {}
    if tag not in _WHOLE:
        found = only | found
    return found or {"mixed": _counts(change)}


def _single(change: Change, summary: Summary) -> tuple[str, Numbers | None]:
    """Return the tag of the one kind of record that explains every difference."""
    main = [record for record in summary.records if record.kind != "cast"]
    records = main or list(summary.records)
    kinds = {record.kind for record in records}
    if len(kinds) != 1 or not _is_all(change, summary) or kinds & _NO_TAG:
        return "", None
    (kind,) = kinds
    if kind == "trained":
        fraction = sum(len(record.names) for record in records) / max(1, change.parameters)
        full = any(is_full(change, record) for record in records)
        return ("full_finetune", {"moved_fraction": fraction}) if full else ("", None)
    beside = main and len(main) < len(summary.records)  # a cast: the rest is not bit-equal
    several = kind == "scaled" and len(records) > 1
    overflowed = kind == "cast" and change.new_nonfinite
    if several or overflowed or (beside and kind in {"pruned", "scaled"}):
        return "", None
    tag = _TAGS.get(kind, kind)
    return tag, _numbers(records, tag)


_NO_TAG = frozenset(
    {"reshaped", "tensors_added", "tensors_removed", "state_changed", "config_changed"}
    | {"tokens_changed"}
)


def _is_all(change: Change, summary: Summary) -> bool:
    named = {name for record in summary.records for name in record.names}
    named |= {left_name(each.delta) for each in summary.found.tensors if not each.moved}
    differing = {(delta.pair.left or delta.pair.right) for delta in change.differing}
    return all(info is None or info.name in named for info in differing)


def _numbers(records: list[Explained], tag: str) -> Numbers:
    first = records[0].numbers
    number = len({name for record in records for name in record.names})
    if tag == "dtype_cast":
        return {"recast": number, "over_rounding": 0}
    if tag == "row_edit" and "rows" in first:
        return {"rows_changed": first["rows_changed"], "rows": first["of_rows"]}
    if tag == "sparse_delta":
        return {"changed_fraction": first["fraction"]}
    if tag == "pruned":
        return {"zeros": first["sparsity"], **_scalars(first)}
    if tag == "low_rank":
        ranks = [record.numbers["least_rank"] for record in records]
        found = {"rank": max(ranks), "least_rank": min(ranks), "matrices": number}
        return _scalars(first) | found
    return _scalars(first) | {"tensors": number}


def _scalars(numbers: dict[str, Any]) -> Numbers:
    return {
        key: value
        for key, value in numbers.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def _counts(change: Change) -> Numbers:
    return {"differing": len(change.differing), "tensors": len(change.deltas)}


def tested(change: Change, summary: Summary) -> list[str]:
    """Say what was tested, what could not be, and why."""
    blind = not (change.evidence.base or change.evidence.trajectory)
    names = [tag for tag in TAGS if not (blind and tag == "averaged")]
    lines = [f"tags tested: {', '.join(names)}"]
    if blind:
        lines.append("averaged was not tested: it needs --base")
    low = [record for record in summary.records if record.kind == "low_rank"]
    if low:
        lines.append("a low rank is evidence of a merged LoRA, not proof (other training has it)")
        number = sum(len(record.names) for record in low)
        if number > SPECTRA:
            lines.append(f"the rank was taken of {SPECTRA} of {number} matrices")
    lines.append("names that need values are found in samples of rows, and confirmed where exact")
    return lines
