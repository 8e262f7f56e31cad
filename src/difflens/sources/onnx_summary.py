"""What an ONNX file says beside its tensors: properties, inputs and outputs, as text.

StringStringEntryProto  1 key  2 value
ValueInfoProto          1 name  2 type     TypeProto  1 tensor_type: 1 elem_type  2 shape
TensorShapeProto        1 dim: 1 size or 2 name
"""

from __future__ import annotations

from .containers.protobuf import BYTES, VARINT, Field, Wire
from .onnx_tensor import KINDS, STRING


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
