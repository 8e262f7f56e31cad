"""Chunks that run backwards: by themselves, or as two codes, one for each direction."""

from __future__ import annotations

from difflens.measure.codec import ALWAYS, CHEAP, NEVER, decode, encode

from .chunks import Buffer, Kind
from .fields import number

TWO_WAYS = 5
_METHOD, _BACK, _RUN_BACK = 7, 64, (1, 2)  # sparse and dense chunks may run backwards


def runs_back(data: bytes) -> bool:
    """Does a chunk lead from the target to the base as well?"""
    if not data or data[0] == TWO_WAYS:
        return True
    return data[0] & _METHOD in _RUN_BACK and bool(data[0] & _BACK)


def code(base: Buffer | None, target: Buffer, kind: Kind, way_back: int) -> tuple[bytes, bytes]:
    """Code a chunk; where that does not run backwards and shall, code it in both ways as well."""
    data = encode(base, target, kind, min(way_back, CHEAP))
    if base is None or way_back == NEVER or runs_back(data):
        return data, b""
    second = encode(target, base, kind, NEVER)
    both = bytes([TWO_WAYS]) + number(len(data)) + data + second
    return data, min(encode(base, target, kind, ALWAYS), both, key=len)


def decode_chunk(
    data: memoryview, base: Buffer | None, out: memoryview, kind: Kind, *, backwards: bool
) -> None:
    """Fill `out`; ValueError where the data are damaged."""
    if len(data) and data[0] == TWO_WAYS:
        length, at = 0, 1
        for shift in range(0, 35, 7):
            byte = data[at] if at < len(data) else 0x80
            length |= (byte & 0x7F) << shift
            at += 1
            if not byte & 0x80:
                break
        if length > len(data) - at or not length or base is None:
            raise ValueError("the chunk is damaged")
        data = data[at + length :] if backwards else data[at : at + length]
        backwards = False
    decode(data, base, out, kind, backwards)
