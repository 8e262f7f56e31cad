"""Who is compared with whom, by names, shapes and dtypes alone.

A wrong pair is worse than none: a name that is not the same on both sides is
matched only where exactly one tensor on each side can be meant. Guessing by
edit distance was not taken: `layers.1` is one letter from `layers.2`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from difflens.core.errors import DifflensError, UnknownName
from difflens.core.natural_order import natural_key
from difflens.core.records import Pair, TensorInfo

from .frameworks import FRAMEWORK, pair_by_framework
from .how import ALONE, STRUCTURE
from .names import RULES, core_of, rule
from .schemes import Facts, facts
from .structure import ROLE, pair_by_role

if TYPE_CHECKING:
    from difflens.core.records import GraphNode

    from .graph_forms import Graphed

_MATCHES = ("auto", "exact")

Tensors = Mapping[str, TensorInfo]
Nodes = Callable[[], "Sequence[GraphNode] | None"] | None


class Pairing(NamedTuple):
    """The pairs of two models."""

    pairs: list[Pair]  # those that the user wants to see
    all_pairs: list[Pair]
    by_content: bool  # whether lone tensors are matched by what they hold
    graphed: Graphed | None  # what the graph of one side shows, if it has one


def pair_models(
    left: Tensors,
    right: Tensors,
    match: str,
    *,
    nodes: tuple[Nodes, Nodes],
    metadata: Iterable[Mapping[str, str]],
    path: str | None = None,
    ignore: str | None = None,
) -> Pairing:
    """Pair the tensors of two models by the graph of one of them, or by names and shapes.

    `nodes` reads the graph of each side that has one, `metadata` is what both say of themselves.
    """
    graphed = None
    if match == "auto" and any(nodes):
        from .graph import pair_by_graph

        graphed = pair_by_graph(left, right, nodes)
    pairs = graphed.pairs if graphed else pair(left, right, match=match, known=facts(*metadata))
    return Pairing(filter_pairs(pairs, path, ignore), pairs, match == "auto", graphed)


def pair(
    left: Tensors, right: Tensors, *, match: str = "auto", known: Facts | None = None
) -> list[Pair]:
    """Pair the tensors of two models, in natural order of their names.

    `auto` sees through the names of wrappers and of other frameworks, `exact` does
    not. `Pair.how` says what a pair rests on, `Pair.transform` what was undone.

    >>> left = {"module.w": TensorInfo("module.w", "F32", (2,))}
    >>> [each.how for each in pair(left, {"w": TensorInfo("w", "F32", (2,))})]
    ['prefix -module.']
    """
    if match not in _MATCHES:
        raise UnknownName("way to match", match, _MATCHES)
    pairs = {name: Pair(info, right[name]) for name, info in left.items() if name in right}
    if len(pairs) < len(left) or len(pairs) < len(right):
        lone = (
            {name: info for name, info in left.items() if name not in pairs},
            {name: info for name, info in right.items() if name not in pairs},
        )
        if match == "auto" and all(lone):
            pairs |= _move_renamed(*lone, tuple(pairs))
            pairs |= _move(pair_by_role(*lone, known or Facts()), *lone)
            pairs |= _move(pair_by_framework(*lone), *lone)
            pairs |= _move(pair_by_structure(*lone), *lone)
        pairs |= {name: Pair(info, None, ALONE) for name, info in lone[0].items()}
        pairs |= {name: Pair(None, info, ALONE) for name, info in lone[1].items()}
    return [pairs[name] for name in sorted(pairs, key=natural_key)]


def is_prefix_rename(pair: Pair) -> bool:
    """Is it the same tensor under a wrapper's or another framework's name: no difference?"""
    return pair.how.startswith((*RULES, ROLE, FRAMEWORK))


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
    """Do the same for tensors that can only be each other by the cores of their names."""
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


def name_filter(path: str | None, ignore: str | None) -> Callable[[Sequence[str]], bool]:
    """Return what decides whether a tensor of these names is wanted."""
    wanted = _wanted(path)
    try:
        unwanted = re.compile(ignore) if ignore else None
    except re.error as error:
        raise DifflensError(f"{ignore!r} is no regular expression: {error}") from error

    def chooses(names: Sequence[str]) -> bool:
        is_wanted = any(wanted in name for name in names)
        return is_wanted and not (unwanted and any(map(unwanted.search, names)))

    return chooses


def _wanted(path: str | None) -> str:
    return re.sub(r"^tensors?\.", "", path or "")


def filter_pairs(pairs: list[Pair], path: str | None, ignore: str | None) -> list[Pair]:
    """Keep pairs whose name contains `path`, drop those `ignore` finds a match in.

    Either side's name counts, so that a renamed tensor is not torn apart.
    """
    if path is None and ignore is None:
        return pairs
    chooses = name_filter(path, ignore)
    chosen = [
        pair for pair in pairs if chooses([info.name for info in (pair.left, pair.right) if info])
    ]
    if pairs and not chosen:  # a misspelt name must not look like two equal models
        wanted = _wanted(path)
        asked = f"no name contains {wanted!r}" if wanted else "no name is left"
        without = f" without a match of {ignore!r}" if ignore else ""
        raise DifflensError(f"nothing to compare: {asked}{without}")
    return chosen


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
