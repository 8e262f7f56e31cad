"""Where in a model a set of tensors lies, in few words: `mlp.up_proj of layers 0-31`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from .roles import block, layer, role

_NUMBER = re.compile(r"(?<=\.)[0-9]+(?=\.|$)")
_LONGEST = 60


def where(names: Iterable[str]) -> str:
    """Name the modules and the range of layers the tensors are in.

    >>> where([f"model.layers.{i}.mlp.up_proj.weight" for i in (0, 1, 2, 3)])
    'mlp.up_proj of layers 0-3'
    """
    stacks: dict[str, set[int]] = defaultdict(set)
    inner: dict[str, str] = {}
    outer: set[str] = set()
    for name in names:
        place = block(name)
        if place is None:
            outer.add(layer(name))
            continue
        stack, index = place
        stacks[stack].add(index)
        rest = name[len(stack) + bool(stack) :].partition(".")[2]
        part = role(f"{layer(name)}.weight")  # a bias is where its weight is
        inner[_NUMBER.sub("*", layer(rest))] = part.partition("_")[0]
    parts = [" of ".join(filter(None, (_modules(inner), _layers(stacks))))] if stacks else []
    if outer:
        parts.append(
            together(sorted(map(short, outer))) if len(outer) < 3 else f"{len(outer)} others"
        )
    return together(parts)


def short(name: str) -> str:
    """Cut the middle out of a name too long for a sentence."""
    half = _LONGEST // 2 - 2
    return name if len(name) <= _LONGEST else f"{name[:half]}...{name[-half:]}"


def listed(shown: Sequence[str], number: int) -> str:
    """Join the names shown, and say how many were not."""
    more = number - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _modules(inner: dict[str, str]) -> str:
    if len(inner) <= 2:
        return together([short(module) for module in sorted(inner) if module])
    roles = sorted(set(inner.values()))
    return together(roles) if len(roles) <= 3 and "other" not in roles else ""


def _layers(stacks: dict[str, set[int]]) -> str:
    if len(stacks) > 2:
        return f"{sum(map(len, stacks.values()))} blocks"
    if len(stacks) == 2:
        return together(
            [f"{short(stack)} {ranges(found)}" for stack, found in sorted(stacks.items())]
        )
    (found,) = stacks.values()
    return f"layer {min(found)}" if len(found) == 1 else f"layers {ranges(found)}"


def ranges(found: set[int]) -> str:
    """Write numbers as spans: `0-3 and 7`."""
    starts = sorted(index for index in found if index - 1 not in found)
    ends = sorted(index for index in found if index + 1 not in found)
    if len(starts) > 3:
        return f"{min(found)} to {max(found)} ({len(found)} of them)"
    spans = zip(starts, ends, strict=True)
    return together([f"{start}" if start == end else f"{start}-{end}" for start, end in spans])


def together(parts: Sequence[str]) -> str:
    """Join with commas and a last `and`."""
    *most, last = parts or [""]
    return f"{', '.join(most)} and {last}" if most else last
