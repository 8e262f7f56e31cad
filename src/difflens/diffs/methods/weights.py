"""What tensors take: bytes as stored, parameters, and storages that two tensors share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from difflens.core.dtypes import BITS
from difflens.core.record import Record
from difflens.core.records import TensorInfo
from difflens.models.anatomy.network import is_expert, is_head, is_lookup
from difflens.models.anatomy.roles import is_parameter

from ..diff import Diff
from .networks import infos

# Blocks of GGUF have one size, so those bytes are exact. The parts of other schemes (scales, zero
# points) are counted as their own writers lay them out: 16-bit scales for GPTQ, AWQ and
# compressed-tensors, 32-bit ones for bitsandbytes and scaled 8-bit weights.

# Elements and bytes of a block.
BLOCKS: dict[str, tuple[int, int]] = {
    "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24), "Q8_0": (32, 34),
    "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176),
    "Q6_K": (256, 210), "IQ2_XXS": (256, 66), "IQ2_XS": (256, 74), "IQ3_XXS": (256, 98),
    "IQ1_S": (256, 50), "IQ4_NL": (32, 18), "IQ3_S": (256, 110), "IQ2_S": (256, 82),
    "IQ4_XS": (256, 136), "IQ1_M": (256, 56), "TQ1_0": (256, 54), "TQ2_0": (256, 66),
    "MXFP4": (32, 17), "NVFP4": (64, 36),
}  # fmt: skip
# Blocks that are handed on as bytes, since nobody decodes them: their shape counts bytes.
OPAQUE_BLOCKS: dict[str, tuple[int, int]] = {
    "Q8_K": (256, 292),
    "Q4_0_4_4": (32, 18),
    "Q4_0_4_8": (32, 18),
    "Q4_0_8_8": (32, 18),
    "IQ4_NL_4_4": (32, 18),
    "IQ4_NL_4_8": (32, 18),
    "IQ4_NL_8_8": (32, 18),
    "Q1_0": (128, 18),
}
_PLAIN = {"qint8": 1, "quint8": 1, "qint32": 4, "complex32": 4}
_GROUPED = re.compile(r"(GPTQ|AWQ|compressed-tensors) int([0-9]+)(?: g([0-9]+))?")
_SCALED = re.compile(r"(u?int8|F8_\w+) scaled by (tensor|row|blocks of ([0-9]+)x([0-9]+))")
_ADAPTED = re.compile(r"(\w+) \+ (?:LoRA|DoRA) rank ([0-9]+)")


class Stored(NamedTuple):
    """The bytes a tensor takes in its file; `exact` where no layout had to be supposed."""

    bytes: int
    exact: bool
    scheme: str | None = None  # of its quantisation


def stored(info: TensorInfo) -> Stored:
    """Count the bytes of one tensor as stored.

    >>> stored(TensorInfo("w", "F32", (64, 32), "Q8_0"))
    Stored(bytes=2176, exact=True, scheme='Q8_0')
    """
    said = info.stored
    if said is None:
        return Stored(info.size_bytes, exact=True)
    if said in BLOCKS:
        elements, size = BLOCKS[said]
        return Stored(-(-info.count // elements) * size, exact=True, scheme=said)
    if said in OPAQUE_BLOCKS:
        return Stored(info.size_bytes, exact=True, scheme=said)
    if said in _PLAIN:
        scheme = said if said.startswith("q") else None
        return Stored(info.count * _PLAIN[said], exact=True, scheme=scheme)
    return _parts(info, said)


def elements(info: TensorInfo) -> int:
    """Count the weights of a tensor, also where only the bytes of its blocks are known."""
    if info.stored in OPAQUE_BLOCKS:
        each, size = OPAQUE_BLOCKS[info.stored]
        return info.count // size * each
    return info.count


def _parts(info: TensorInfo, said: str) -> Stored:
    grouped, scaled = _GROUPED.fullmatch(said), _SCALED.fullmatch(said)
    if grouped:
        return Stored(_grouped(info, grouped), exact=False, scheme=said)
    if scaled:
        return Stored(_scaled(info, scaled), exact=False, scheme=said)
    if said.startswith("bitsandbytes"):
        return Stored(_bitsandbytes(info, said), exact=False, scheme=said)
    adapted = _ADAPTED.fullmatch(said)
    if adapted and adapted[1] in BITS:
        rows, columns = _matrix(info)
        numbers = info.count + int(adapted[2]) * (rows + columns)
        return Stored(numbers * BITS[adapted[1]] // 8, exact=False)
    return Stored(info.size_bytes, exact=False)


def _grouped(info: TensorInfo, found: re.Match[str]) -> int:
    """Packed integers, for each group a scale of 16 bits, a zero point, and GPTQ's group index."""
    scheme, width = found[1], int(found[2])
    rows, columns = _matrix(info)
    groups = -(-columns // int(found[3])) if found[3] else 1
    zeros = 0 if scheme == "compressed-tensors" else groups * rows * width // 8
    index = 4 * columns if scheme == "GPTQ" else 0
    return -(-info.count * width // 8) + 2 * groups * rows + zeros + index


def _scaled(info: TensorInfo, found: re.Match[str]) -> int:
    """8-bit numbers and scales of 32 bits: one, one a row, or one a block."""
    rows, columns = _matrix(info)
    if found[2] == "tensor":
        scales = 1
    elif found[2] == "row":
        scales = rows
    else:
        scales = -(-rows // int(found[3])) * -(-columns // int(found[4]))
    return info.count + 4 * scales


def _bitsandbytes(info: TensorInfo, said: str) -> int:
    """Codes of 4 bits in blocks of 64 with a maximum each, or of 8 bits with one a row."""
    if said.endswith("int8"):
        return info.count + 4 * _matrix(info)[0]
    blocks, codes = -(-info.count // 64), 16 * 4
    nested = blocks + 4 * -(-blocks // 256) + 256 * 4
    maxima = nested if "double" in said else 4 * blocks
    return -(-info.count // 2) + maxima + codes


def _matrix(info: TensorInfo) -> tuple[int, int]:
    """See it as a matrix: all dimensions but the last against the last."""
    columns = info.shape[-1] if info.shape else 1
    return (info.count // columns if columns else 0), columns


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


# Formats that can share a storage under two names do so for tied weights; a diff no longer says
# which names do, so a head and an embedding that hold the same numbers there are counted once.
# In the others (safetensors, GGUF) whatever has a name takes its bytes.

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
        diff.values(side, head.name).pieces(), diff.values(side, table.name).pieces(), strict=True
    )
    return all(np.array_equal(one, other, equal_nan=True) for one, other in pieces)
