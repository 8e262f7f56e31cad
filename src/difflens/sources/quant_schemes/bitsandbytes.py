"""bitsandbytes: 4-bit codes with a largest value for each block, or int8 with one for each row.

weight                            U8 [count / 2, 1]   two codes a byte, the high one first
weight.absmax                     F32 [blocks], or U8 where it is quantised itself
weight.quant_map                  F32 [16]            what a code means
weight.nested_absmax, .nested_quant_map               the same for a quantised absmax
weight.quant_state.bitsandbytes__nf4                  JSON: shape, blocksize, nested_offset ..

weight  I8 [out, in], SCB  F32 [out]                  the weight is q * SCB / 127
"""

from __future__ import annotations

import json
from math import isfinite, prod
from typing import Any, NamedTuple

from ...escape import for_terminal
from .parts import SCALES, Found, Parts, Unfit, decoded_as

_LARGEST_STATE = 65_536
_FLOATS = frozenset({"F16", "BF16", "F32"})
STATES = (".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4")


def find_int8(parts: Parts, anchor: str) -> Found | None:
    """Find the weight an `SCB` belongs to."""
    stem = anchor.removesuffix("SCB")
    weight = parts.need(f"{stem}weight", {"I8"}, 2)
    rows = parts.need(anchor, SCALES, 1)
    outputs, inputs = weight.shape
    if rows.shape != (outputs,):
        raise Unfit(f"{list(rows.shape)} row maxima do not fit {list(weight.shape)} integers")
    layout = parts.look(f"{stem}weight_format")
    if layout is not None:
        is_plain = layout.count == 1 and layout.dtype == "U8"
        if not is_plain or parts.whole(layout.name).any():
            raise Unfit("its weight_format is not that of plain rows")
    info = decoded_as(weight.name, weight.shape, "bitsandbytes int8")

    def make(first: int, last: int) -> Any:
        import numpy as np

        numbers = parts.elements(weight.name, first, last).astype(np.float32)
        factors = parts.elements(anchor, first // inputs, last // inputs) / np.float32(127)
        return numbers.reshape(-1, inputs) * factors[:, None]

    names = (weight.name, anchor, layout.name if layout else "")
    return Found(info, inputs, make, tuple(filter(None, names)))


def find(parts: Parts, anchor: str) -> Found | None:
    """Find the weight a `quant_state` belongs to."""
    name, _, kind = anchor.rpartition(".quant_state.bitsandbytes__")
    weight = parts.look(name)
    if weight is None:
        raise Unfit(f"there is no '{for_terminal(name)}'")
    state = _state(parts, anchor)
    count = prod(state.shape)
    if weight.size_bytes != -(-count // 2):
        raise Unfit(f"{weight.size_bytes} bytes do not hold {list(state.shape)} codes of 4 bits")
    maxima = _Maxima(parts, name, state, -(-count // state.block))
    codes = parts.need(f"{name}.quant_map", _FLOATS, 1)
    if codes.shape != (16,):
        raise Unfit(f"its quant_map has {codes.shape[0]} values, 16 are wanted")
    said = f"bitsandbytes {kind}" + (", double quantised" if maxima.is_nested else "")
    info = decoded_as(name, state.shape, said)

    def make(first: int, last: int) -> Any:
        import numpy as np

        octets = parts.bytes_of(name, first // 2, -(-last // 2))
        both = np.empty((len(octets), 2), np.uint8)
        np.right_shift(octets, 4, out=both[:, 0])
        np.bitwise_and(octets, 15, out=both[:, 1])
        numbers = parts.whole(codes.name)[both.reshape(-1)[: last - first]]
        factors = maxima.of(first // state.block, -(-last // state.block))
        each = min(state.block, last - first)  # the state may call everything one block
        return numbers * np.repeat(factors, each)[: last - first]

    return Found(info, state.block, make, (name, anchor, codes.name, *maxima.names))


class _State(NamedTuple):
    shape: tuple[int, ...]
    block: int
    nested_block: int
    nested_offset: float


def _state(parts: Parts, anchor: str) -> _State:
    """Read the state, which is JSON in a tensor of bytes; a stranger wrote it."""
    info = parts.need(anchor, {"U8"}, 1)
    if info.count > _LARGEST_STATE:
        raise Unfit(f"its quant_state takes {info.count} bytes")
    try:
        parsed = json.loads(parts.bytes_of(anchor, 0, info.count).tobytes())
    except (ValueError, RecursionError) as error:
        raise Unfit("its quant_state is no JSON") from error
    said: Any = parsed if isinstance(parsed, dict) else {}
    shape, block, nested = (said.get(key) for key in ("shape", "blocksize", "nested_blocksize"))
    offset = said.get("nested_offset", 0.0)
    lengths: list[Any] = shape if isinstance(shape, list) else [None]
    whole = [*lengths, block, 256 if nested is None else nested]
    if not all(type(each) is int and 0 < each < 1 << 48 for each in whole) or block % 2:
        raise Unfit("its quant_state lacks a shape or a blocksize")
    if not isinstance(offset, int | float) or not isfinite(offset):
        raise Unfit("its quant_state has a nested_offset that is no number")
    return _State(tuple(lengths), block, whole[-1], float(offset))


class _Maxima:
    """The largest value of each block: stored, or a code to be looked up itself."""

    def __init__(self, parts: Parts, name: str, state: _State, blocks: int) -> None:
        self._parts, self._state = parts, state
        info = parts.need(f"{name}.absmax", _FLOATS | {"U8"}, 1)
        self.is_nested = info.dtype == "U8"
        self.names = [info.name]
        if self.is_nested:
            self._maxima = parts.need(f"{name}.nested_absmax", _FLOATS, 1).name
            self._codes = parts.need(f"{name}.nested_quant_map", _FLOATS, 1).name
            self.names += [self._maxima, self._codes]
            lengths = [parts.need(each, _FLOATS, 1).shape[0] for each in self.names[1:]]
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
        codes = self._parts.whole(self._codes)
        return codes[stored] * factors + np.float32(self._state.nested_offset)
