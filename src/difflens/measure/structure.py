"""What headers alone say of a pair: no tensor byte is read."""

from __future__ import annotations

from ..records import Delta, Pair


def structure(pair: Pair) -> Delta:
    """Tell added, removed, reshaped and recast from merely paired."""
    left, right = pair.left, pair.right
    if left is None or right is None:
        return Delta(pair, "removed" if left else "added")
    if left.shape != right.shape:
        return Delta(pair, "reshaped")
    return Delta(pair, "paired" if left.dtype == right.dtype else "recast")
