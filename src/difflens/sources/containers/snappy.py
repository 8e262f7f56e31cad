"""Snappy, unpacked by hand: tables of TensorFlow may be packed with it.

length of what comes out, varint; then elements, the low two bits of the first byte say which:
0 literal: length - 1 in six bits, or in one to four bytes that follow; then the bytes
1 copy: length - 4 in three bits, offset in eleven     2, 3 copy: offset in two, four bytes
"""

from __future__ import annotations

from .protobuf import varint

_MOST_TIMES = 32  # three bytes copy at most 64


class Unpackable(ValueError):
    """These bytes are no snappy data; the caller knows where they are from."""


def unpack(data: bytes) -> bytes:
    r"""Unpack a block; what it claims is checked before anything is made.

    >>> unpack(b"\x05\x10hello")
    b'hello'
    """
    wanted, at = varint(data, 0)
    if at < 0:
        raise Unpackable("its length does not end")
    if wanted > _MOST_TIMES * len(data):
        raise Unpackable(f"{len(data)} bytes claim to unpack to {wanted}")
    made = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        at = (_copy if tag & 3 else _literal)(data, tag, at, made)
        if len(made) > wanted:
            break
    if len(made) != wanted:
        raise Unpackable(f"it claims {wanted} bytes and unpacks to {len(made)}")
    return bytes(made)


def _literal(data: bytes, tag: int, at: int, made: bytearray) -> int:
    length = (tag >> 2) + 1
    if length > 60:
        width = length - 60
        length = int.from_bytes(data[at : at + width], "little") + 1
        at += width
    if at + length > len(data):
        raise Unpackable(f"a literal of {length} bytes ends past the block")
    made += data[at : at + length]
    return at + length


def _copy(data: bytes, tag: int, at: int, made: bytearray) -> int:
    width = (0, 1, 2, 4)[tag & 3]
    offset = int.from_bytes(data[at : at + width], "little")
    length = (tag >> 2) + 1
    if width == 1:
        offset |= (tag >> 5) << 8
        length = (tag >> 2 & 7) + 4
    if at + width > len(data) or not 0 < offset <= len(made):
        raise Unpackable(f"a copy from {offset} bytes back, {len(made)} are there")
    start = len(made) - offset
    piece = bytes(made[start : start + length])
    made += (piece * (length // len(piece) + 1))[:length]
    return at + width
