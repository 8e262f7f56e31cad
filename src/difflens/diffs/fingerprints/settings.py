"""What two models say beside their tensors, compared as far as fingerprints remember it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from difflens.core.escape import for_terminal
from difflens.core.records import MetadataChange

from ..settings.config import differences
from ..settings.tokenizer import FILES

_CONFIG = "config.json"


def compare_settings(
    left: Mapping[str, str], right: Mapping[str, str]
) -> tuple[MetadataChange, ...]:
    """Compare configs by meaning, tokenizer files by hash, and all else as metadata.

    What only one side knows is metadata: the other one may have been read without its folder.
    """
    return tuple(sorted(_changes(left, right), key=lambda each: (each.kind, each.key)))


def _changes(left: Mapping[str, str], right: Mapping[str, str]) -> Iterator[MetadataChange]:
    configs = [_config(side) for side in (left, right)]
    both = all(configs)
    for key in left.keys() | right.keys():
        before, after = left.get(key), right.get(key)
        if before == after or (both and key.startswith(f"{_CONFIG}: ")):
            continue
        if key in FILES and before and after:
            text = f"{key} holds other bytes"
            yield MetadataChange(key, before, after, "tokenizer", text)
        else:
            yield MetadataChange(key, before, after)
    if both:
        for each in differences(*configs):
            key = f"{_CONFIG}: {each.name}"
            if each.counts:
                sides = ("absent" if value is None else for_terminal(value, 60)
                         for value in (each.left, each.right))  # fmt: skip
                text = f"{_CONFIG} {for_terminal(each.name)} {' -> '.join(sides)}"
                yield MetadataChange(key, each.left, each.right, "config", text)
            else:
                yield MetadataChange(key, each.left, each.right)


def _config(described: Mapping[str, str]) -> dict[str, Any]:
    """Read the config back from what was noted of it, key by key."""
    found = {}
    for key, value in described.items():
        if key.startswith(f"{_CONFIG}: "):
            try:
                found[key.removeprefix(f"{_CONFIG}: ")] = json.loads(value)
            except (ValueError, RecursionError):
                found[key.removeprefix(f"{_CONFIG}: ")] = value
    return found
