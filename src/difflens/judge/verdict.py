"""The verdict over a diff: does anything differ, and how is that said in one sentence?"""

from __future__ import annotations

from ..records import Totals, Verdict

_DIFFERENCES = ("changed", "recast", "reshaped", "added", "removed", "uncompared")
_WORDS = {"uncompared": "not compared", "recast": "cast to another dtype"}


def verdict(totals: Totals, *, metadata_changes: int = 0, epsilon: float = 0.0) -> Verdict:
    """Judge the totals; a prefix, a tied weight or metadata alone make no difference.

    >>> verdict(Totals(tensors=2, identical=2)).sentence
    'identical: both tensors hold the same bits'
    """
    parts = [
        f"{getattr(totals, kind)} {_WORDS.get(kind, kind)}"
        for kind in _DIFFERENCES
        if getattr(totals, kind)
    ]
    if totals.renamed_beyond_prefix:
        parts.append(f"{totals.renamed_beyond_prefix} renamed")
    if parts:
        return Verdict(True, "different", f"different: {', '.join(parts)}, of {_count(totals)}")
    if totals.within_epsilon:
        near = f"{totals.within_epsilon} of {_count(totals)} moved, none by more than {epsilon:g}"
        return Verdict(False, "within_epsilon", f"equal within epsilon: {near}")
    if totals.paired:
        text = f"same structure: {_all(totals)} {_have(totals)} the same shape and dtype"
        return Verdict(False, "same_structure", f"{text}; values were not read")
    asides = _asides(totals, metadata_changes)
    if asides:
        return Verdict(False, "equal", f"equal: every value is the same; {', '.join(asides)}")
    if not totals.tensors:
        return Verdict(False, "identical", "identical: neither side holds a tensor")
    return Verdict(False, "identical", f"identical: {_all(totals)} hold{_s(totals)} the same bits")


def _asides(totals: Totals, metadata_changes: int) -> list[str]:
    asides = []
    if totals.renamed:
        asides.append(f"{totals.renamed} carry another name")
    if totals.tied:
        asides.append(f"{totals.tied} stored once, as tied")
    if metadata_changes:
        asides.append(
            f"{metadata_changes} metadata {'keys' if metadata_changes > 1 else 'key'} changed"
        )
    return asides


def _count(totals: Totals) -> str:
    return f"{totals.tensors:,} tensor{'' if totals.tensors == 1 else 's'}"


def _all(totals: Totals) -> str:
    return {1: "the one tensor", 2: "both tensors"}.get(totals.tensors, f"all {_count(totals)}")


def _have(totals: Totals) -> str:
    return "has" if totals.tensors == 1 else "have"


def _s(totals: Totals) -> str:
    return "s" if totals.tensors == 1 else ""
