"""What differs between two tokenizers: tokens, ids, merges, scores and rules, in words."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from math import isfinite

from difflens.core.escape import for_terminal
from difflens.core.records import MetadataChange

from .config import ABSENT, as_json, is_same
from .tokenizer import Tokenizer

_NAMED = 5  # tokens of one kind that are named
_LONGEST = 40  # characters of a token or a value
_SHORT_VALUE = 60


def tokenizer_changes(left: Tokenizer, right: Tokenizer) -> Iterator[MetadataChange]:
    """Yield what changed, each with its sentence; nothing if both do the same."""
    yield from _tokens(left.tokens, right.tokens)
    if left.merges is not None and right.merges is not None:
        yield from _merges(left.merges, right.merges)
    if left.scores is not None and right.scores is not None:
        yield from _scores(left.scores, right.scores)
    if left.added is not None and right.added is not None:
        both = [name for name in left.added if name in right.added]
        yield from _counted(
            "flags",
            [name for name in both if left.added[name] != right.added[name]],
            "added token with other flags",
            "added tokens with other flags",
        )
    if left.rules is not None and right.rules is not None:
        yield from _rules(left.rules, right.rules)


def _tokens(left: dict[str, int], right: dict[str, int]) -> Iterator[MetadataChange]:
    added = sorted((name for name in right if name not in left), key=right.__getitem__)
    removed = sorted((name for name in left if name not in right), key=left.__getitem__)
    moved = sorted(
        (name for name, row in left.items() if right.get(name, row) != row), key=left.__getitem__
    )
    if added:
        text = f"{_count(added, 'token')} added ({_ids(added, right)})"
        yield _change("tokens added", None, _ids(added, right), text)
    if removed:
        text = f"{_count(removed, 'token')} removed ({_ids(removed, left)})"
        yield _change("tokens removed", _ids(removed, left), None, text)
    if moved:
        pairs = _listed([f"{_shown(name)} {left[name]} -> {right[name]}" for name in moved])
        text = f"{_count(moved, 'id')} moved ({pairs})"
        yield _change("ids moved", _ids(moved, left), _ids(moved, right), text)


def _merges(left: Sequence[str], right: Sequence[str]) -> Iterator[MetadataChange]:
    before, after = set(left), set(right)
    added = [each for each in right if each not in before]
    removed = [each for each in left if each not in after]
    if added or removed:
        words = [f"{_count(removed, 'merge')} removed"] if removed else []
        words += [f"{_count(added, 'merge')} added"] if added else []
        text = ", ".join(words)
        if len(added) == len(removed):
            pairs = [f"{_shown(a)} -> {_shown(b)}" for a, b in zip(removed, added, strict=True)]
            text = f"{_count(added, 'merge')} changed ({_listed(pairs)})"
        yield _change("merges", _texts(removed), _texts(added), text)
    elif left != right:
        places = [row for row, (a, b) in enumerate(zip(left, right, strict=False)) if a != b]
        number = max(len(places), abs(len(left) - len(right)))
        first = places[0] if places else min(len(left), len(right))
        said = f"{number:,} merge{'' if number == 1 else 's'} at another rank, from {first:,} on"
        before_text, after_text = (_texts(each[first : first + 1]) for each in (left, right))
        yield _change("merges", before_text, after_text, said)


def _scores(left: dict[str, float], right: dict[str, float]) -> Iterator[MetadataChange]:
    other = [
        name for name in left if name in right and _float32(left[name]) != _float32(right[name])
    ]
    yield from _counted("scores", other, "token with another score", "tokens with another score")


def _rules(left: dict[str, object], right: dict[str, object]) -> Iterator[MetadataChange]:
    for name in sorted(left.keys() | right.keys()):
        sides = [each.get(name, ABSENT) for each in (left, right)]
        if is_same(*sides):
            continue
        texts = [None if each is ABSENT else as_json(each) for each in sides]
        shown = " -> ".join("absent" if each is None else _brief(each) for each in texts)
        if all(each is not None and len(each) > _SHORT_VALUE for each in texts):
            shown = "changed"
        yield _change(name, texts[0], texts[1], f"{for_terminal(name)} {shown}")


def _counted(key: str, names: list[str], one: str, many: str) -> Iterator[MetadataChange]:
    if names:
        listed = _listed([_shown(name) for name in names])
        text = f"{len(names):,} {one if len(names) == 1 else many} ({listed})"
        yield _change(key, listed, listed, text)


def _change(key: str, left: str | None, right: str | None, text: str) -> MetadataChange:
    return MetadataChange(f"tokenizer: {for_terminal(key)}", left, right, "tokenizer", text)


def _count(names: Sequence[str], word: str) -> str:
    return f"{len(names):,} {word}{'' if len(names) == 1 else 's'}"


def _ids(names: list[str], rows: dict[str, int]) -> str:
    """Write ids, as a range where they follow each other, and the first few tokens.

    >>> _ids(["<a>", "<b>", "x"], {"<a>": 5, "<b>": 6, "x": 9})
    'ids 5-6, 9: <a>, <b>, x'
    """
    ranges: list[list[int]] = []
    for row in sorted(rows[name] for name in names):
        if ranges and row == ranges[-1][1] + 1:
            ranges[-1][1] = row
        else:
            ranges.append([row, row])
    written = [f"{low}-{high}" if high > low else f"{low}" for low, high in ranges]
    word = "id" if len(names) == 1 else "ids"
    return f"{word} {_listed(written)}: {_listed([_shown(name) for name in names])}"


def _texts(names: Sequence[str]) -> str | None:
    return _listed([_shown(name) for name in names]) if names else None


def _listed(texts: list[str]) -> str:
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _shown(token: str) -> str:
    return for_terminal(token, _LONGEST) or "''"


def _brief(value: str) -> str:
    return for_terminal(value, _SHORT_VALUE)


def _float32(value: float) -> float:
    """Round as a file of float32 does: two formats may write one score in two lengths."""
    if not isfinite(value) or abs(value) > 3e38:
        return value
    (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    return float(rounded)
