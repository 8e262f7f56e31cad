"""Modules of two models and the edits between them; what repeats from block to block is folded."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from ...records import Delta
from .places import where
from .roles import block, layer

Kind = Literal["added", "removed", "reshaped"]
_NUMBER = re.compile(r"(?<=\.)[0-9]+(?=\.|$)|^[0-9]+(?=\.)")
_FEW = 4  # names and shapes shown of an edit


class Module(NamedTuple):
    """Tensors that share a prefix."""

    name: str
    deltas: tuple[Delta, ...]

    @property
    def edit(self) -> Kind | None:
        """What happened to it: nothing where only values, dtypes or names changed.

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
    """One edit, folded over the modules it repeats in."""

    kind: Kind
    what: str
    modules: int
    tensors: int
    parameters: int  # right - left
    shapes: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """Give plain values."""
        return {**self._asdict(), "shapes": list(self.shapes)}


def modules(deltas: Iterable[Delta]) -> list[Module]:
    """Group the tensors of both models by their prefix."""
    groups: dict[str, list[Delta]] = defaultdict(list)
    for delta in deltas:
        groups[layer(delta.name)].append(delta)
    return [Module(name, tuple(group)) for name, group in groups.items()]


def edits(found: Iterable[Module]) -> list[Edit]:
    """Fold the edits: whole blocks first, then modules that are edited alike in many blocks."""
    every = list(found)
    edited = [module for module in every if module.edit]
    folded, rest = _blocks(every, edited)
    groups: dict[tuple[str, Any], list[Module]] = defaultdict(list)
    for module in rest:
        groups[_NUMBER.sub("*", module.name), _look(module)].append(module)
    return [*folded, *(_folded(group) for group in groups.values())]


def _blocks(every: list[Module], edited: list[Module]) -> tuple[list[Edit], list[Module]]:
    """Take out blocks that came or went whole: `layers 32 -> 28: 4 blocks removed`."""
    stacks: dict[str, dict[int, list[Module]]] = defaultdict(lambda: defaultdict(list))
    for module in every:
        place = block(module.name)
        if place:
            stacks[place[0]][place[1]].append(module)
    folded: list[Edit] = []
    taken: set[str] = set()
    for stack, indices in stacks.items():
        kinds = {index: _whole(group) for index, group in indices.items()}
        kept = sum(kind is None for kind in kinds.values())
        gone, come = (
            [index for index, kind in kinds.items() if kind == wanted]
            for wanted in ("removed", "added")
        )
        for kind, chosen in (("removed", gone), ("added", come)):
            if not chosen or not kept:
                continue
            group = [module for index in chosen for module in indices[index]]
            taken |= {module.name for module in group}
            noun = "block" if len(chosen) == 1 else "blocks"
            before, after = kept + len(gone), kept + len(come)
            text = f"{stack or 'blocks'} {before} -> {after}: {len(chosen)} {noun} {kind}"
            folded.append(_edit("added" if kind == "added" else "removed", text, group, ()))
    return folded, [module for module in edited if module.name not in taken]


def _whole(group: list[Module]) -> Kind | None:
    """Say what happened to a block as a whole."""
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
