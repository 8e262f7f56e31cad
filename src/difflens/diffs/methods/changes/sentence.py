"""The sentence that says what changed: the records of `changes`, and what they leave."""

from __future__ import annotations

from collections import Counter

from difflens.models.anatomy.places import listed, short

from .change import Change
from .groups import Summary
from .texts import of_all, tensors

_SHOWN = 2  # names in brackets before "and n more"
_LEAST = 0.001  # part of a change below which it is not worth a word
_STRUCTURE = ("uncompared", "could not be compared"), ("tied", "tied to another of its side")


def sentence(change: Change, summary: Summary) -> str:
    """Say what happened, the main thing first."""
    if not change.deltas:
        return "neither model holds a tensor"
    main = [*_same(change), *_records(summary), *_rest(summary), *_nonfinite(change, summary)]
    is_unrelated = any(record.kind == "unrelated" for record in summary.records)
    still = _still(change, is_unrelated=is_unrelated)
    others = [*_structure(change), *_zero_signs(summary), *still]
    return "; ".join([*main, *others, *_renames(change)])


def _same(change: Change) -> list[str]:
    whole = len(change.deltas)
    same = sum(delta.kind in {"identical", "tied"} for delta in change.deltas)
    return [of_all(same, whole, "is", "bit-identical")] if same == whole else []


def _records(summary: Summary) -> list[str]:
    records = summary.records
    texts = []
    for place, record in enumerate(records):
        text = record.text
        if record.kind == "cast" and place:
            text = f"then {text}"
        elif record.kind == "pruned" and len(records) == 1:
            text += ", the rest of them bit-equal"
        elif _is_partial(summary, record.share):
            text += f" ({100 * (record.share or 0):.3g} % of the change)"
        texts.append(text)
    return texts


def _is_partial(summary: Summary, share: float | None) -> bool:
    several = len([each for each in summary.records if each.share is not None]) > 1
    partial = several or bool(summary.unexplained and summary.unexplained > _LEAST)
    return partial and share is not None and _LEAST < share < 0.9995


def _rest(summary: Summary) -> list[str]:
    if not summary.unexplained or summary.unexplained <= _LEAST:
        return []
    return [f"{100 * summary.unexplained:.2g} % of the change is left unexplained"]


def _structure(change: Change) -> list[str]:
    clauses = []
    for kind, words in _STRUCTURE:
        found = [delta for delta in change.deltas if delta.kind == kind]
        if found:
            examples = listed([short(delta.name) for delta in found[:_SHOWN]], len(found))
            clauses.append(f"{tensors(len(found))} {words} ({examples})")
    return clauses


def _zero_signs(summary: Summary) -> list[str]:
    """Count the tensors in which zeros changed their sign, and nothing else did."""
    number = sum(not each.moved and not each.parts for each in summary.found.tensors)
    return [f"only the sign of zeros changed in {tensors(number)}"] if number else []


def _still(change: Change, *, is_unrelated: bool) -> list[str]:
    kinds = Counter(delta.kind for delta in change.deltas)
    clauses = []
    if kinds["within_epsilon"]:
        clauses.append(f"{tensors(kinds['within_epsilon'])} moved by no more than epsilon")
    whole = len(change.deltas)
    if kinds["identical"] + kinds["tied"] == whole:
        return []
    if kinds["identical"]:
        rest = tensors(kinds["identical"]) if is_unrelated else "everything else"
        clauses.append(f"{rest} bit-identical")
    return clauses


def _renames(change: Change) -> list[str]:
    rules = Counter(delta.pair.how for delta in change.deltas if delta.pair.renamed)
    if not rules:
        return []
    most = rules.most_common(1)[0][0]
    more = f" and {len(rules) - 1} more" if len(rules) > 1 else ""
    return [f"{tensors(sum(rules.values()))} renamed ({short(most)}{more})"]


def _nonfinite(change: Change, summary: Summary) -> list[str]:
    new = change.new_nonfinite
    if not new or any(record.kind == "corrupted" for record in summary.records):
        return []
    number = sum(new.values())
    worst = max(new, key=lambda name: (new[name], name))
    values = "NaN/Inf value" if number == 1 else "NaN/Inf values"
    place = short(worst) if len(new) == 1 else f"{len(new)} tensors, most in {short(worst)}"
    return [f"{number} {values} appeared in {place}"]
