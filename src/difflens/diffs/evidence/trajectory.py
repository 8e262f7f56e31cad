"""A row of checkpoints as squared distances: what is measured between each two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from difflens.core.dtypes import FLOATS
from difflens.core.records import Delta
from difflens.measure.scan import Scan

from ..diff import Diff
from .records import Trajectory

Pairs = Mapping[tuple[int, int], Diff]


class _Tensor(NamedTuple):
    """What is known of one tensor: ‖W_i - W_j‖² by pair, ‖W_i‖² by point."""

    distances: dict[tuple[int, int], float]
    norms: dict[int, float]


def trajectory(points: Sequence[str], steps: Sequence[float | None], diffs: Pairs) -> Trajectory:
    """Gather the distances; `diffs[i, j]` compares point i with a later j, statistics always taken.

    A tensor is kept where all points hold it as finite floats of one shape, under the name that
    the last point gives it.
    """
    last = len(points) - 1
    names = _names(diffs, last)
    tensors: dict[str, _Tensor] = {}
    nonfinite = [0] * len(points)
    for (left, right), diff in sorted(diffs.items()):
        for delta, scan in _scanned(diff):
            if right == last and scan:
                nonfinite[left] += scan.left_nonfinite
                nonfinite[last] += scan.right_nonfinite if left == 0 else 0
            name = _agreed(delta, names[left], names[right])
            if name and scan and _is_usable(scan):
                found = tensors.setdefault(name, _Tensor({}, {}))
                found.distances[left, right] = scan.square_sum
                found.norms.setdefault(left, scan.left_square_sum)
                found.norms.setdefault(right, scan.right_square_sum)
    whole = {name: each for name, each in tensors.items() if len(each.distances) == len(diffs)}
    order = range(len(points))
    return Trajectory(
        tuple(points),
        tuple(steps),
        {
            name: tuple(tuple(_between(each, i, j) for j in order) for i in order)
            for name, each in whole.items()
        },
        {name: tuple(each.norms[i] for i in order) for name, each in whole.items()},
        tuple(nonfinite),
        tuple(diffs[point, last] for point in range(last)),
    )


def _scanned(diff: Diff) -> Iterator[tuple[Delta, Scan | None]]:
    for delta in diff.stream():
        pair = delta.pair
        floats = pair.left and pair.right and {pair.left.dtype, pair.right.dtype} <= FLOATS
        if floats:
            yield delta, delta.measured(Scan)


def _names(diffs: Pairs, last: int) -> list[dict[str, str]]:
    """Return for each point how the last one calls its tensors."""
    names: list[dict[str, str]] = []
    for point in range(last):
        both = [pair for pair in diffs[point, last].pairs if pair.left and pair.right]
        names.append({pair.left.name: pair.right.name for pair in both if pair.left and pair.right})
    return [*names, {name: name for each in names for name in each.values()}]


def _agreed(delta: Delta, left: Mapping[str, str], right: Mapping[str, str]) -> str | None:
    """Return the name both points mean, None if they do not agree."""
    before, after = delta.pair.left, delta.pair.right
    if not before or not after or before.shape != after.shape:
        return None
    name = left.get(before.name)
    return name if name is not None and name == right.get(after.name) else None


def _is_usable(scan: Scan) -> bool:
    numbers = (scan.square_sum, scan.left_square_sum, scan.right_square_sum)
    return scan.pairs == scan.count * scan.parts and all(map(isfinite, numbers))


def _between(tensor: _Tensor, left: int, right: int) -> float:
    return tensor.distances[min(left, right), max(left, right)] if left != right else 0.0
