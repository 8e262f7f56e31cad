"""Tensors that a checkpoint keeps in slices, and the keys under which it keeps them.

A slice's key is in OrderedCode, so that slices sort by place: a zero, the tensor's name, its
rank, then start and length along each axis (-1 for all of an axis).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import prod

from ..errors import CorruptFile
from ..escape import for_terminal
from .containers.encodings import Encoding, Stacked

Extents = list[tuple[int, int]]


def stacked(
    name: bytes,
    slices: list[Extents],
    shape: tuple[int, ...],
    width: int,
    slice_at: Callable[[bytes, tuple[int, ...]], Encoding],
    where: str,
) -> Encoding | None:
    """Put slices together that cut one axis; None where they cut several."""
    about = f"tensor '{for_terminal(name.decode('utf-8', 'backslashreplace'))}'"
    full: list[tuple[tuple[int, int], ...]] = []
    for extents in slices:
        sizes = [size if length == -1 else length for (_, length), size in zip(extents, shape)]
        inside = all(
            start >= 0 and length >= 0 and start + length <= size
            for (start, _), length, size in zip(extents, sizes, shape)
        )
        if len(extents) != len(shape) or not inside:
            shown = for_terminal(str(extents), 80)
            raise CorruptFile(where, f"{about}: the slice {shown} is outside its shape {shape}")
        full.append(tuple((start, length) for (start, _), length in zip(extents, sizes)))
    cut = [
        axis
        for axis, size in enumerate(shape)
        if any(each[axis] != (0, size) for each in full)
    ]  # fmt: skip
    if len(cut) > 1 or not full:
        return None
    axis = cut[0] if cut else 0
    order = sorted(range(len(full)), key=lambda each: full[each][axis] if shape else (0, 0))
    end = 0
    for each in order:
        start, length = full[each][axis] if shape else (0, 1)
        if start != end:
            raise CorruptFile(where, f"{about}: its slices leave a hole or overlap at {end}")
        end += length
    if end != (shape[axis] if shape else 1):
        raise CorruptFile(where, f"{about}: its slices end at {end} of {shape[axis]}")
    pieces = [slice_at(key_of(name, slices[each]), tuple(n for _, n in full[each])) for each in order]
    lengths = [full[each][axis][1] if shape else 1 for each in order]
    ends = accumulate(length * prod(shape[axis + 1 :]) * width for length in lengths)
    return Stacked(tuple(pieces), tuple(ends))


def key_of(name: bytes, extents: Extents) -> bytes:
    r"""Give the key of a slice.

    >>> key_of(b"w", [(0, 3), (0, -1)])
    b'\x00w\x00\x01\x01\x02\x80\x83\x80\x7f'
    """
    escaped = name.replace(b"\xff", b"\xff\x00").replace(b"\x00", b"\x00\xff")
    if b"\xff" in name:  # the two escapes must not see each other's work
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
