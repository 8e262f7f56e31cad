"""Multiply-adds of networks whose matrices are used at many positions: sum of count x positions.

Where a kernel is applied is in no weight: strides and pooling leave no trace in a file. Somebody
has to say the output sizes; a patch embedding (stride = kernel) follows from the image alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from ...records import TensorInfo
from ..anatomy.network import Network
from ..anatomy.shapes import is_lookup
from .weights import is_weight

Size = int | Sequence[int]


def multiply_adds(infos: Iterable[TensorInfo], sizes: Mapping[str, Size]) -> int | None:
    """Add up count x positions over all matrices and kernels; None where one has no size.

    `sizes` maps patterns of names to output sizes, such as {"layer1.*": [56, 56], "fc.*": 1}; the
    first that fits a name counts.

    >>> multiply_adds([TensorInfo("conv.weight", "F32", (64, 3, 7, 7))], {"conv.*": [112, 112]})
    118013952
    """
    total = 0
    for info in infos:
        if len(info.shape) < 2 or not is_weight(info) or is_lookup(info):
            continue
        size = next((sizes[each] for each in sizes if fnmatchcase(info.name, each)), None)
        if size is None:
            return None
        total += info.count * _positions(size)
    return total


def patch_multiply_adds(
    infos: Iterable[TensorInfo], network: Network, height: int, width: int
) -> int | None:
    """Count those of a vision transformer: patches and a class token through every matrix.

    The one kernel is the patch embedding, whose stride is its own size; the head sees one token;
    attention adds 2 L T² n_h d_head. None where the model is not of this kind.
    """
    every = [info for info in infos if len(info.shape) > 1 and is_weight(info)]
    kernels = [info for info in every if len(info.shape) == 4]
    if len(kernels) != 1 or kernels[0].shape[1] > 4:
        return None
    if not (network.layers and network.heads and network.head_dim):
        return None
    (_, _, high, wide) = kernels[0].shape
    patches = (height // high) * (width // wide)
    has_class = any(info.name.endswith(("cls_token", "class_token")) for info in every)
    tokens = patches + has_class
    matrices = [info for info in every if len(info.shape) == 2 and not is_lookup(info)]
    heads = sum(info.count for info in matrices if _is_last(info))
    rest = sum(info.count for info in matrices) - heads
    attention = 2 * network.layers * tokens * tokens * network.heads * network.head_dim
    return kernels[0].count * patches + rest * tokens + heads + attention


def _is_last(info: TensorInfo) -> bool:
    from ..anatomy.roles import role

    return role(info.name) == "head"


def _positions(size: Size) -> int:
    if isinstance(size, int):
        return size
    count = 1
    for length in size:
        count *= int(length)
    return count
