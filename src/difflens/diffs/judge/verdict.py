"""The verdict over a diff: whether anything differs, in a word and a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from difflens.core.records import MetadataChange, Totals, Verdict

_DIFFERENCES = ("changed", "recast", "reshaped", "added", "removed", "uncompared")
_WORDS = {"uncompared": "not compared", "recast": "cast to another dtype"}


def verdict(
    totals: Totals,
    *,
    metadata_changes: int = 0,
    epsilon: float = 0.0,
    function: Sequence[MetadataChange] = (),
    state: str = "",
) -> Verdict:
    """Judge the totals; a prefix, a tied weight or metadata alone make no difference.

    `function` are the changes of settings that change what the model computes: these count.
    `state` says what differs in tensors beside the weights, such as those of an optimizer.

    >>> verdict(Totals(tensors=2, identical=2)).sentence
    'identical: both tensors hold the same bits'
    """
    if not totals.tensors:
        return _nothing(metadata_changes)
    parts = [
        f"{getattr(totals, kind)} {_WORDS.get(kind, kind)}"
        for kind in _DIFFERENCES
        if getattr(totals, kind)
    ]
    if totals.renamed_beyond_prefix:
        parts.append(f"{totals.renamed_beyond_prefix} renamed")
    if parts:
        text = f"different: {', '.join(parts)}, of {_count(totals)}{_estimated(totals)}"
        return Verdict(True, "different", f"{text}{_as_well(function)}")
    if function:
        clause = "the function is not"
        if all(map(is_unread, function)):
            clause = "whether the function is cannot be told"
        text = f"{_weights(totals, epsilon)}, {clause}: {function_sentence(function)}"
        return Verdict(True, function_word(function), f"{text}; {state}" if state else text)
    if state:
        return Verdict(True, "state", f"{_weights(totals, epsilon)}; {state}")
    return _unchanged(totals, metadata_changes, epsilon)


def _estimated(totals: Totals) -> str:
    """Say what the distances are worth where a fingerprint stands for a model."""
    if totals.estimated_error is None:
        return ""
    return f"; distances marked ~ are estimates, ±{totals.estimated_error:.1%}"


def _as_well(function: Sequence[MetadataChange]) -> str:
    """Say what is known of the function beside weights that differ."""
    if not function:
        return ""
    clause = "the function changed as well"
    if all(map(is_unread, function)):
        clause = "whether the function changed as well cannot be told"
    return f"; {clause}: {function_sentence(function)}"


def _unchanged(totals: Totals, metadata_changes: int, epsilon: float) -> Verdict:
    if totals.within_epsilon:
        near = f"{totals.within_epsilon} of {_count(totals)} moved, none by more than {epsilon:g}"
        return Verdict(False, "within_epsilon", f"equal within epsilon: {near}")
    if totals.paired:
        text = f"same structure: {_all(totals)} {_have(totals)} the same shape and dtype"
        return Verdict(False, "same_structure", f"{text}; values were not read")
    asides = _asides(totals, metadata_changes)
    if asides:
        return Verdict(False, "equal", f"equal: every value is the same; {', '.join(asides)}")
    return Verdict(False, "identical", f"identical: {_all(totals)} hold{_s(totals)} the same bits")


def _weights(totals: Totals, epsilon: float) -> str:
    if totals.within_epsilon:
        return f"the weights are the same within {epsilon:g}"
    return "the structure is the same" if totals.paired else "the weights are the same"


def _nothing(metadata_changes: int) -> Verdict:
    """Judge a pair without tensors: nothing was compared, so nobody may take it for the same."""
    beside = ", ".join(_asides(Totals(), metadata_changes))
    text = "nothing to compare: neither side holds a tensor"
    return Verdict(True, "nothing_to_compare", f"{text}; {beside}" if beside else text)


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


# Changes of settings that change what a model computes, in a word and a sentence.

_MOST_NAMED = 5
_CONFIG, _TOKENIZER = "config", "tokenizer"


def function_changes(changes: Iterable[MetadataChange]) -> tuple[MetadataChange, ...]:
    """Keep the changes that count."""
    return tuple(change for change in changes if change.kind != "metadata")


def is_unread(change: MetadataChange) -> bool:
    """Could the two not be compared, so that whether they differ is not known?"""
    return change.left is None and change.text.startswith(f"{change.key} cannot be compared")


def function_word(changes: Sequence[MetadataChange]) -> Literal["config", "tokenizer"]:
    """Name what changed: the config before the tokenizer, where both did."""
    return "config" if any(change.kind == _CONFIG for change in changes) else "tokenizer"


def function_sentence(changes: Sequence[MetadataChange]) -> str:
    """Name the first changes of each kind, and count the others.

    >>> text = "config.json rope_theta 10000.0 -> 1000000.0"
    >>> function_sentence([MetadataChange("rope_theta", "1", "2", "config", text)])
    'config.json rope_theta 10000.0 -> 1000000.0'
    """
    config = _listed([change.text for change in changes if change.kind == _CONFIG])
    tokens = _listed([change.text for change in changes if change.kind == _TOKENIZER])
    return "; ".join(filter(None, (config, f"tokenizer: {tokens}" if tokens else "")))


def _listed(texts: list[str]) -> str:
    more = len(texts) - _MOST_NAMED
    return ", ".join(texts[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
