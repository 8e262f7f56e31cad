"""How the files of TensorFlow describe a tensor: its element type, its shape, its slices.

A slice of a tensor is stored under a key of its own, in OrderedCode, so that slices sort by place:
a zero, the tensor's name, its rank, then start and length along each axis (-1 for all of an axis).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import prod
from typing import NamedTuple

from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal
from difflens.core.limits import LARGEST

from ..containers.encodings import Encoding, Stacked
from ..containers.protobuf import BYTES, VARINT, Field, Wire, signed

Extents = list[tuple[int, int]]
Find = Callable[[bytes, tuple[int, ...]], Encoding]


class Type(NamedTuple):
    """An element type: our dtype, the bytes it takes in a file, TensorFlow's name if another."""

    dtype: str
    width: int
    stored: str | None = None


# fmt: off
TYPES = {
    1: Type("F32", 4), 2: Type("F64", 8), 3: Type("I32", 4), 4: Type("U8", 1), 5: Type("I16", 2),
    6: Type("I8", 1), 8: Type("C64", 8), 9: Type("I64", 8), 10: Type("BOOL", 1),
    11: Type("I8", 1, "QINT8"), 12: Type("U8", 1, "QUINT8"), 13: Type("I32", 4, "QINT32"),
    14: Type("BF16", 2), 15: Type("I16", 2, "QINT16"), 16: Type("U16", 2, "QUINT16"),
    17: Type("U16", 2), 18: Type("F64", 16, "COMPLEX128"), 19: Type("F16", 2), 22: Type("U32", 4),
    23: Type("U64", 8), 24: Type("F8_E5M2", 1), 25: Type("F8_E4M3", 1), 26: Type("F8_E4M3FNUZ", 1),
    27: Type("U8", 1, "FLOAT8_E4M3B11FNUZ"), 28: Type("F8_E5M2FNUZ", 1),
    29: Type("I8", 1, "INT4"), 30: Type("U8", 1, "UINT4"), 31: Type("I8", 1, "INT2"),
    32: Type("U8", 1, "UINT2"),
}
# fmt: on
STRING = 7
NAMES = {STRING: "STRING", 20: "RESOURCE", 21: "VARIANT", 33: "FLOAT4_E2M1FN"}


def type_name(number: int) -> str:
    """Name a type for people."""
    known = TYPES.get(number)
    return (known.stored or known.dtype) if known else NAMES.get(number, f"type {number}")


def shape_of(wire: Wire, field: Field) -> tuple[int, ...] | None:
    """Read a TensorShapeProto; None if its rank is not known, -1 for a size that is not."""
    wire.want(field, BYTES)
    sizes: list[int] = []
    rank = wire.file.limit("rank")
    for each in wire.fields(field.start, field.stop):
        if each.number == 3 and each.value:
            return None
        if each.number != 2:
            continue
        wire.want(each, BYTES)
        size = 0
        for part in wire.fields(each.start, each.stop):
            if part.number == 1:
                wire.want(part, VARINT)
                size = signed(part.value)
        sizes.append(size)
        if len(sizes) > rank:
            reason = f"a shape has rank {len(sizes)} or more, the limit is {rank}"
            raise LimitExceeded(wire.where, f"at byte {field.start} {reason}")
    return tuple(sizes)


def size_of(shape: tuple[int, ...] | None, kind: Type, about: str, where: str) -> int:
    """Return the bytes a tensor takes in the file, once its shape is one."""
    if shape is None or any(size < 0 for size in shape):
        raise CorruptFile(where, f"{about} has the shape {shape}, whole sizes are wanted")
    # Readers multiply before they see the zero, so a zero-size shape may overflow as well.
    if 8 * kind.width * prod(filter(None, shape)) > LARGEST:
        shown = for_terminal(str(list(shape)), 80)
        raise CorruptFile(where, f"{about}: its shape {shown} overflows 63 bits")
    return prod(shape) * kind.width


def seen_shape(shape: tuple[int, ...], kind: Type) -> tuple[int, ...]:
    """Return the shape in our dtype: a complex number of two float64 has one axis more."""
    return (*shape, 2) if kind.stored == "COMPLEX128" else shape


def described(number: int, shape: tuple[int, ...] | None) -> str:
    """Describe an input or output as `F32 [?, 3]`."""
    sizes = "unknown rank" if shape is None else ", ".join("?" if n < 0 else str(n) for n in shape)
    return f"{type_name(number)} [{sizes}]"


class Misfit(ValueError):
    """Slices that do not make a whole; the caller knows of which tensor."""


def stacked(
    name: bytes, slices: list[Extents], shape: tuple[int, ...], width: int, find: Find
) -> Encoding | None:
    """Put slices together that cut one axis; None if they cut several.

    Raises `Misfit` where they do not fill the tensor.
    """
    full = [_with_lengths(extents, shape) for extents in slices]
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


def _with_lengths(extents: Extents, shape: tuple[int, ...]) -> Extents:
    """Return a slice with every length written out, once it lies in the tensor."""
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
    r"""Return the key of a slice.

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
