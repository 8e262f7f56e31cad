"""What FSDP's first kind makes of parameters: parts of one flat tensor for each wrapped module.

`FullyShardedDataParallel` leaves a parameter with the numbers that lie on this rank, in one
dimension and perhaps none; its shape is only known to the flat tensor. FSDP2 needs none of this:
its parameters know their shape, and their gradients come with them.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Part(NamedTuple):
    """One parameter of which this rank holds a part."""

    shape: tuple[int, ...]  # of the whole
    flat: Any  # the tensor that backward gives the gradient to
    adds: bool  # is this part to be added to those of other ranks? Not where it only repeats


def parts_of(model: Any) -> tuple[dict[int, Part], set[int]]:
    """Find the parts by identity, and the parameters that repeat one of them under another name."""
    found: dict[int, Part] = {}
    repeated: set[int] = set()
    for module in model.modules():
        handle = getattr(module, "_handle", None)
        if type(module).__name__ != "FullyShardedDataParallel" or handle is None:
            continue
        flat, adds = handle.flat_param, _adds(module, handle)
        if flat._params is None:  # noqa: SLF001  FSDP tells nobody
            found[id(flat)] = Part((sum(flat._numels),), flat, adds)  # noqa: SLF001
            continue
        for parameter, shape in zip(flat._params, flat._shapes, strict=True):  # noqa: SLF001
            found[id(parameter)] = Part(tuple(shape), flat, adds)
        repeated |= {id(each) for each in flat._shared_params} - found.keys()  # noqa: SLF001
    return found, repeated


def _adds(module: Any, handle: Any) -> bool:
    import torch.distributed as processes

    if not handle.uses_sharded_strategy:
        return processes.get_rank() == 0
    # Sharded within a node and repeated on the others: the first node's parts count.
    across = getattr(module, "_inter_node_pg", None)
    return across is None or processes.get_rank(across) == 0
