"""How many bytes a tensor takes as it is stored, told by its type and the name of its encoding.

Blocks of GGUF have one size, so those bytes are exact. The parts of other schemes (scales, zero
points) are counted as their own writers lay them out: 16-bit scales for GPTQ, AWQ and
compressed-tensors, 32-bit ones for bitsandbytes and scaled 8-bit weights.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ...dtypes import BITS
from ...records import TensorInfo

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
    "Q8_K": (256, 292), "Q4_0_4_4": (32, 18), "Q4_0_4_8": (32, 18), "Q4_0_8_8": (32, 18),
    "IQ4_NL_4_4": (32, 18), "IQ4_NL_4_8": (32, 18), "IQ4_NL_8_8": (32, 18), "Q1_0": (128, 18),
}  # fmt: skip
_PLAIN = {"qint8": 1, "quint8": 1, "qint32": 4, "complex32": 4}
_GROUPED = re.compile(r"(GPTQ|AWQ|compressed-tensors) int([0-9]+)(?: g([0-9]+))?")
_SCALED = re.compile(r"(int8|F8_\w+) scaled by (tensor|row|blocks of ([0-9]+)x([0-9]+))")
_ADAPTED = re.compile(r"(\w+) \+ LoRA rank ([0-9]+)")


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
    readers: tuple[tuple[re.Pattern[str], Callable[[TensorInfo, re.Match[str]], int]], ...] = (
        (_GROUPED, _grouped),
        (_SCALED, _scaled),
    )
    for pattern, count in readers:
        found = pattern.fullmatch(said)
        if found:
            return Stored(count(info, found), exact=False, scheme=said)
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
