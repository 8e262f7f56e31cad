"""AWQ (gemm): 4-bit integers packed along the outputs, eight per word in AWQ's own order.

    qweight  I32 [in, out / 8]        output 8i + k lies at bit 4 * (0 4 1 5 2 6 3 7)[k] of word i
    qzeros   I32 [in / group, out / 8]
    scales   F16 [in / group, out]

The weight [out, in] is scale * (q - zero).
"""

from __future__ import annotations

from typing import Any

from ..parts import SCALES, DecodedWeight, Parts, Unfit, decoded_as, unpack
from . import scheme

_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)


@scheme(endings=("qweight",))
def awq(parts: Parts, anchor: str) -> DecodedWeight | None:
    """AWQ, 4 bits: integers packed along the outputs."""
    stem = anchor.removesuffix("qweight")
    packed = parts.require(anchor, {"I32"}, 2)
    scales = parts.require(f"{stem}scales", SCALES, 2)
    (inputs, words), (groups, outputs) = packed.shape, scales.shape
    if outputs != words * 8:
        return None
    zeros = parts.require(f"{stem}qzeros", {"I32"}, 2)
    if zeros.shape != (groups, words) or not groups or inputs % groups:
        shapes = f"{list(zeros.shape)} zeros and {list(scales.shape)} scales"
        raise Unfit(f"{shapes} do not fit {inputs} inputs and {outputs} outputs")
    version = str(parts.settings.get("version", "gemm")).lower()
    if version != "gemm":
        raise Unfit(f"its version is '{version[:20]}', only gemm can be decoded")
    info = decoded_as(f"{stem}weight", (outputs, inputs), f"AWQ int4 g{inputs // groups}")

    def make(first: int, last: int) -> Any:
        import numpy as np

        begin, end = first // inputs, last // inputs
        numbers = _columns(parts, anchor, (begin, end), inputs, words).T.astype(np.float32)
        offsets = _columns(parts, zeros.name, (begin, end), groups, words).T.astype(np.float32)
        factors = parts.columns(scales.name, begin, end, (0, groups), outputs).T
        cut = np.ascontiguousarray(numbers).reshape(end - begin, groups, -1)
        cut -= offsets[:, :, None]
        cut *= factors[:, :, None]
        return cut

    return DecodedWeight(info, inputs, make, (anchor, zeros.name, scales.name))


def _columns(parts: Parts, name: str, span: tuple[int, int], lines: int, width: int) -> Any:
    """Unpack the integers of some outputs."""
    start, stop = span[0] // 8, -(-span[1] // 8)
    words = parts.columns(name, start, stop, (0, lines), width)
    ordered = unpack(words, 4).reshape(lines, -1, 8)[:, :, list(_ORDER)]
    return ordered.reshape(lines, -1)[:, span[0] - start * 8 : span[1] - start * 8]
