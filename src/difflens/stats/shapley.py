"""Shapley shares: how much of a total each player brings, whatever the others do.

All values of one player less and of one player alone are asked for, then pairs of random
coalitions and their complements, which cancel what is odd about each. The shares solve the least
squares of Lundberg & Lee (2017) under the condition that they add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

Coalition = frozenset[int]


def coalitions(players: int, most: int, seed: int = 0) -> list[Coalition]:
    """Choose which coalitions to ask for, beside the empty one and that of all.

    Every coalition of few players; else singles, their complements, and random pairs.
    """
    import random

    everyone = frozenset(range(players))
    sizes = range(1, players)
    if 2**players - 2 <= most:
        return [frozenset(each) for size in sizes for each in combinations(range(players), size)]
    singles = [frozenset([player]) for player in range(players)]
    chosen = dict.fromkeys([*singles, *(everyone - each for each in singles)])
    chance = random.Random(seed)  # noqa: S311  no secret
    inner = [size for size in sizes if 1 < size < players - 1]
    weights = [(players - 1) / (size * (players - size)) for size in inner]
    while len(chosen) + 1 < most and inner:
        size = chance.choices(inner, weights)[0]
        each = frozenset(chance.sample(range(players), size))
        chosen.update({each: None, everyone - each: None})
    return list(chosen)


def shapley(players: int, values: dict[Coalition, float]) -> list[float]:
    """Return what each player brings; `values` has the empty coalition and that of all too.

    >>> v = {frozenset(): 0.0, frozenset([0]): 1.0, frozenset([1]): 2.0, frozenset([0, 1]): 3.0}
    >>> [round(share, 9) for share in shapley(2, v)]
    [1.0, 2.0]
    """
    import numpy as np

    everyone = frozenset(range(players))
    base, total = values[frozenset()], values[everyone] - values[frozenset()]
    if players == 1:
        return [total]
    rows, targets, weights = [], [], []
    counts: dict[int, int] = {}
    for each in values:
        counts[len(each)] = counts.get(len(each), 0) + 1
    for each, value in values.items():
        size = len(each)
        if 0 < size < players:
            rows.append([float(player in each) for player in range(players)])
            targets.append(value - base)
            # The kernel of a size, shared by those of it that were asked for.
            weights.append((players - 1) / (size * (players - size)) / counts[size])
    matrix, target = np.array(rows), np.array(targets)
    # The last share is what is left: the condition is built in.
    matrix, target = matrix[:, :-1] - matrix[:, -1:], target - matrix[:, -1] * total
    root = np.sqrt(np.array(weights))
    solved: NDArray[Any] = np.linalg.lstsq(matrix * root[:, None], target * root, rcond=None)[0]
    return [*(float(share) for share in solved), float(total - solved.sum())]


def monotone(players: int, holds: Callable[[Coalition], bool]) -> dict[Coalition, float]:
    """Return 1 or 0 for every coalition, where more players never undo what fewer did.

    Each question settles what is larger or what is smaller, so few are asked of the 2**players.
    The empty coalition is known not to hold, that of all to hold.
    """
    every = [
        frozenset(each)
        for size in range(players + 1)
        for each in combinations(range(players), size)
    ]
    known = {every[0]: 0.0, every[-1]: 1.0}
    while len(known) < len(every):
        unknown = [each for each in every if each not in known]

        def settled(each: Coalition, unknown: Sequence[Coalition] = unknown) -> tuple[int, int]:
            above = sum(other >= each for other in unknown)
            below = sum(other <= each for other in unknown)
            return min(above, below), max(above, below)

        asked = max(unknown, key=settled)
        answer = holds(asked)
        for each in unknown:
            if each >= asked if answer else each <= asked:
                known[each] = float(answer)
    return known


def exact(players: int, value: Callable[[Coalition], float]) -> list[float]:
    """Return the shares by their definition: 2**players values.

    >>> exact(2, lambda each: float(len(each) == 2))
    [0.5, 0.5]
    """
    shares = []
    for player in range(players):
        others = [each for each in range(players) if each != player]
        share = 0.0
        for size in range(players):
            weight = 1 / (players * comb(players - 1, size))
            for each in combinations(others, size):
                without = frozenset(each)
                share += weight * (value(without | {player}) - value(without))
        shares.append(share)
    return shares


def normalised(shares: Sequence[float]) -> list[float]:
    """Divide by the total; all zero where that is zero."""
    total = sum(shares)
    return [share / total if total else 0.0 for share in shares]
