"""Pairs tensors whose names differ: by their cores, by roles and frameworks, by repeated blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from difflens.core.records import Pair, TensorInfo

from .frameworks import pair_by_framework
from .how import STRUCTURE
from .names import core_of, rule
from .schemes import Facts
from .structure import pair_by_role


def pair_renamed(
    left: dict[str, TensorInfo], right: dict[str, TensorInfo], exact: Iterable[str], known: Facts
) -> dict[str, Pair]:
    """Return the pairs by name, and remove their tensors from those that are alone.

    `exact` are the names that both models have: a core of theirs is in doubt.
    """
    pairs = _move_renamed(left, right, exact)
    pairs |= _move(pair_by_role(left, right, known), left, right)
    pairs |= _move(pair_by_framework(left, right), left, right)
    pairs |= _move(pair_by_structure(left, right), left, right)
    return pairs


def _move(
    pairs: Iterable[Pair], lone_left: dict[str, TensorInfo], lone_right: dict[str, TensorInfo]
) -> dict[str, Pair]:
    """Return the pairs by name, and remove their tensors from those that are alone."""
    by_name = {each.name: each for each in pairs}
    for each in by_name.values():
        for info, recipe, lone in (
            (each.left, each.left_recipe, lone_left),
            (each.right, each.right_recipe, lone_right),
        ):
            if info:
                lone.pop(recipe.base if recipe else info.name, None)
    return by_name


def _move_renamed(
    lone_left: dict[str, TensorInfo], lone_right: dict[str, TensorInfo], exact: Iterable[str]
) -> dict[str, Pair]:
    """Pair the tensors that can only be each other by the cores of their names."""
    accepted, resized = {}, {}
    for name, other, how in _candidates(lone_left, lone_right, exact):
        left, right = lone_left[name], lone_right[other]
        if left.shape == right.shape or left.count == right.count:
            accepted[other] = Pair(left, right, how)
        elif len(left.shape) == len(right.shape):
            resized[other] = Pair(left, right, how)
    if resized:
        # Element counts vouch for a rule; a rule so vouched for carries a resized tensor too.
        proven = {each.how for each in accepted.values()}
        accepted |= {name: each for name, each in resized.items() if each.how in proven}
    for name, each in accepted.items():
        del lone_right[name]
        if each.left:
            del lone_left[each.left.name]
    return accepted


def _candidates(
    left: Iterable[str], right: Iterable[str], exact: Iterable[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield the names whose core occurs once on each side, with the rule that joins them."""
    lefts, rights = _by_core(left), _by_core(right)
    if lefts.keys().isdisjoint(rights):
        return
    # A core that an exact pair has as well is in doubt: `model.w` beside `w` on one side.
    doubtful = {core for core in map(core_of, exact) if core in lefts}
    for core, name in lefts.items():
        other = rights.get(core)
        if name and other and core not in doubtful:
            yield name, other, rule(name, other, core)


def _by_core(names: Iterable[str]) -> dict[str, str | None]:
    """Return the name of each core; None if several have it."""
    by_core: dict[str, str | None] = {}
    for name in names:
        core = core_of(name)
        by_core[core] = None if core in by_core else name
    return by_core


# A network repeats its blocks: `stage.0.up`, `stage.1.up`, ... is a family. Two families are each
# other's where both count the same blocks from zero, have the same shapes block by block, and no
# other family on either side does; and there are several such.

_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,6}(?![0-9])")
_FEWEST = 2  # blocks, and families in a block; one alone shows nothing

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
    """Index the families by their shapes; leave out those that share them."""
    families: dict[str, Members] = {}
    for name, info in tensors.items():
        numbers = tuple(int(each) for each in _NUMBER.findall(name))
        if numbers:
            families.setdefault(_NUMBER.sub("#", name), {})[numbers] = info
    unique: dict[Look, Members | None] = {}
    for members in families.values():
        if len(members) >= _FEWEST and _counts_from_zero(members):
            look = tuple((at, members[at].shape) for at in sorted(members))
            unique[look] = None if look in unique else members
    return {look: members for look, members in unique.items() if members}


def _counts_from_zero(members: Members) -> bool:
    first = sorted({at[0] for at in members})
    return first == list(range(len(first)))
