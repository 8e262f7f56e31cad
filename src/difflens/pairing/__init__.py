"""Who is compared with whom, by names, shapes and dtypes alone.

A wrong pair is worse than none: a name that is not the same on both sides is
matched only where exactly one tensor on each side can be meant. Guessing by
edit distance was not taken: `layers.1` is one letter from `layers.2`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..errors import UnknownName
from ..records import Pair, TensorInfo
from .blocks import pair_by_structure
from .facts import Facts, facts
from .names import RULES, core_of, rule
from .order import natural_key
from .structure import ROLE, pair_by_role
from .ties import Tie, tie_candidates

__all__ = ["Facts", "Tie", "facts", "is_prefix_rename", "natural_key", "pair", "tie_candidates"]

ALONE = "alone"
_MATCHES = ("auto", "exact")

Tensors = Mapping[str, TensorInfo]


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
    found = {name: Pair(info, right[name]) for name, info in left.items() if name in right}
    if len(found) < len(left) or len(found) < len(right):
        lone_left = {name: info for name, info in left.items() if name not in found}
        lone_right = {name: info for name, info in right.items() if name not in found}
        if match == "auto" and lone_left and lone_right:
            found |= _renamed(lone_left, lone_right, tuple(found))
            found |= _taken(
                pair_by_role(lone_left, lone_right, known or Facts()), lone_left, lone_right
            )
            found |= _taken(pair_by_structure(lone_left, lone_right), lone_left, lone_right)
        found |= {name: Pair(info, None, ALONE) for name, info in lone_left.items()}
        found |= {name: Pair(None, info, ALONE) for name, info in lone_right.items()}
    return [found[name] for name in sorted(found, key=natural_key)]


def is_prefix_rename(pair: Pair) -> bool:
    """Is it the same tensor under a wrapper's or another framework's name: no difference?"""
    return pair.how.startswith((*RULES, ROLE))


def _taken(
    pairs: Iterable[Pair], lone_left: dict[str, TensorInfo], lone_right: dict[str, TensorInfo]
) -> dict[str, Pair]:
    """Take from both sides the tensors that were found to be each other."""
    found = {each.name: each for each in pairs}
    for each in found.values():
        for info, recipe, lone in (
            (each.left, each.left_recipe, lone_left),
            (each.right, each.right_recipe, lone_right),
        ):
            if info:
                lone.pop(recipe.base if recipe else info.name, None)
    return found


def _renamed(
    lone_left: dict[str, TensorInfo], lone_right: dict[str, TensorInfo], exact: Iterable[str]
) -> dict[str, Pair]:
    """Take from both sides the tensors that can only be each other, by their right names."""
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
    """Give the name of each core; None where several have it."""
    found: dict[str, str | None] = {}
    for name in names:
        core = core_of(name)
        found[core] = None if core in found else name
    return found
