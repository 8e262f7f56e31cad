"""Names that have no storage of their own: an output head that is the embedding.

Formats that can share a storage under two names do so for tied weights; a diff no longer says
which names do, so a head and an embedding that hold the same numbers there are counted once.
In the others (safetensors, GGUF) whatever has a name takes its bytes.
"""

from __future__ import annotations

from typing import Literal

from ...diffs import Diff
from ...records import TensorInfo
from ..anatomy.network import infos
from ..anatomy.shapes import is_head, is_lookup

_SHARING = ("pytorch", "onnx", "hdf5", "keras", "memory")


def shared(diff: Diff, side: Literal["left", "right"]) -> tuple[str, ...]:
    """List the heads of one side that are stored with their embedding, once a diff."""
    found: tuple[str, ...] = diff.remember(("shared storages", side), lambda: _shared(diff, side))
    return found


def _shared(diff: Diff, side: Literal["left", "right"]) -> tuple[str, ...]:
    model = diff.left if side == "left" else diff.right
    if not diff.has_values or not model.format.startswith(_SHARING):
        return ()
    every = infos(diff, side)
    tables = [info for info in every if is_lookup(info)]
    heads = [info for info in every if is_head(info)]
    return tuple(
        head.name
        for head in heads
        if any(_is_same(diff, side, head, each) for each in tables if _look(each) == _look(head))
    )


def _look(info: TensorInfo) -> tuple[str, tuple[int, ...]]:
    return info.dtype, info.shape


def _is_same(
    diff: Diff, side: Literal["left", "right"], head: TensorInfo, table: TensorInfo
) -> bool:
    import numpy as np

    pieces = zip(
        diff.values(side, head.name).pieces(),
        diff.values(side, table.name).pieces(),
        strict=True,
    )
    return all(np.array_equal(one, other, equal_nan=True) for one, other in pieces)
