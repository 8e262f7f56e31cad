"""GPTQ: integers packed along the inputs, a scale and a zero point for each group of them.

    qweight  I32 [in * bits / 32, out]    dense, the lowest bits first; 3 bits straddle words
    qzeros   I32 [groups, out * bits / 32]
    scales   F16 [groups, out]
    g_idx    I32 [in]                     the group of each input; optional

The weight [out, in] is scale * (q - zero). Version 1 stores the zero minus 1 (in `bits` bits),
version 2 (`checkpoint_format: gptq_v2`) stores the zero itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from difflens.core.errors import CorruptFile
from difflens.core.escape import for_terminal

from ..parts import SCALES, DecodedWeight, Parts, Unfit, decoded_as, unpack
from . import scheme

_BITS = (2, 3, 4, 8)


@scheme(endings=("qweight",))
def gptq(parts: Parts, anchor: str) -> DecodedWeight | None:
    """GPTQ, 2 to 8 bits: integers packed along the inputs."""
    stem = anchor.removesuffix("qweight")
    packed = parts.require(anchor, {"I32"}, 2)
    scales = parts.require(f"{stem}scales", SCALES, 2)
    groups, outputs = scales.shape
    if packed.shape[1] != outputs:
        return None
    zeros = parts.require(f"{stem}qzeros", {"I32"}, 2)
    width, rest = divmod(zeros.shape[1] * 32, outputs or 1)
    if rest or width not in _BITS or zeros.shape[0] != groups:
        shapes = f"{list(zeros.shape)} zeros and {list(scales.shape)} scales"
        raise Unfit(f"{shapes} do not fit 2, 3, 4 or 8 bits")
    inputs, rest = divmod(packed.shape[0] * 32, width)
    if rest or not groups or groups > inputs:
        raise Unfit(f"{list(packed.shape)} words of {width} bits do not hold {groups} groups")
    names = [anchor, zeros.name, scales.name]
    index = parts.find(f"{stem}g_idx")
    if index is not None and index.count:
        if index.dtype not in ("I32", "I64") or index.shape != (inputs,):
            raise Unfit(f"g_idx has shape {list(index.shape)}, the weight has {inputs} inputs")
    elif inputs % groups:
        raise Unfit(f"{inputs} inputs cannot be divided into {groups} groups")
    if index is not None:
        names.append(index.name)
    stored = f"GPTQ int{width} g{-(-inputs // groups)}"
    info = decoded_as(f"{stem}weight", (outputs, inputs), stored)
    off = 0 if _is_second(parts) else 1
    weight = _Weight(parts, stem, (outputs, inputs, groups, width), off)
    return DecodedWeight(info, inputs, weight.make, tuple(names))


def _is_second(parts: Parts) -> bool:
    return parts.settings.get("checkpoint_format") == "gptq_v2"


class _Weight:
    def __init__(self, parts: Parts, stem: str, sizes: tuple[int, int, int, int], off: int) -> None:
        self._parts, self._stem, self._off = parts, stem, off
        self._outputs, self._inputs, self._groups, self._width = sizes
        self._group_of = cache(self._read_groups)

    def make(self, first: int, last: int) -> Any:
        """Decode the rows of some outputs, which are columns of the stored integers."""
        import numpy as np

        begin, end = first // self._inputs, last // self._inputs
        lines = self._inputs * self._width // 32
        words = self._parts.columns(f"{self._stem}qweight", begin, end, (0, lines), self._outputs)
        numbers = unpack(words.T, self._width).astype(np.float32)
        span = (0, self._groups)
        scales = self._parts.columns(f"{self._stem}scales", begin, end, span, self._outputs).T
        zeros = self._zeros(begin, end).T.astype(np.float32)
        groups = self._group_of()
        if groups is None:
            cut = numbers.reshape(end - begin, self._groups, -1)
            cut -= zeros[:, :, None]
            cut *= scales[:, :, None]
        else:
            numbers -= zeros[:, groups]
            numbers *= scales[:, groups]
        return numbers

    def _zeros(self, begin: int, end: int) -> Any:
        """Unpack the zero points of some outputs, from the nearest output that begins a word."""
        start = begin // 32 * 32
        wide = self._outputs * self._width // 32
        stop = min(-(-end // 32) * self._width, wide)
        name, span = f"{self._stem}qzeros", (0, self._groups)
        words = self._parts.columns(name, start // 32 * self._width, stop, span, wide)
        zeros = unpack(words, self._width)[:, begin - start : end - start]
        # Version 1 stores zero as -1, the largest unsigned integer: adding 1 wraps round.
        return zeros + self._off & (1 << self._width) - 1

    def _read_groups(self) -> Any:
        """Read the group of each input; None if the groups follow each other."""
        import numpy as np

        info = self._parts.find(f"{self._stem}g_idx")
        if info is None or not info.count:
            return None
        groups = self._parts.read_all(info.name)
        if groups.min() < 0 or groups.max() >= self._groups:
            reason = f"it holds groups {groups.min()} to {groups.max()}, there are {self._groups}"
            raise CorruptFile(f"tensor '{for_terminal(info.name)}'", reason)
        if self._inputs % self._groups == 0:
            usual = np.arange(self._inputs) // (self._inputs // self._groups)
            if np.array_equal(groups, usual):
                return None
        return groups
