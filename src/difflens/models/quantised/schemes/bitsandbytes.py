"""bitsandbytes: 4-bit codes with a maximum for each block, or int8 with a maximum for each row.

weight                            U8 [count / 2, 1]   two codes per byte, the high one first
weight.absmax                     F32 [blocks], or U8 where it is quantised itself
weight.quant_map                  F32 [16]            the value of each code
weight.nested_absmax, .nested_quant_map               the same for an absmax that is quantised
weight.quant_state.bitsandbytes__nf4                  JSON: shape, blocksize, nested_offset ..

weight  I8 [out, in], SCB  F32 [out]                  the weight is q * SCB / 127
"""

from __future__ import annotations

import json
from math import isfinite, prod
from typing import Any, NamedTuple

from difflens.core.escape import for_terminal

from ..parts import SCALES, DecodedWeight, Parts, Unfit, decoded_as
from . import scheme

_LARGEST_STATE = 65_536
_FLOATS = frozenset({"F16", "BF16", "F32"})
_STATES = (".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4")


@scheme(endings=(*_STATES, ".SCB"))
def bitsandbytes(parts: Parts, anchor: str) -> DecodedWeight | None:
    """bitsandbytes: nf4, fp4 and int8."""
    return _int8(parts, anchor) if anchor.endswith(".SCB") else _four_bits(parts, anchor)


def _int8(parts: Parts, anchor: str) -> DecodedWeight | None:
    """Find the int8 weight that `SCB` belongs to."""
    stem = anchor.removesuffix("SCB")
    weight = parts.require(f"{stem}weight", {"I8"}, 2)
    rows = parts.require(anchor, SCALES, 1)
    outputs, inputs = weight.shape
    if rows.shape != (outputs,):
        raise Unfit(f"{list(rows.shape)} row maxima do not fit {list(weight.shape)} integers")
    layout = parts.find(f"{stem}weight_format")
    if layout is not None:
        is_one_byte = layout.count == 1 and layout.dtype == "U8"
        if not is_one_byte or parts.read_all(layout.name).any():
            raise Unfit("its weight_format is not row by row, which alone can be decoded")
    info = decoded_as(weight.name, weight.shape, "bitsandbytes int8")

    def make(first: int, last: int) -> Any:
        import numpy as np

        numbers = parts.elements(weight.name, first, last).astype(np.float32)
        factors = parts.elements(anchor, first // inputs, last // inputs) / np.float32(127)
        return numbers.reshape(-1, inputs) * factors[:, None]

    names = (weight.name, anchor, layout.name if layout else "")
    return DecodedWeight(info, inputs, make, tuple(filter(None, names)))


def _four_bits(parts: Parts, anchor: str) -> DecodedWeight | None:
    """Find the weight that a `quant_state` belongs to."""
    name, _, kind = anchor.rpartition(".quant_state.bitsandbytes__")
    weight = parts.find(name)
    if weight is None:
        raise Unfit(f"'{for_terminal(name)}' is missing")
    state = _state(parts, anchor)
    count = prod(state.shape)
    if weight.size_bytes != -(-count // 2):
        raise Unfit(
            f"{weight.size_bytes} bytes are not the size of {list(state.shape)} codes of 4 bits"
        )
    maxima = _Maxima(parts, name, state, -(-count // state.block))
    codes = parts.require(f"{name}.quant_map", _FLOATS, 1)
    if codes.shape != (16,):
        raise Unfit(f"its quant_map has {codes.shape[0]} values, expected 16")
    stored = f"bitsandbytes {kind}" + (", double quantised" if maxima.is_nested else "")
    info = decoded_as(name, state.shape, stored)

    def make(first: int, last: int) -> Any:
        import numpy as np

        octets = parts.bytes_of(name, first // 2, -(-last // 2))
        both = np.empty((len(octets), 2), np.uint8)
        np.right_shift(octets, 4, out=both[:, 0])
        np.bitwise_and(octets, 15, out=both[:, 1])
        numbers = parts.read_all(codes.name)[both.reshape(-1)[: last - first]]
        factors = maxima.of(first // state.block, -(-last // state.block))
        each = min(state.block, last - first)  # a block may be larger than the tensor
        return numbers * np.repeat(factors, each)[: last - first]

    return DecodedWeight(info, state.block, make, (name, anchor, codes.name, *maxima.names))


class _State(NamedTuple):
    shape: tuple[int, ...]
    block: int
    nested_block: int
    nested_offset: float


def _state(parts: Parts, anchor: str) -> _State:
    """Read the state, which is JSON in a tensor of bytes, and is not trusted."""
    info = parts.require(anchor, {"U8"}, 1)
    if info.count > _LARGEST_STATE:
        raise Unfit(f"its quant_state takes {info.count} bytes, {_LARGEST_STATE} are allowed")
    try:
        parsed = json.loads(parts.bytes_of(anchor, 0, info.count).tobytes())
    except (ValueError, RecursionError) as error:
        raise Unfit("its quant_state is not JSON") from error
    state: Any = parsed if isinstance(parsed, dict) else {}
    shape, block, nested = (state.get(key) for key in ("shape", "blocksize", "nested_blocksize"))
    offset = state.get("nested_offset", 0.0)
    lengths: list[Any] = shape if isinstance(shape, list) else [None]
    integers = [*lengths, block, 256 if nested is None else nested]
    if not all(type(each) is int and 0 < each < 1 << 48 for each in integers) or block % 2:
        raise Unfit("its quant_state lacks a shape or a blocksize")
    if not isinstance(offset, int | float) or not isfinite(offset):
        raise Unfit("its quant_state has a nested_offset that is not a finite number")
    return _State(tuple(lengths), block, integers[-1], float(offset))


class _Maxima:
    """The maximum of each block: stored as a number, or as a code to look up."""

    def __init__(self, parts: Parts, name: str, state: _State, blocks: int) -> None:
        self._parts, self._state = parts, state
        info = parts.require(f"{name}.absmax", _FLOATS | {"U8"}, 1)
        self.is_nested = info.dtype == "U8"
        self.names = [info.name]
        if self.is_nested:
            self._maxima = parts.require(f"{name}.nested_absmax", _FLOATS, 1).name
            self._codes = parts.require(f"{name}.nested_quant_map", _FLOATS, 1).name
            self.names += [self._maxima, self._codes]
            lengths = [parts.require(each, _FLOATS, 1).shape[0] for each in self.names[1:]]
            if lengths != [-(-blocks // state.nested_block), 256]:
                raise Unfit(f"{lengths} nested values do not fit {blocks} blocks")
        if info.shape != (blocks,):
            raise Unfit(f"{info.shape[0]} block maxima do not fit {blocks} blocks")

    def of(self, first: int, last: int) -> Any:
        import numpy as np

        stored = self._parts.elements(self.names[0], first, last)
        if not self.is_nested:
            return stored
        size = self._state.nested_block
        begin = first // size
        outer = self._parts.elements(self._maxima, begin, -(-last // size))
        factors = outer[np.arange(first, last) // size - begin]
        codes = self._parts.read_all(self._codes)
        return codes[stored] * factors + np.float32(self._state.nested_offset)
