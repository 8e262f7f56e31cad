"""Which tensors of the right model hold the very values of the left one: proof of kinship."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Literal, NamedTuple

from difflens.core.records import MOVED, Delta, TensorInfo
from difflens.measure.scan import Scan
from difflens.models.anatomy.roles import block, is_parameter

from ..diff import Diff
from .telling import READ, VALUES, is_telling

_LARGEST = 1 << 26  # values that are sorted
_HEAD = 64  # values by which a tensor is looked up


class Copies(NamedTuple):
    """The right tensors that could prove something, and how the copied ones were found."""

    of: dict[str, int]  # name to number of values
    copied: dict[str, int]  # name to number of values copied
    elsewhere: int  # under another name than on the left
    reordered: int  # the same values in another order

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: counts, the part of the parameters, the layers."""
        values = sum(self.of.values())
        layers = _layers(self.of)
        complete = [name for name, names in layers.items() if names <= self.copied.keys()]
        share = sum(self.copied.values()) / values if values else 0.0
        return {
            "tensors": len(self.copied),
            "of": len(self.of),
            "layers": len(complete),
            "of_layers": len(layers),
            "share": share,
            "elsewhere": self.elsewhere,
            "reordered": self.reordered,
            "names": list(self.copied)[:50],
            "text": f"{len(self.copied)} of {len(self.of)} tensors"
            + (f", {len(complete)} of {len(layers)} layers" if layers else "")
            + f", {share:.1%} of the parameters",
        }


def copies(diff: Diff) -> Copies:
    """Find what was copied: in place, as the first rows, under another name, or reordered.

    Only tensors that two trainings cannot share by chance count: floats of many different values
    that no short formula made (positions by sine, windows, counters), and no buffers.
    """
    rights = {
        delta.pair.right.name: delta
        for delta in diff.deltas
        if delta.pair.right and delta.kind not in {"tied", "uncompared"}
    }
    of = {
        name: delta.pair.right.count
        for name, delta in rights.items()
        if delta.pair.right and is_telling(diff, "right", delta.pair.right)
    }
    copied: dict[str, int] = {}
    reordered = elsewhere = 0
    heads = _heads(diff)
    for name, count in of.items():
        delta = rights[name]
        same = count if delta.kind == "identical" else _shared_rows(diff, delta)
        if not same and _is_elsewhere(diff, delta, heads):
            same, elsewhere = count, elsewhere + 1
        if not same and _is_reordered(diff, delta):
            same, reordered = count, reordered + 1
        if same:
            copied[name] = same
    return Copies(of, copied, elsewhere, reordered)


def _shared_rows(diff: Diff, delta: Delta) -> int:
    """Count the values of the first rows that both hold, where the number of rows differs."""
    import numpy as np

    left, right = delta.pair.left, delta.pair.right
    if not (left and right) or left.dtype != right.dtype or left.shape == right.shape:
        return 0
    if len(left.shape) < 2 or left.shape[1:] != right.shape[1:]:
        return 0
    count = min(left.count, right.count)
    both = (diff.values("left", left.name), diff.values("right", right.name))
    for start in range(0, count, READ):
        stop = min(start + READ, count)
        if not np.array_equal(*(side.span(start, stop) for side in both)):
            return 0
    return count


Heads = dict[tuple[Any, ...], list[TensorInfo]]


def _heads(diff: Diff) -> Heads:
    """Index the left tensors by shape, dtype and first values."""
    found: Heads = defaultdict(list)
    for pair in diff.pairs:
        info = pair.left
        if info and info.count >= VALUES and is_parameter(info.name, info.dtype):
            found[_head(diff, "left", info)].append(info)
    return found


def _head(diff: Diff, side: Literal["left", "right"], info: TensorInfo) -> tuple[Any, ...]:
    return info.shape, info.dtype, diff.values(side, info.name).span(0, _HEAD).tobytes()


def _is_elsewhere(diff: Diff, delta: Delta, heads: Heads) -> bool:
    """Does a left tensor of another name hold the same values?"""
    import numpy as np

    right = delta.pair.right
    if right is None:
        return False
    for left in heads.get(_head(diff, "right", right), ()):
        sides = diff.values("left", left.name).pieces(), diff.values("right", right.name).pieces()
        if all(np.array_equal(*both) for both in zip(*sides, strict=True)):
            return True
    return False


def _is_reordered(diff: Diff, delta: Delta) -> bool:
    """Are the values those of the left tensor in another order?"""
    import numpy as np

    left, right = delta.pair.left, delta.pair.right
    scan = delta.measured(Scan) if delta.kind in MOVED else None
    if scan is None or not (left and right) or left.count > _LARGEST:
        return False
    ends = scan.left_min == scan.right_min and scan.left_max == scan.right_max
    if not ends or scan.left_min == scan.left_max:
        return False
    sides = diff.values("left", left.name, delta.pair), diff.values("right", right.name, delta.pair)
    before, after = (np.sort(side.array(), axis=None) for side in sides)
    return bool(np.array_equal(before, after))


def _layers(names: dict[str, int]) -> dict[tuple[str, int], set[str]]:
    layers: dict[tuple[str, int], set[str]] = defaultdict(set)
    for name in names:
        place = block(name)
        if place:
            layers[place].add(name)
    return dict(layers)
