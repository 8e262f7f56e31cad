"""The weights of one side by what a forward pass does with them: read, looked up, routed to."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...records import Record, TensorInfo
from ..anatomy.roles import is_parameter
from ..anatomy.shapes import is_expert, is_head, is_lookup
from .storage import elements, stored


class Weights(Record, frozen=True):
    """Sums over the tensors of one side.

    `parameters` are floats that training moves (no buffers); `matrices` are those of them that
    multiply something: two dimensions or more, no look-up, experts not among them.
    """

    parameters: int
    bytes: int  # of all tensors, buffers and all
    weight_bytes: int  # of the parameters
    exact: bool  # no byte had to be supposed
    lookup_parameters: int
    lookup_bytes: int
    expert_parameters: int
    expert_bytes: int
    matrices: int
    kernels: int  # of the matrices: parameters of kernels that slide over an image
    has_head: bool
    repeated_bytes: int = 0  # of names that share another tensor's storage

    @property
    def read_bytes(self) -> int:
        """Bytes of parameters that every forward pass reads: neither look-ups nor experts."""
        return self.weight_bytes - self.lookup_bytes - self.expert_bytes


def weights(infos: Iterable[TensorInfo], shared: Iterable[str] = ()) -> Weights:
    """Sum up the tensors of one side; those named in `shared` have no storage of their own."""
    twice = set(shared)
    every = list(infos)
    own = [info for info in every if info.name not in twice]
    sizes = {info.name: stored(info) for info in own}
    trained = [info for info in own if is_weight(info)]
    experts = [info for info in trained if is_expert(info.name)]
    tables = [info for info in trained if is_lookup(info) and not is_expert(info.name)]
    apart = {info.name for info in (*experts, *tables)}
    matrices = [info for info in trained if len(info.shape) > 1 and info.name not in apart]

    def size(chosen: Iterable[TensorInfo]) -> int:
        return sum(sizes[info.name].bytes for info in chosen)

    return Weights(
        parameters=_count(trained),
        bytes=size(own),
        weight_bytes=size(trained),
        exact=all(each.exact for each in sizes.values()),
        lookup_parameters=_count(tables),
        lookup_bytes=size(tables),
        expert_parameters=_count(experts),
        expert_bytes=size(experts),
        matrices=_count(matrices),
        kernels=_count(info for info in matrices if len(info.shape) > 3),
        has_head=any(map(is_head, every)),
        repeated_bytes=sum(stored(info).bytes for info in every if info.name in twice),
    )


def is_weight(info: TensorInfo) -> bool:
    """Is it a parameter, be it one whose blocks nobody decodes?"""
    return is_parameter(info.name, info.dtype) or elements(info) != info.count


def _count(chosen: Iterable[TensorInfo], of: Callable[[TensorInfo], int] = elements) -> int:
    return sum(map(of, chosen))
