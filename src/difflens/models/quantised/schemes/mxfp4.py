"""MXFP4 as gpt-oss stores it: blocks of 32 four-bit floats, each with a power of two.

    proj_blocks  U8 [.., rows, blocks, 16]   two E2M1 per byte, the low one first
    proj_scales  U8 [.., rows, blocks]       E8M0: 2^(scale - 127); 255 is NaN

The weight is [.., rows, blocks * 32]. Experts, which have four dimensions, are transposed to
[experts, blocks * 32, rows], as in the model that was quantised and in transformers.
"""

from __future__ import annotations

from typing import Any

from difflens.core.records import TensorInfo

from ..parts import E2M1, DecodedWeight, Parts, Unfit, decoded_as
from . import scheme

_BYTES = 16
_BLOCK = 32
_EXPERTS = 4


@scheme(endings=("_blocks",))
def mxfp4(parts: Parts, anchor: str) -> DecodedWeight | None:
    """MXFP4: blocks of 32 four-bit floats, each with a power of two."""
    name = anchor.removesuffix("_blocks")
    blocks, scales = parts.find(anchor), parts.find(f"{name}_scales")
    if not blocks or not scales or blocks.dtype != "U8":
        return None
    if blocks.shape[-1:] != (_BYTES,) or scales.dtype not in ("U8", "F8_E8M0"):
        return None
    if scales.shape != blocks.shape[:-1] or len(blocks.shape) < 2:
        raise Unfit(f"{list(scales.shape)} scales do not fit {list(blocks.shape)} bytes")
    *lead, count, _ = blocks.shape
    if len(blocks.shape) == _EXPERTS:
        weight = _Experts(parts, blocks, scales)
        shape = (lead[0], count * _BLOCK, lead[1])
        return DecodedWeight(
            decoded_as(name, shape, "MXFP4"), lead[1] * _BLOCK, weight.make, weight.names
        )
    info = decoded_as(name, (*lead, count * _BLOCK), "MXFP4")

    def make(first: int, last: int) -> Any:
        octets = parts.elements(anchor, first // 2, last // 2).reshape(-1, _BYTES)
        powers = parts.bytes_of(scales.name, first // _BLOCK, last // _BLOCK)
        return _decoded(octets, powers)

    return DecodedWeight(info, _BLOCK, make, (anchor, scales.name))


class _Experts:
    """Transposed experts: their rows are columns of what is stored."""

    def __init__(self, parts: Parts, blocks: TensorInfo, scales: TensorInfo) -> None:
        self._parts = parts
        self.names = (blocks.name, scales.name)
        _, self._rows, self._count, _ = blocks.shape

    def make(self, first: int, last: int) -> Any:
        """Decode a range of inputs, which may span several experts."""
        import numpy as np

        begin, end = first // self._rows, last // self._rows
        across, pieces = self._count * _BLOCK, []
        while begin < end:
            expert, low = divmod(begin, across)
            high = min(across, low + end - begin)
            pieces.append(self._part(expert, low, high))
            begin += high - low
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _part(self, expert: int, low: int, high: int) -> Any:
        """Decode inputs [low, high) of one expert."""
        import numpy as np

        start, stop = low // _BLOCK, -(-high // _BLOCK)
        lines = expert * self._rows, (expert + 1) * self._rows
        blocks, scales = self.names
        octets = self._parts.columns(
            blocks, start * _BYTES, stop * _BYTES, lines, self._count * _BYTES
        )
        powers = self._parts.columns(scales, start, stop, lines, self._count, raw=True)
        numbers = _decoded(octets.reshape(-1, _BYTES), powers.reshape(-1))
        turned = numbers.reshape(self._rows, -1).T
        return np.ascontiguousarray(turned[low - start * _BLOCK : high - start * _BLOCK])


def _decoded(octets: Any, powers: Any) -> Any:
    """Decode blocks, one per row."""
    import numpy as np

    table = np.array(E2M1, np.float32)
    pairs = np.stack(
        [np.tile(table, 16), np.repeat(table, 16)], axis=1
    )  # the two values of each byte
    scales = np.ldexp(np.float32(1), np.arange(256) - 127)
    scales[255] = np.nan
    numbers = pairs[octets].reshape(-1, _BLOCK)
    numbers *= scales[powers][:, None]
    return numbers
