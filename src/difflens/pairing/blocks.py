"""Pairs repeated blocks whose names nobody knows, by their numbers and shapes.

A network repeats its blocks: `stage.0.up`, `stage.1.up`, ... is a family. Two families
are each other's where both count the same blocks from zero, have the same shapes
block by block, and no other family on either side does; and there are several such.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..records import Pair, TensorInfo

_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,6}(?![0-9])")
_FEWEST = 2  # blocks, and families in a block; one alone shows nothing

STRUCTURE = "structure"

Members = dict[tuple[int, ...], TensorInfo]
Look = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


def pair_by_structure(
    left: Mapping[str, TensorInfo], right: Mapping[str, TensorInfo]
) -> Iterator[Pair]:
    """Yield the pairs that only the repetition of blocks shows."""
    lefts, rights = _unique(left), _unique(right)
    shared = [look for look in lefts if look in rights]
    if len(shared) < _FEWEST:  # one family alone may be any list of tensors of one shape
        return
    for look in shared:
        members, others = lefts[look], rights[look]
        yield from (Pair(members[at], others[at], STRUCTURE) for at in members)


def _unique(tensors: Mapping[str, TensorInfo]) -> dict[Look, Members]:
    """Give the families by how they look, those that look alike left out."""
    families: dict[str, Members] = {}
    for name, info in tensors.items():
        numbers = tuple(int(each) for each in _NUMBER.findall(name))
        if numbers:
            families.setdefault(_NUMBER.sub("#", name), {})[numbers] = info
    found: dict[Look, Members | None] = {}
    for members in families.values():
        if len(members) >= _FEWEST and _counts_from_zero(members):
            look = tuple((at, members[at].shape) for at in sorted(members))
            found[look] = None if look in found else members
    return {look: members for look, members in found.items() if members}


def _counts_from_zero(members: Members) -> bool:
    first = sorted({at[0] for at in members})
    return first == list(range(len(first)))
