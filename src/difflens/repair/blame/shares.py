"""Shares of a damage that is spread over many tensors: Shapley values of groups of blocks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import isnan

from difflens.core.natural_order import natural_key
from difflens.models.anatomy.roles import block, layer
from difflens.stats.shapley import Coalition, coalitions, exact, monotone, normalised, shapley

from .judge import Judge
from .pieces import Selection, select_tensors

GROUPS = 8
EVALUATIONS = 64  # of numbers, beside the two models: then shares are off by three points at most


def share_damage(judge: Judge, names: Iterable[str]) -> dict[str, float]:
    """Return the part of the damage of each group; a coalition is what is taken from the bad.

    Where the check only passes or fails, the damage is that it fails.
    """
    groups = grouped(names)
    players = len(groups)
    members = list(groups.values())
    everyone = frozenset(range(players))

    def selection(coalition: Coalition) -> Selection:
        return select_tensors(name for each in everyone - coalition for name in members[each])

    if not judge.is_numeric:

        def fails(coalition: Coalition) -> bool:
            return judge.verdict(selection(coalition)) is False

        values = monotone(players, fails)
        return dict(zip(groups, normalised(exact(players, values.__getitem__)), strict=True))
    asked = coalitions(players, EVALUATIONS)
    judge.left = len(asked)
    judge.every([selection(each) for each in asked])
    best, worst = judge.number(judge.good), judge.number(judge.bad)
    values = {}
    for each in (frozenset[int](), everyone, *asked):
        number = judge.number(selection(each) if each else judge.good)
        values[each] = best - (worst if isnan(number) else number)
    return dict(zip(groups, normalised(shapley(players, values)), strict=True))


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Group tensors by their blocks, neighbours together where there are many.

    >>> list(grouped([f"h.{i}.w" for i in range(16)] + ["wte"]))
    ['h.0-1', 'h.2-4', 'h.5-6', 'h.7-8', 'h.9-10', 'h.11-13', 'h.14-15', 'wte']
    """
    stacks: dict[str, dict[int, list[str]]] = {}
    others: dict[str, list[str]] = {}
    for name in sorted(names, key=natural_key):
        place = block(name)
        if place is None:
            others.setdefault(layer(name), []).append(name)
        else:
            stacks.setdefault(place[0], {}).setdefault(place[1], []).append(name)
    single = dict(others)
    if len(single) + len(stacks) > GROUPS // 2 and len(single) > 1:
        single = _runs("", dict(enumerate(others.values())), max(1, GROUPS // 4), list(others))
    groups: dict[str, list[str]] = {}
    left = max(len(stacks), GROUPS - len(single)) if stacks else 0
    total = sum(map(len, stacks.values()))
    for stack, blocks in stacks.items():
        number = max(1, min(len(blocks), round(left * len(blocks) / total)))
        groups |= _runs(stack, blocks, number)
    return groups | single


def _runs(
    stack: str, blocks: dict[int, list[str]], number: int, labels: list[str] | None = None
) -> dict[str, list[str]]:
    """Cut blocks into so many runs of neighbours."""
    indices = sorted(blocks)
    edges = [round(at * len(indices) / number) for at in range(number + 1)]
    runs = {}
    for first, last in pairwise(edges):
        some = indices[first:last]
        if not some:
            continue
        if labels:
            ends = labels[some[0]], labels[some[-1]]
            name = ends[0] if len(some) == 1 else f"{ends[0]} to {ends[1]}"
        else:
            span = f"{some[0]}" if len(some) == 1 else f"{some[0]}-{some[-1]}"
            name = f"{stack}.{span}" if stack else span
        runs[name] = [each for index in some for each in blocks[index]]
    return runs
