"""TensorFlow's element types and shapes, as its files write them down."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ..errors import CorruptFile, LimitExceeded
from ..escape import for_terminal
from .containers.protobuf import BYTES, VARINT, Field, Wire, signed
from .strict_json import LARGEST


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
NAMES = {
    STRING: "STRING", 20: "RESOURCE", 21: "VARIANT", 33: "FLOAT4_E2M1FN",
}  # fmt: skip


def type_name(number: int) -> str:
    """Name a type for people."""
    known = TYPES.get(number)
    return (known.stored or known.dtype) if known else NAMES.get(number, f"type {number}")


def shape_of(wire: Wire, field: Field) -> tuple[int, ...] | None:
    """Read a TensorShapeProto; None where its rank is not known, -1 for a size that is not."""
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
    """Give the bytes a tensor takes in the file, once its shape is one."""
    if shape is None or any(size < 0 for size in shape):
        raise CorruptFile(where, f"{about} has the shape {shape}, whole sizes are wanted")
    # Readers multiply before they see the zero, so a zero-size shape may overflow as well.
    if 8 * kind.width * prod(filter(None, shape)) > LARGEST:
        shown = for_terminal(str(list(shape)), 80)
        raise CorruptFile(where, f"{about}: its shape {shown} overflows 63 bits")
    return prod(shape) * kind.width


def seen_shape(shape: tuple[int, ...], kind: Type) -> tuple[int, ...]:
    """Give the shape in our dtype: a complex number of two float64 has one axis more."""
    return (*shape, 2) if kind.stored == "COMPLEX128" else shape


def described(number: int, shape: tuple[int, ...] | None) -> str:
    """Describe an input or output as `F32 [?, 3]`."""
    sizes = "unknown rank" if shape is None else ", ".join("?" if n < 0 else str(n) for n in shape)
    return f"{type_name(number)} [{sizes}]"
