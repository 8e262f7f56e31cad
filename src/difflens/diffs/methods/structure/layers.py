"""Layers removed, added, duplicated, exchanged or put in another order, by what the blocks hold."""

from __future__ import annotations

from math import sqrt
from typing import Any

from difflens.models.anatomy.places import together
from difflens.models.anatomy.roles import layer

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from .records import energies, explained, moved_text, name_of
from .stacks import Mapping, match_blocks, residuals, spans, suspects

_NOUNS = ("expert", "stage", "head")
_SHOWN = 4  # names or runs in a sentence


def moved_layers(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """Explain the stacks of which blocks went, came, or changed places."""
    records: list[Explained] = []
    explained_stacks: list[str] = []
    for stack in suspects(diff):
        if any(stack.name.startswith(f"{name}.") for name in explained_stacks):
            continue  # inside of blocks that are explained as a whole
        mapping = match_blocks(diff, stack)
        if mapping is None or mapping.is_straight or not _has_sources(mapping):
            continue
        records.append(_record(diff, mapping))
        explained_stacks.append(stack.name)
    return records


def _has_sources(mapping: Mapping) -> bool:
    """Are most blocks of the smaller side found again? Two strangers share none."""
    known = [each for each in mapping.sources.values() if each is not None]
    return 2 * len(known) >= min(len(mapping.sources), len(mapping.stack.left))


def _record(diff: Diff, mapping: Mapping) -> Explained:
    kind, numbers, text = _named(mapping)
    numbers["sources"] = [mapping.sources[place] for place in sorted(mapping.sources)]
    rest = residuals(diff, mapping)
    apart, size = (sum(each[at] for each in rest.values()) for at in (0, 1))
    if apart and size:
        numbers["relative_l2"] = sqrt(apart / size)
        rounded = all(each.rounded for each in rest.values())
        text += moved_text(numbers["relative_l2"], rounded=rounded)
    known = energies(diff)
    partners = {each.pair.right.name: name_of(each) for each in diff.deltas if each.pair.right}
    beyond = sum(apart for name, (apart, *_) in rest.items() if partners.get(name) in known)
    place = _plural(_word(mapping), _touched(numbers))
    return explained(diff, kind, _names(diff, mapping), text, numbers, rest=beyond, place=place)


def _touched(numbers: dict[str, Any]) -> list[int]:
    return list(numbers.get("at") or numbers.get("which") or (numbers["a"], numbers["b"]))


def _names(diff: Diff, mapping: Mapping) -> list[str]:
    """Name the tensors of blocks that are gone, new, or not in their place."""
    stack = mapping.stack
    moved = {place for place, source in mapping.sources.items() if source != place}
    gone = stack.left.keys() - stack.right.keys()
    right = {info.name for place in moved for info in stack.right[place].values()}
    left = {info.name for place in gone | moved for info in stack.left.get(place, {}).values()}
    chosen = []
    for delta in diff.deltas:
        pair = delta.pair
        if (pair.right and pair.right.name in right) or (pair.left and pair.left.name in left):
            chosen.append(name_of(delta))
    return chosen


def _named(mapping: Mapping) -> tuple[str, dict[str, Any], str]:
    """Choose the name: what is gone, what is new, what is there twice, what changed places."""
    sources, left = mapping.sources, sorted(mapping.stack.left)
    word = _word(mapping)
    used = [source for source in sources.values() if source is not None]
    gone = [index for index in left if index not in used]
    new = [place for place, source in sorted(sources.items()) if source is None]
    twice = sorted({source for source in used if used.count(source) > 1})
    order = [sources[place] for place in sorted(sources)]
    if twice:
        return _duplicated(mapping, word, twice, gone)
    if not gone and not new:
        return _reordered(order, sorted(sources), word)
    kept = [source for source in order if source is not None]
    ordered = kept == sorted(kept)
    if gone and not new:
        numbers: dict[str, Any] = {"which": gone, "from": len(left), "to": len(sources)}
        text = f"{_plural(word, gone)} removed: {_where_now(mapping)}"
        return "layers_removed", numbers, text + ("" if ordered else ", in another order")
    if new and not gone:
        numbers = {"which": new, "from": len(left), "to": len(sources)}
        return "layers_added", numbers, f"{_plural(word, new)} added: {_where_now(mapping)}"
    numbers = {"which": gone, "added": new, "from": len(left), "to": len(sources)}
    text = f"{_plural(word, gone)} removed and {_plural(word, new)} of the right new: "
    return "layers_removed", numbers, text + _where_now(mapping)


def _duplicated(
    mapping: Mapping, word: str, twice: list[int], gone: list[int]
) -> tuple[str, dict[str, Any], str]:
    """Tell copies: each place but the first of its source, or but its own place, is a copy."""
    copies = _copies(mapping)
    sources = mapping.sources
    numbers: dict[str, Any] = {
        "which": twice,
        "at": copies,
        "from": len(mapping.stack.left),
        "to": len(sources),
    }
    if gone:
        numbers["removed"] = gone
    if len(copies) == 1:
        (place,) = copies
        verb = "is now" if place in mapping.stack.left else "is"
        text = f"{word} {place} {verb} a copy of {word} {sources[place]}"
    else:
        text = f"{_plural(word, twice)} duplicated: {_where_now(mapping)}"
    unlike = [mapping.partial[place] for place in copies if place in mapping.partial]
    names = sorted({layer(rest) for each in unlike for rest in each})
    if names:
        numbers["differing"] = names
        zeros = all(zero for each in unlike for zero in each.values())
        what = "are zeros" if zeros else "are others"
        text += (
            f"; {together(names[:_SHOWN])} of the {'copy' if len(copies) == 1 else 'copies'} {what}"
        )
    return "layers_duplicated", numbers, text


def _copies(mapping: Mapping) -> list[int]:
    """List the places that hold a copy; a block in its own place is the first of its source."""
    found = []
    for place, source in sorted(mapping.sources.items()):
        others = [at for at, each in mapping.sources.items() if each == source]
        original = source if source in others else min(others)
        if source is not None and place != original:
            found.append(place)
    return found


def _reordered(
    order: list[int | None], places: list[int], word: str
) -> tuple[str, dict[str, Any], str]:
    moved = [place for place, source in zip(places, order, strict=True) if place != source]
    if len(moved) == 2:
        numbers = {"a": moved[0], "b": moved[1]}
        return "layers_swapped", numbers, f"{word}s {moved[0]} and {moved[1]} exchanged"
    numbers_ = {"which": moved, "order": order}
    if order == places[::-1]:
        return "layers_reordered", numbers_, f"all {len(order)} {word}s in reverse order"
    now = ", ".join(
        f"{place} is left {source}"
        for place, source in zip(places, order, strict=True)
        if place != source and len(moved) <= 6
    )
    text = f"{len(moved)} of {len(order)} {word}s in another place" + (f": {now}" if now else "")
    return "layers_reordered", numbers_, text


def _where_now(mapping: Mapping) -> str:
    """Say which run of the right is which run of the left: `right 0-7 are left 0-7`."""
    runs: list[tuple[int, int, int]] = []  # first place, first source, length
    for place, source in sorted(mapping.sources.items()):
        if source is None:
            continue
        if runs:
            first, origin, length = runs[-1]
            if place == first + length and source == origin + length:
                runs[-1] = first, origin, length + 1
                continue
        runs.append((place, source, 1))
    parts = [
        f"right {spans(range(place, place + length))} "
        f"{'is' if length == 1 else 'are'} left {spans(range(source, source + length))}"
        for place, source, length in runs[:_SHOWN]
    ]
    more = f" and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
    return ", ".join(parts) + more


def _word(mapping: Mapping) -> str:
    last = mapping.stack.name.rpartition(".")[2].lower()
    return next((noun for noun in _NOUNS if noun in last), "layer")


def _plural(word: str, numbers: list[int]) -> str:
    return f"{word}{'' if len(numbers) == 1 else 's'} {spans(numbers)}"
