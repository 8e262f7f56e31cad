"""The messages of an ONNX file that describe a tensor, a property, an input or an output.

    TensorProto
    1 dims   2 data_type   3 segment   4 float_data   5 int32_data   6 string_data   7 int64_data
    8 name   9 raw_data   10 double_data   11 uint64_data   13 external_data   14 data_location

    StringStringEntryProto  1 key  2 value
    ValueInfoProto          1 name  2 type     TypeProto  1 tensor_type: 1 elem_type  2 shape
    TensorShapeProto        1 dim: 1 size or 2 name

The values of a tensor are stored once: raw, in the typed field of their data_type, or in another
file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal
from difflens.core.limits import LARGEST

from ..containers.encodings import Codes, Encoding, Inline, Straight, Varints
from ..containers.protobuf import BYTES, MOST_SCATTERED, VARINT, Field, Wire, signed

RAW, FLOATS, INT32S, INT64S, DOUBLES, UINT64S = 9, 4, 5, 7, 10, 11
_VALUES = {
    RAW: "raw_data",
    FLOATS: "float_data",
    INT32S: "int32_data",
    6: "string_data",
    INT64S: "int64_data",
    DOUBLES: "double_data",
    UINT64S: "uint64_data",
}
_ONCE = {2: "data_type", 8: "name", RAW: "raw_data", 14: "data_location"}
_SMALL = 1 << 20  # bytes of varints that are counted when the file is opened


class Kind(NamedTuple):
    """A data_type: its name, our dtype, the bits it takes in the file, its typed field."""

    name: str
    dtype: str
    bits: int
    typed: int


# fmt: off
KINDS = {
    1: Kind("FLOAT", "F32", 32, FLOATS), 2: Kind("UINT8", "U8", 8, INT32S),
    3: Kind("INT8", "I8", 8, INT32S), 4: Kind("UINT16", "U16", 16, INT32S),
    5: Kind("INT16", "I16", 16, INT32S), 6: Kind("INT32", "I32", 32, INT32S),
    7: Kind("INT64", "I64", 64, INT64S), 9: Kind("BOOL", "BOOL", 8, INT32S),
    10: Kind("FLOAT16", "F16", 16, INT32S), 11: Kind("DOUBLE", "F64", 64, DOUBLES),
    12: Kind("UINT32", "U32", 32, UINT64S), 13: Kind("UINT64", "U64", 64, UINT64S),
    14: Kind("COMPLEX64", "C64", 64, FLOATS), 15: Kind("COMPLEX128", "F64", 128, DOUBLES),
    16: Kind("BFLOAT16", "BF16", 16, INT32S), 17: Kind("FLOAT8E4M3FN", "F8_E4M3", 8, INT32S),
    18: Kind("FLOAT8E4M3FNUZ", "F8_E4M3FNUZ", 8, INT32S),
    19: Kind("FLOAT8E5M2", "F8_E5M2", 8, INT32S),
    20: Kind("FLOAT8E5M2FNUZ", "F8_E5M2FNUZ", 8, INT32S), 21: Kind("UINT4", "U8", 4, INT32S),
    22: Kind("INT4", "I8", 4, INT32S), 23: Kind("FLOAT4E2M1", "F4", 4, INT32S),
    24: Kind("FLOAT8E8M0", "F8_E8M0", 8, INT32S), 25: Kind("UINT2", "U8", 2, INT32S),
    26: Kind("INT2", "I8", 2, INT32S), 27: Kind("FLOAT6E2M3", "F32", 6, INT32S),
    28: Kind("FLOAT6E3M2", "F32", 6, INT32S),
}
# fmt: on
STRING = 8


@dataclass
class Proto:
    """What the fields of a TensorProto say, before anything is made of them."""

    name: str = ""
    data_type: int = 0
    dims: list[int] = field(default_factory=list)
    values: dict[int, list[Field]] = field(default_factory=dict)
    external: list[Field] = field(default_factory=list)
    location: int = 0
    segmented: bool = False

    @property
    def about(self) -> str:
        """Name it in a message."""
        return f"tensor '{for_terminal(self.name)}'"


class Values(NamedTuple):
    """A tensor that can be read: our dtype and shape, and the way its bytes are kept."""

    dtype: str
    shape: tuple[int, ...]
    stored: str | None
    encoding: Encoding


def parse(wire: Wire, start: int, stop: int) -> Proto:
    """Read the fields; where something may stand once, a second one is refused."""
    proto, seen = Proto(), set()
    for each in wire.fields(start, stop):
        number = each.number
        if number in _ONCE:
            if number in seen:
                raise wire.corrupt(each.start, f"{_ONCE[number]} is given twice")
            seen.add(number)
        if number == 1:
            _add_dimensions(wire, proto, each)
        elif number in (2, 14):
            wire.want(each, VARINT)
            setattr(proto, "data_type" if number == 2 else "location", each.value)
        elif number == 3:
            proto.segmented = True
        elif number == 8:
            proto.name = wire.text(each)
        elif number == 13:
            wire.want(each, BYTES)
            proto.external.append(each)
        elif number in _VALUES:
            _add_values(wire, proto, each)
    return proto


def _add_dimensions(wire: Wire, proto: Proto, each: Field) -> None:
    rank = wire.file.limit("rank")
    proto.dims += [signed(size) for size in wire.numbers(each, rank + 1)]
    if len(proto.dims) > rank:
        reason = f"a tensor has rank {len(proto.dims)} or more, the limit is {rank}"
        raise LimitExceeded(wire.where, f"at byte {each.start} {reason}")


def _add_values(wire: Wire, proto: Proto, each: Field) -> None:
    """Note where values are; of strings only that there are some."""
    if each.wire == BYTES and each.stop == each.start and each.number != RAW:
        return
    found = proto.values.setdefault(each.number, [])
    if each.number == 6 and found:
        return
    if len(found) >= MOST_SCATTERED:
        raise wire.too_scattered(each)
    found.append(each)


def count_of(wire: Wire, proto: Proto, kind: Kind) -> int:
    """Count the elements of a shape that is one."""
    wrong = next((size for size in proto.dims if size < 0), None)
    if wrong is not None:
        raise CorruptFile(wire.where, f"{proto.about} has the dimension {wrong}")
    # Readers multiply before they see the zero, so a zero-size shape may overflow as well.
    if kind.bits * prod(filter(None, proto.dims)) > LARGEST:
        shape = for_terminal(str(proto.dims), 80)
        raise CorruptFile(wire.where, f"{proto.about}: its shape {shape} overflows 63 bits")
    return prod(proto.dims)


def values_of(wire: Wire, proto: Proto, outside: Straight | None) -> Values:
    """Return the tensor's values: of this file, or from `outside` where they are in another."""
    kind = KINDS[proto.data_type]
    count = count_of(wire, proto, kind)
    given = {number: found for number, found in proto.values.items() if found}
    if outside is not None:
        given.pop(RAW, None) if _is_empty(given.get(RAW)) else None
    elif _is_empty(given.get(RAW)) and (len(given) > 1 or not count):
        given.pop(RAW, None)  # some writers leave an empty raw_data beside the typed values
    if len(given) + (outside is not None) > 1:
        both = " and ".join([_VALUES[number] for number in given] + ["external data"])
        raise CorruptFile(wire.where, f"{proto.about} has {both}: its values are given twice")
    if outside is not None:
        return _made(proto, kind, count, outside, packed=True)
    if not given:
        if count:
            raise CorruptFile(wire.where, f"{proto.about} has {count} elements and no values")
        return _made(proto, kind, count, Inline(b""), packed=True)
    ((number, fields),) = given.items()
    if number == RAW:
        return _made(proto, kind, count, _raw(wire, proto, kind, count, fields[0]), packed=True)
    if number != kind.typed:
        said = f"{proto.about} is {kind.name} and has {_VALUES[number]}"
        raise CorruptFile(wire.where, f"{said}, {_VALUES[kind.typed]} is wanted")
    typed = _typed(wire, proto, kind, count, fields)
    return _made(proto, kind, count, typed, packed=kind.bits != 6)


