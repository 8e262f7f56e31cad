"""NVFP4: blocks of 16 four-bit floats with an 8-bit float each, and one scale for the tensor.

weight_packed        U8 [out, in / 2]        compressed-tensors: two E2M1 a byte, low first
weight_scale         F8_E4M3 [out, in / 16]
weight_global_scale  F32 [1]                 divided by

weight, weight_scale, weight_scale_2         ModelOpt: the same, but multiplied with
"""

from __future__ import annotations

from typing import Any

from .parts import E2M1, SMALL_FLOATS, Found, Parts, Unfit, decoded_as

_BLOCK = 16


def find(parts: Parts, anchor: str) -> Found | None:
    """Find the weight a `weight_packed` of bytes belongs to."""
    stem = anchor.removesuffix("_packed")
    packed = parts.look(anchor)
    if packed is None or packed.dtype != "U8":
        return None
    return _find(parts, stem, anchor, f"{stem}_global_scale", is_divided=True)


def find_scaled(parts: Parts, anchor: str) -> Found | None:
    """Find the weight of bytes a `weight_scale` belongs to; None where it is something else."""
    stem = anchor.removesuffix("_scale")
    weight = parts.look(stem)
    if not weight or weight.dtype != "U8" or not parts.look(f"{stem}_scale_2"):
        return None
    return _find(parts, stem, stem, f"{stem}_scale_2", is_divided=False)


def _find(parts: Parts, stem: str, packed: str, whole: str, *, is_divided: bool) -> Found:
    weight = parts.need(packed, {"U8"}, 2)
    scales = parts.need(f"{stem}_scale", SMALL_FLOATS, 2)
    outputs, octets = weight.shape
    inputs = octets * 2
    total = parts.look(whole)
    if total is None or total.dtype != "F32" or total.count != 1:
        raise Unfit("it has no scale of the whole tensor")
    if scales.shape != (outputs, inputs // _BLOCK) or inputs % _BLOCK:
        raise Unfit(f"{list(scales.shape)} scales do not fit {list(weight.shape)} bytes")
    info = decoded_as(stem, (outputs, inputs), "NVFP4")

    def make(first: int, last: int) -> Any:
        import numpy as np

        stored = parts.elements(packed, first // 2, last // 2)
        table = np.array(E2M1, np.float32)
        pairs = np.stack([np.tile(table, 16), np.repeat(table, 16)], axis=1)
        factors = parts.elements(scales.name, first // _BLOCK, last // _BLOCK)
        one = parts.whole(total.name).reshape(())
        factors = factors / one if is_divided else factors * one
        return pairs[stored].reshape(-1, _BLOCK) * factors[:, None]

    return Found(info, inputs, make, (packed, scales.name, total.name))
