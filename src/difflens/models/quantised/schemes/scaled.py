"""8-bit weights with scales: fp8 of vLLM, DeepSeek and compressed-tensors, and their int8.

    weight             F8_E4M3, F8_E5M2 or I8 [out, in]; U8 where it has zero points
    weight_scale       one; one per row, [out] or [out, 1]; or one per block, [out / 128, in / 128]
    weight_scale_inv   the same; despite its name, the weight is multiplied by it
    weight_zero_point  of the shape of the scales, subtracted before scaling

torchao saves an object for each weight, which is read as its parts: weight.qdata, weight.scale, and
weight.zero_point.

An `input_scale` belongs to the activations and stays a tensor of its own.
"""

from __future__ import annotations

from typing import Any

from difflens.core.escape import for_terminal
from difflens.core.records import TensorInfo

from ..parts import SCALES, SMALL_FLOATS, DecodedWeight, Parts, Unfit, decoded_as
from . import scheme

_USUAL_BLOCK = 128


_QDATA = ".qdata"
_KINDS = {"I8": "int8", "U8": "uint8"}


@scheme(endings=("_scale_inv", "_scale", ".scale_weight", _QDATA))
def scaled(parts: Parts, anchor: str) -> DecodedWeight | None:
    """fp8, int8 and uint8 with scales: one per tensor, row or block."""
    home = name = _weight_name(anchor)
    factor, offset = anchor, f"{name}_zero_point"
    if anchor.endswith(_QDATA):
        home, name = anchor.removesuffix(_QDATA), anchor
        factor, offset = f"{home}.scale", f"{home}.zero_point"
    weight, scale = parts.find(name), parts.find(factor)
    zeros = parts.find(offset)
    if not weight or not scale or not weight.shape:
        return None
    if weight.dtype not in SMALL_FLOATS | _KINDS.keys():
        return None
    if weight.dtype == "U8" and not zeros:  # two values of four bits in a byte, more likely
        return None
    if scale.dtype not in SCALES:
        raise Unfit(f"its scales are {scale.dtype}, expected floats")
    grid = _Grid(parts, weight, scale)
    if zeros and (zeros.shape != scale.shape or zeros.dtype not in SCALES | {"I8", "U8", "I32"}):
        raise Unfit(f"{list(zeros.shape)} zero points do not fit {list(scale.shape)} scales")
    kind = _KINDS.get(weight.dtype, weight.dtype)
    info = decoded_as(home, weight.shape, f"{kind} scaled by {grid.words}")
    across = weight.shape[-1]

    def make(first: int, last: int) -> Any:
        import numpy as np

        stored = parts.elements(name, first, last).reshape(-1, across)
        numbers = stored.astype(np.float32, copy=False)
        begin, end = first // across, last // across
        if zeros:
            numbers = numbers - grid.spread(zeros.name, begin, end).astype(np.float32)
        return numbers * grid.spread(factor, begin, end)

    names = (name, factor, zeros.name if zeros else "")
    return DecodedWeight(info, across, make, tuple(filter(None, names)))


def _weight_name(anchor: str) -> str:
    """Return the name of the weight that a scale belongs to; ComfyUI writes `scale_weight`."""
    if anchor.endswith(".scale_weight"):
        return anchor.removesuffix("scale_weight") + "weight"
    return anchor.removesuffix("_inv").removesuffix("_scale")


class _Grid:
    """The layout of scales over a weight: along each dimension, one for a number of elements."""

    def __init__(self, parts: Parts, weight: TensorInfo, scale: TensorInfo) -> None:
        self._parts = parts
        self._shape = weight.shape
        self._counts = _aligned(weight.shape, scale)
        sizes = _block_sizes(parts, len(weight.shape))
        self._blocks = [
            _block(length, count, size)
            for length, count, size in zip(weight.shape, self._counts, sizes, strict=True)
        ]
        if 0 in self._blocks:
            shapes = f"{list(scale.shape)} scales do not fit {list(weight.shape)} elements"
            raise Unfit(f"{shapes} of '{for_terminal(weight.name)}'")

    @property
    def words(self) -> str:
        """What shares a scale: the tensor, a row or a block."""
        if all(count == 1 for count in self._counts):
            return "tensor"
        if self._counts[-1] == 1:
            return "row"
        return "blocks of " + "x".join(map(str, self._blocks[-2:]))

    def spread(self, name: str, begin: int, end: int) -> Any:
        """Return the scales of rows [begin, end): one per row, or one per element."""
        import numpy as np

        place: Any = np.zeros(end - begin, np.int64)
        rest: Any = np.arange(begin, end)
        step = 1
        for axis in reversed(range(len(self._shape) - 1)):
            rest, at = np.divmod(rest, self._shape[axis])
            place += at // self._blocks[axis] * step
            step *= self._counts[axis]
        low, high, across = int(place.min()), int(place.max()) + 1, self._counts[-1]
        scales = self._parts.elements(name, low * across, high * across).reshape(-1, across)
        scales = scales[place - low]
        if across == 1:
            return scales
        return np.repeat(scales, self._blocks[-1], axis=1)[:, : self._shape[-1]]


def _aligned(shape: tuple[int, ...], scale: TensorInfo) -> tuple[int, ...]:
    """Return the shape of the scales with as many dimensions as the weight has."""
    if scale.count == 1:
        return (1,) * len(shape)
    if len(scale.shape) == 1 and len(shape) > 1:
        if scale.shape[0] == shape[-2]:
            return (*(1,) * (len(shape) - 2), scale.shape[0], 1)
        if scale.shape[0] == shape[0]:
            return (scale.shape[0], *(1,) * (len(shape) - 1))
    if len(scale.shape) != len(shape):
        raise Unfit(f"{list(scale.shape)} scales do not fit {list(shape)} elements")
    return scale.shape


def _block_sizes(parts: Parts, rank: int) -> list[int]:
    """Read the block sizes from the settings; 128 is the usual one."""
    sizes = parts.settings.get("weight_block_size")
    if not isinstance(sizes, list) or len(sizes) > rank:
        return [_USUAL_BLOCK] * rank
    known = [each if type(each) is int and each > 0 else _USUAL_BLOCK for each in sizes]
    return [1] * (rank - len(known)) + known


def _block(length: int, count: int, usual: int) -> int:
    """Return how many elements share a scale; 0 if no number fits."""
    if count == 1:
        return length
    if count == length:
        return 1
    if -(-length // usual) == count:
        return usual
    return length // count if count and length % count == 0 else 0
