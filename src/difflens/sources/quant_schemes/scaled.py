"""8-bit weights with scales: fp8 of vLLM, DeepSeek and compressed-tensors, int8 of the latter.

    weight             F8_E4M3, F8_E5M2 or I8 [out, in]
    weight_scale       one, one a row [out] or [out, 1], or one a block [out / 128, in / 128]
    weight_scale_inv   the same; despite its name it is multiplied with
    weight_zero_point  as the scales, subtracted first

An `input_scale` is about activations and stays a tensor of its own.
"""

from __future__ import annotations

from typing import Any

from ...escape import for_terminal
from ...records import TensorInfo
from .parts import SCALES, SMALL_FLOATS, Found, Parts, Unfit, decoded_as

ENDINGS = ("_scale_inv", "_scale")
_USUAL_BLOCK = 128


def find(parts: Parts, anchor: str) -> Found | None:
    """Find the weight a scale belongs to; None where it is no scale of an 8-bit weight."""
    name = _weight_name(anchor)
    weight, scale = parts.look(name), parts.look(anchor)
    if not weight or not scale or weight.dtype not in SMALL_FLOATS | {"I8"} or not weight.shape:
        return None
    if scale.dtype not in SCALES:
        raise Unfit(f"its scales are {scale.dtype}, floats are wanted")
    grid = _Grid(parts, weight, scale)
    zeros = parts.look(f"{name}_zero_point")
    if zeros and (zeros.shape != scale.shape or zeros.dtype not in SCALES | {"I8", "U8", "I32"}):
        shapes = f"{list(zeros.shape)} zero points do not fit {list(scale.shape)} scales"
        raise Unfit(shapes)
    kind = "int8" if weight.dtype == "I8" else weight.dtype
    info = decoded_as(name, weight.shape, f"{kind} scaled by {grid.words}")
    across = weight.shape[-1]

    def make(first: int, last: int) -> Any:
        import numpy as np

        stored = parts.elements(name, first, last).reshape(-1, across)
        numbers = stored.astype(np.float32, copy=False)
        begin, end = first // across, last // across
        if zeros:
            numbers = numbers - grid.spread(zeros.name, begin, end).astype(np.float32)
        return numbers * grid.spread(anchor, begin, end)

    names = (name, anchor, zeros.name if zeros else "")
    return Found(info, across, make, tuple(filter(None, names)))


def _weight_name(anchor: str) -> str:
    """Give the name of what a scale scales; `scale_weight` is how ComfyUI has it."""
    if anchor.endswith(".scale_weight"):
        return anchor.removesuffix("scale_weight") + "weight"
    return anchor.removesuffix("_inv").removesuffix("_scale")


class _Grid:
    """How scales lie over a weight: along each dimension one for so many elements."""

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
        """Say it."""
        if all(count == 1 for count in self._counts):
            return "tensor"
        if self._counts[-1] == 1:
            return "row"
        return "blocks of " + "x".join(map(str, self._blocks[-2:]))

    def spread(self, name: str, begin: int, end: int) -> Any:
        """Give the scales of rows [begin, end): a column, or one for each element."""
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
    """Give the scales as many dimensions as the weight has."""
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
    """Read the size of blocks out of the settings; 128 is what everybody has."""
    said = parts.settings.get("weight_block_size")
    if not isinstance(said, list) or len(said) > rank:
        return [_USUAL_BLOCK] * rank
    known = [each if type(each) is int and each > 0 else _USUAL_BLOCK for each in said]
    return [1] * (rank - len(known)) + known


def _block(length: int, count: int, usual: int) -> int:
    """Say how many elements share a scale; 0 where no number fits."""
    if count == 1:
        return length
    if count == length:
        return 1
    if -(-length // usual) == count:
        return usual
    return length // count if count and length % count == 0 else 0
