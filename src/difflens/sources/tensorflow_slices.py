"""Tensors that a checkpoint keeps in slices, and the keys under which it keeps them.

A slice's key is in OrderedCode, so that slices sort by place: a zero, the tensor's name, its
rank, then start and length along each axis (-1 for all of an axis).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import prod

from ..escape import for_terminal
from .containers.encodings import Encoding, Stacked

Extents = list[tuple[int, int]]
Find = Callable[[bytes, tuple[int, ...]], Encoding]


class Misfit(ValueError):
    """Slices that do not make a whole; the caller knows of which tensor."""


def stacked(
    name: bytes, slices: list[Extents], shape: tuple[int, ...], width: int, find: Find
) -> Encoding | None:
    """Put slices together that cut one axis; None where they cut several.

    Raises `Misfit` where they do not fill the tensor.
    """
    full = [_whole(extents, shape) for extents in slices]
    cut = {axis for each in full for axis, part in enumerate(each) if part != (0, shape[axis])}
    if len(cut) > 1 or not shape:
        return None
    axis = min(cut, default=0)
    order = sorted(range(len(full)), key=lambda which: full[which][axis])
    end = 0
    for which in order:
        start, length = full[which][axis]
        if start != end:
            raise Misfit(f"its slices leave a hole or overlap at {end} of axis {axis}")
        end += length
    if end != shape[axis]:
        raise Misfit(f"its slices end at {end} of {shape[axis]} along axis {axis}")
    pieces = (
        find(key_of(name, slices[which]), tuple(length for _, length in full[which]))
        for which in order
    )
    row = prod(shape[axis + 1 :]) * width
    return Stacked(tuple(pieces), tuple(accumulate(full[which][axis][1] * row for which in order)))


def _whole(extents: Extents, shape: tuple[int, ...]) -> Extents:
    """Give a slice with every length written out, once it lies in the tensor."""
    whole = [
        (start, size if length == -1 else length)
        for (start, length), size in zip(extents, shape, strict=False)
    ]
    inside = all(
        start >= 0 and length >= 0 and start + length <= size
        for (start, length), size in zip(whole, shape, strict=False)
    )
    if len(extents) != len(shape) or not inside:
        shown = for_terminal(str(extents), 80)
        raise Misfit(f"the slice {shown} is outside its shape {list(shape)}")
    return whole


def key_of(name: bytes, extents: Extents) -> bytes:
    r"""Give the key of a slice.

    >>> key_of(b"w", [(0, 3), (0, -1)])
    b'\x00w\x00\x01\x01\x02\x80\x83\x80\x7f'
    """
    table = {0x00: b"\x00\xff", 0xFF: b"\xff\x00"}
    escaped = b"".join(table.get(byte, bytes([byte])) for byte in name)
    rank = len(extents)
    size = (rank.bit_length() + 7) // 8
    head = b"\x00" + escaped + b"\x00\x01" + bytes([size]) + rank.to_bytes(size, "big")
    return head + b"".join(_number(value) for pair in extents for value in pair)


def _number(value: int) -> bytes:
    """Write a number so that bytes sort as numbers do: ones in front count its bytes."""
    magnitude = ~value if value < 0 else value
    if magnitude < 64:
        return bytes([0x80 ^ (value & 0xFF)])
    length = magnitude.bit_length() // 7 + 1
    plain = bytearray((value & (1 << 80) - 1).to_bytes(10, "big")[-length:])
    ones = ((1 << length) - 1) << 16 - length
    plain[0] ^= ones >> 8
    plain[1] ^= ones & 0xFF
    return bytes(plain)
