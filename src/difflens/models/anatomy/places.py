"""Where tensors are in a model (`mlp.up_proj of layers 0-31`), and its modules with their edits."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from difflens.core.records import Delta

from .roles import block, layer, role

_NUMBER = re.compile(r"(?<=\.)[0-9]+(?=\.|$)")
_LONGEST = 60


def where(names: Iterable[str]) -> str:
    """Name the modules and the range of layers that hold the tensors.

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
        part = role(f"{layer(name)}.weight")  # a bias belongs to the module of its weight
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
    """Join the names shown, and add the number of the others."""
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
            [f"{short(stack)} {ranges(indices)}" for stack, indices in sorted(stacks.items())]
        )
    (indices,) = stacks.values()
    return f"layer {min(indices)}" if len(indices) == 1 else f"layers {ranges(indices)}"


def ranges(indices: set[int]) -> str:
    """Write numbers as spans: `0-3 and 7`."""
    starts = sorted(index for index in indices if index - 1 not in indices)
    ends = sorted(index for index in indices if index + 1 not in indices)
    if len(starts) > 3:
        return f"{min(indices)} to {max(indices)} ({len(indices)} of them)"
    spans = zip(starts, ends, strict=True)
    return together([f"{start}" if start == end else f"{start}-{end}" for start, end in spans])


def together(parts: Sequence[str]) -> str:
    """Join with commas and a last `and`."""
    *most, last = parts or [""]
    return f"{', '.join(most)} and {last}" if most else last


Kind = Literal["added", "removed", "reshaped"]
_BLOCK_NUMBER = re.compile(r"(?<=\.)[0-9]+(?=\.|$)|^[0-9]+(?=\.)")
_FEW = 4  # names and shapes shown of an edit


class Module(NamedTuple):
    """Tensors that share a prefix."""

    name: str
    deltas: tuple[Delta, ...]

    @property
    def edit(self) -> Kind | None:
        """What happened to it; None if only values, dtypes or names changed.

        A module that lost or gained some of its tensors is reshaped.
        """
        kinds = {delta.kind for delta in self.deltas} - {"tied"}
        if not kinds:
            return None
        if kinds == {"added"}:
            return "added"
        if kinds == {"removed"}:
            return "removed"
        return "reshaped" if kinds & {"added", "removed", "reshaped"} else None


class Edit(NamedTuple):
    """One edit, and the number of modules in which it occurs."""

    kind: Kind
    what: str
    modules: int
    tensors: int
    parameters: int  # right - left
    shapes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**self._asdict(), "shapes": list(self.shapes)}


def modules(deltas: Iterable[Delta]) -> list[Module]:
    """Group the tensors of both models by their prefix."""
    groups: dict[str, list[Delta]] = defaultdict(list)
    for delta in deltas:
        groups[layer(delta.name)].append(delta)
    return [Module(name, tuple(group)) for name, group in groups.items()]


def edits(modules: Iterable[Module]) -> list[Edit]:
    """Merge the edits: complete blocks first, then equal edits of modules in many blocks."""
    every = list(modules)
    edited = [module for module in every if module.edit]
    folded, rest = _blocks(every, edited)
    groups: dict[tuple[str, Any], list[Module]] = defaultdict(list)
    for module in rest:
        groups[_BLOCK_NUMBER.sub("*", module.name), _look(module)].append(module)
    return [*folded, *(_folded(group) for group in groups.values())]


def _blocks(every: list[Module], edited: list[Module]) -> tuple[list[Edit], list[Module]]:
    """Find blocks that were added or removed completely: `layers 32 -> 28: 4 blocks removed`."""
    stacks: dict[str, dict[int, list[Module]]] = defaultdict(lambda: defaultdict(list))
    for module in every:
        place = block(module.name)
        if place:
            stacks[place[0]][place[1]].append(module)
    folded: list[Edit] = []
    merged: set[str] = set()
    for stack, indices in stacks.items():
        kinds = {index: _block_edit(group) for index, group in indices.items()}
        unchanged = sum(kind is None for kind in kinds.values())
        removed, added = (
            [index for index, kind in kinds.items() if kind == wanted]
            for wanted in ("removed", "added")
        )
        for kind, chosen in (("removed", removed), ("added", added)):
            if not chosen or not unchanged:
                continue
            group = [module for index in chosen for module in indices[index]]
            merged |= {module.name for module in group}
            noun = "block" if len(chosen) == 1 else "blocks"
            before, after = unchanged + len(removed), unchanged + len(added)
            text = f"{stack or 'blocks'} {before} -> {after}: {len(chosen)} {noun} {kind}"
            folded.append(_edit("added" if kind == "added" else "removed", text, group, ()))
    return folded, [module for module in edited if module.name not in merged]


def _block_edit(group: list[Module]) -> Kind | None:
    """Return the edit that all modules of a block share."""
    kinds = {module.edit for module in group}
    only = kinds.pop() if len(kinds) == 1 else None
    return only if only in ("added", "removed") else None


def _folded(group: list[Module]) -> Edit:
    kind = group[0].edit or "reshaped"
    place = where([delta.name for module in group for delta in module.deltas])
    return _edit(kind, f"{place} {kind}", group, _shapes(group[0]))


def _edit(kind: Kind, what: str, group: list[Module], shapes: tuple[str, ...]) -> Edit:
    touched = [delta for module in group for delta in module.deltas if _is_edit(delta)]
    change = sum(_count(delta, "right") - _count(delta, "left") for delta in touched)
    return Edit(kind, what, len(group), len(touched), change, shapes)


def _is_edit(delta: Delta) -> bool:
    return delta.kind in ("added", "removed", "reshaped")


def _count(delta: Delta, side: str) -> int:
    info = delta.pair.left if side == "left" else delta.pair.right
    return info.count if info else 0


def _look(module: Module) -> tuple[Any, ...]:
    return module.edit, *sorted(_shapes(module))


def _shapes(module: Module) -> tuple[str, ...]:
    touched = [delta for delta in module.deltas if _is_edit(delta)]
    return tuple(_shape(delta) for delta in touched[:_FEW])


def _shape(delta: Delta) -> str:
    left, right = delta.pair.left, delta.pair.right
    last = delta.name.rpartition(".")[2]
    if left and right:
        return f"{last}: {list(left.shape)} -> {list(right.shape)}"
    info = right or left
    return f"{last}: {list(info.shape)}" if info else last