def _is_empty(fields: list[Field] | None) -> bool:
    return bool(fields) and all(each.start == each.stop for each in fields or ())


def _raw(wire: Wire, proto: Proto, kind: Kind, count: int, found: Field) -> Straight:
    wire.want(found, BYTES)
    takes, has = -(-count * kind.bits // 8), found.stop - found.start
    if takes != has:
        shape = for_terminal(str(proto.dims), 80)
        said = f"{proto.about}: {kind.name} {shape} takes {takes} bytes"
        raise CorruptFile(wire.where, f"{said}, its raw_data has {has}")
    return Straight(wire.file, found.start)


def _typed(wire: Wire, proto: Proto, kind: Kind, count: int, fields: list[Field]) -> Encoding:
    """Return the values of a typed field, packed or one by one."""
    fixed = {FLOATS: 4, DOUBLES: 8}.get(kind.typed)
    if fixed:
        wanted = count * kind.bits // 8
        if len(fields) == 1 and fields[0].wire == BYTES:
            if fields[0].stop - fields[0].start != wanted:
                have = (fields[0].stop - fields[0].start) // fixed
                raise _miscounted(wire, proto, wanted // fixed, have)
            return Straight(wire.file, fields[0].start)
        data = wire.scattered(fields, fixed, fixed=True)
        if len(data) != wanted:
            raise _miscounted(wire, proto, wanted // fixed, len(data) // fixed)
        return Inline(data)
    width = 1 if kind.bits < 8 else kind.bits // 8
    entries = -(-count * kind.bits // 8) if kind.bits in (2, 4) else count
    if len(fields) == 1 and fields[0].wire == BYTES:
        place = range(fields[0].start, fields[0].stop)
        varints = Varints(wire.file, place, entries, width, proto.name)
        if not entries <= len(place) <= 10 * entries or len(place) <= _SMALL:
            varints.check()
        return varints
    data = wire.scattered(fields, width)
    if len(data) != entries * width:
        raise _miscounted(wire, proto, entries, len(data) // width)
    return Inline(data)


def _miscounted(wire: Wire, proto: Proto, wanted: int, found: int) -> CorruptFile:
    reason = f"{proto.about}: its shape takes {wanted} values, there are {found}"
    return CorruptFile(wire.where, reason)


def _made(proto: Proto, kind: Kind, count: int, encoding: Encoding, *, packed: bool) -> Values:
    """Return values in one of our dtypes; what is packed tighter than those is unpacked."""
    shape = tuple(proto.dims)
    if kind.name == "COMPLEX128":
        return Values("F64", (*shape, 2), kind.name, encoding)
    if kind.bits >= 8 or (kind.dtype == "F4" and count % 2 == 0):
        return Values(kind.dtype, shape, None, encoding)
    dtype = "F32" if kind.dtype == "F4" else kind.dtype
    bits = kind.bits if packed else 8
    return Values(dtype, shape, kind.name, Codes(encoding, bits, count, _table(kind, bits)))


def _table(kind: Kind, bits: int) -> tuple[bytes, ...]:
    """Return the plain bytes of every code of a kind of fewer than eight bits."""
    from struct import pack

    def decoded(code: int) -> bytes:
        code &= (1 << kind.bits) - 1
        sign = code >> kind.bits - 1
        if kind.dtype == "U8":
            return bytes([code])
        if kind.dtype == "I8":
            return bytes([(code - (sign << kind.bits)) & 0xFF])
        mantissa_bits = int(kind.name[-1])
        exponent_bits = kind.bits - 1 - mantissa_bits
        mantissa = code & (1 << mantissa_bits) - 1
        exponent = code >> mantissa_bits & (1 << exponent_bits) - 1
        bias = (1 << exponent_bits - 1) - 1
        whole = mantissa + (1 << mantissa_bits if exponent else 0)
        size = whole * 2.0 ** (max(exponent, 1) - bias - mantissa_bits)
        return pack("<f", -size if sign else size)

    return tuple(decoded(code) for code in range(1 << bits))


def entry(wire: Wire, each: Field) -> tuple[str, str]:
    """Read a StringStringEntryProto."""
    wire.want(each, BYTES)
    key = value = ""
    for part in wire.fields(each.start, each.stop):
        if part.number == 1:
            key = wire.text(part)
        elif part.number == 2:
            value = wire.brief(part)
    return key, value


def value_info(wire: Wire, each: Field) -> str:
    """Describe an input or output as `name TYPE [1, batch, 3]`."""
    wire.want(each, BYTES)
    name, kind = "", ""
    for part in wire.fields(each.start, each.stop):
        if part.number == 1:
            name = wire.text(part)
        elif part.number == 2 and part.wire == BYTES:
            kind = _type(wire, part)
    return f"{name} {kind}".strip()


def _type(wire: Wire, each: Field) -> str:
    """Describe a TypeProto: a tensor's element type and shape; other types by their name."""
    others = {4: "sequence", 5: "map", 7: "opaque", 8: "sparse tensor", 9: "optional"}
    for part in wire.fields(each.start, each.stop):
        if part.number in others:
            return others[part.number]
        if part.number == 1 and part.wire == BYTES:
            element, shape = "", ""
            for inner in wire.fields(part.start, part.stop):
                if inner.number == 1:
                    kind = KINDS.get(inner.value)
                    string = "STRING" if inner.value == STRING else f"type {inner.value}"
                    element = kind.name if kind else string
                elif inner.number == 2 and inner.wire == BYTES:
                    shape = f" [{', '.join(_dimensions(wire, inner))}]"
            return element + shape
    return ""


def _dimensions(wire: Wire, shape: Field) -> list[str]:
    dimensions: list[str] = []
    for each in wire.fields(shape.start, shape.stop):
        if each.number == 1 and each.wire == BYTES and len(dimensions) < wire.file.limit("rank"):
            size = "?"
            for part in wire.fields(each.start, each.stop):
                if part.number == 1 and part.wire == VARINT:
                    size = str(part.value)
                elif part.number == 2:
                    size = wire.text(part)
            dimensions.append(size)
    return dimensions
