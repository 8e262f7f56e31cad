"""NVFP4: blocks of 16 four-bit floats, each with an 8-bit float, and one scale for the tensor.

weight_packed        U8 [out, in / 2]        compressed-tensors: two E2M1 per byte, low first
weight_scale         F8_E4M3 [out, in / 16]
weight_global_scale  F32 [1]                 the weight is divided by it

weight, weight_scale, weight_scale_2         ModelOpt: the same, but multiplied by it
"""

from __future__ import annotations

from typing import Any

from ..parts import E2M1, SMALL_FLOATS, DecodedWeight, Parts, Unfit, decoded_as
from . import scheme

_BLOCK = 16


@scheme(endings=("weight_packed", "_scale"))
def nvfp4(parts: Parts, anchor: str) -> DecodedWeight | None:
    """NVFP4: blocks of 16 four-bit floats, each with an 8-bit float."""
    if anchor.endswith("_packed"):
        stem = anchor.removesuffix("_packed")
        packed = parts.find(anchor)
        if packed is None or packed.dtype != "U8":
            return None
        return _weight(parts, stem, anchor, f"{stem}_global_scale", is_divided=True)
    stem = anchor.removesuffix("_scale")
    weight = parts.find(stem)
    if not weight or weight.dtype != "U8" or not parts.find(f"{stem}_scale_2"):
        return None
    return _weight(parts, stem, stem, f"{stem}_scale_2", is_divided=False)


def _weight(
    parts: Parts, stem: str, packed: str, total_name: str, *, is_divided: bool
) -> DecodedWeight:
    weight = parts.require(packed, {"U8"}, 2)
    scales = parts.require(f"{stem}_scale", SMALL_FLOATS, 2)
    outputs, octets = weight.shape
    inputs = octets * 2
    total = parts.find(total_name)
    if total is None or total.dtype != "F32" or total.count != 1:
        raise Unfit("the scale of the whole tensor is missing")
    if scales.shape != (outputs, inputs // _BLOCK) or inputs % _BLOCK:
        raise Unfit(f"{list(scales.shape)} scales do not fit {list(weight.shape)} bytes")
    info = decoded_as(stem, (outputs, inputs), "NVFP4")

    def make(first: int, last: int) -> Any:
        import numpy as np

        stored = parts.elements(packed, first // 2, last // 2)
        table = np.array(E2M1, np.float32)
        pairs = np.stack([np.tile(table, 16), np.repeat(table, 16)], axis=1)
        factors = parts.elements(scales.name, first // _BLOCK, last // _BLOCK)
        one = parts.read_all(total.name).reshape(())
        factors = factors / one if is_divided else factors * one
        return pairs[stored].reshape(-1, _BLOCK) * factors[:, None]

    return DecodedWeight(info, inputs, make, (packed, scales.name, total.name))
