"""compressed-tensors, packed: integers of 1 to 8 bits, dense along the inputs.

    weight_packed      I32 [out, in * bits / 32]   q + 2^(bits - 1), the lowest bits first
    weight_shape       I64 [2]                     out, in
    weight_scale       F16 [out, groups], [out, 1] or [1]
    weight_zero_point  I32 [out * bits / 32, groups], packed along the outputs, or I8 [out, groups]
    weight_g_idx       I32 [in]                    the group of each input

The weight [out, in] is scale * (q - zero).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from difflens.core.errors import CorruptFile
from difflens.core.escape import for_terminal
from difflens.core.records import TensorInfo

from ..parts import SCALES, DecodedWeight, Parts, Unfit, decoded_as, unpack
from . import scheme


@scheme(endings=("weight_packed",))
def compressed_tensors(parts: Parts, anchor: str) -> DecodedWeight | None:
    """compressed-tensors, 1 to 8 bits: integers packed along the inputs."""
    stem = anchor.removesuffix("_packed")
    packed = parts.find(anchor)
    if packed is None or packed.dtype != "I32":
        return None
    parts.require(anchor, {"I32"}, 2)
    outputs, inputs = _shape(parts, f"{stem}_shape")
    width = _bits(parts, inputs, packed.shape[1])
    if packed.shape[0] != outputs or not width:
        words = f"{list(packed.shape)} words"
        raise Unfit(f"{words} do not fit [{outputs}, {inputs}] integers of 1 to 8 bits")
    scale = _scale(parts, f"{stem}_scale", outputs)
    groups = scale.shape[1] if len(scale.shape) == 2 else 1
    index = parts.find(f"{stem}_g_idx")
    if index is not None and (index.shape != (inputs,) or index.dtype not in ("I32", "I64")):
        actual = f"{index.dtype} {list(index.shape)}"
        raise Unfit(f"g_idx is {actual}, the weight has {inputs} inputs")
    if index is None and inputs % groups:
        raise Unfit(f"{inputs} inputs cannot be divided into {groups} groups")
    zeros = _Zeros(parts, f"{stem}_zero_point", (outputs, groups), width)
    stored = f"compressed-tensors int{width}" + (f" g{inputs // groups}" if groups > 1 else "")
    info = decoded_as(stem, (outputs, inputs), stored)
    group_of = cache(lambda: _groups(parts, index, groups))

    def make(first: int, last: int) -> Any:
        import numpy as np

        begin, end = first // inputs, last // inputs
        words = parts.elements(anchor, begin * packed.shape[1], end * packed.shape[1])
        numbers = unpack(words.reshape(end - begin, -1), width)[:, :inputs].astype(np.float32)
        if scale.count == 1:
            factors = np.full((end - begin, 1), parts.read_all(scale.name).reshape(()))
        else:
            factors = parts.elements(scale.name, begin * groups, end * groups).reshape(-1, groups)
        offsets = zeros.of(begin, end).astype(np.float32)
        order = group_of()
        if order is not None:
            return (numbers - (offsets[:, order] if zeros.packed else offsets)) * factors[:, order]
        cut = numbers.reshape(end - begin, groups, -1)
        cut -= offsets[:, :, None]
        cut *= factors[:, :, None]
        return cut

    names = (anchor, f"{stem}_shape", scale.name, zeros.name, index.name if index else "")
    return DecodedWeight(info, inputs, make, tuple(filter(None, names)))


def _shape(parts: Parts, name: str) -> tuple[int, int]:
    info = parts.find(name)
    if info is None or info.dtype not in ("I32", "I64") or info.shape != (2,):
        raise Unfit(f"'{for_terminal(name)}' is not the shape of the weight, two integers")
    outputs, inputs = (int(length) for length in parts.read_all(name))
    if outputs <= 0 or inputs <= 0:
        raise Unfit(
            f"'{for_terminal(name)}' is [{outputs}, {inputs}], expected two positive numbers"
        )
    return outputs, inputs


def _bits(parts: Parts, inputs: int, words: int) -> int:
    """Find the number of bits per integer; the settings decide if several numbers would fit."""
    fitting = [width for width in range(1, 9) if -(-inputs * width // 32) == words]
    groups = parts.settings.get("config_groups")
    stated = []
    if isinstance(groups, dict):
        weights = (each.get("weights") for each in groups.values() if isinstance(each, dict))
        stated = [each.get("num_bits") for each in weights if isinstance(each, dict)]
    known = [width for width in fitting if width in stated] or fitting
    return known[0] if len(known) == 1 else next((each for each in (4, 8) if each in known), 0)


def _scale(parts: Parts, name: str, outputs: int) -> TensorInfo:
    info = parts.find(name)
    if info is None or info.dtype not in SCALES:
        raise Unfit(f"'{for_terminal(name)}' is missing, or is not of floats")
    if info.count != 1 and (len(info.shape) not in (1, 2) or info.shape[0] != outputs):
        raise Unfit(f"{list(info.shape)} scales do not fit {outputs} outputs")
    return info


class _Zeros:
    """The zero points; the middle of the range if none are stored."""

    def __init__(self, parts: Parts, name: str, shape: tuple[int, int], width: int) -> None:
        info = parts.find(name)
        self._parts, self._width, self._groups = parts, width, shape[1]
        self._middle = 1 << (width - 1)
        self.name = name if info else ""
        self.packed = info is not None
        self._is_unpacked = info is not None and info.dtype == "I8"
        wanted = shape if self._is_unpacked else (-(-shape[0] * width // 32), shape[1])
        if info and (info.dtype not in ("I8", "I32") or info.shape != wanted):
            raise Unfit(f"{list(info.shape)} zero points do not fit {list(shape)}")
        self._lines = wanted[0]

    def of(self, begin: int, end: int) -> Any:
        import numpy as np

        if not self.name:
            return np.full((end - begin, 1), self._middle)
        groups = self._groups
        if self._is_unpacked:
            zeros = self._parts.elements(self.name, begin * groups, end * groups)
            return zeros.reshape(-1, groups).astype(np.int16) + self._middle
        start = begin // 32  # a multiple of 32 outputs begins with a word
        stop = min(-(-end // 32) * self._width, self._lines)
        first = start * self._width
        words = self._parts.elements(self.name, first * groups, stop * groups).reshape(-1, groups)
        return unpack(words.T, self._width).T[begin - start * 32 : end - start * 32]


def _groups(parts: Parts, index: TensorInfo | None, groups: int) -> Any:
    """Read the group of each input; None if the file states none."""
    if index is None:
        return None
    order = parts.read_all(index.name)
    if (order == -1).all():  # -1 stands for no order
        return None
    if order.min() < 0 or order.max() >= groups:
        reason = f"it holds groups {order.min()} to {order.max()}, there are {groups}"
        raise CorruptFile(f"tensor '{for_terminal(index.name)}'", reason)
    return order
