"""The constants of a TensorFlow graph, and a count of its operations.

GraphDef     1 node  2 library  3 version  4 versions       library: 1 function
FunctionDef  1 signature (1 name)  3 node_def
NodeDef      1 name  2 op  5 attr: 1 key, 2 value (8 tensor)
TensorProto  1 dtype  2 tensor_shape  4 tensor_content, or values in a field of their type;
where there are fewer values than elements, the last stands for the rest
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal
from difflens.core.records import TensorInfo

from ..containers.encodings import Encoding, Inline, Repeated, Straight, Varints, count_varints
from ..containers.protobuf import BYTES, VARINT, Field, Wire
from ..folders.listing import listed
from .tensors import TYPES, Type, described, seen_shape, shape_of, size_of, type_name

_CONTENT = 4
# The field of each type's values, and the bytes of one where they are not varints.
_FIELDS = {
    1: (5, 4),
    2: (6, 8),
    8: (9, 4),
    18: (12, 8),
    9: (10, 0),
    10: (11, 0),
    14: (13, 0),
    19: (13, 0),
    22: (16, 0),
    23: (17, 0),
    24: (18, 1),
    25: (18, 1),
    26: (18, 1),
    27: (18, 1),
    28: (18, 1),
}
_INTEGERS = (7, 0)
_VALUE_FIELDS = frozenset({_CONTENT, 5, 6, 7, 9, 10, 11, 12, 13, 16, 17, 18})


@dataclass
class Graph:
    """What a graph holds."""

    tensors: dict[str, TensorInfo] = field(default_factory=dict)
    encodings: dict[str, Encoding] = field(default_factory=dict)
    operators: Counter[str] = field(default_factory=Counter)
    inputs: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    nodes: int = 0
    has_versions: bool = False

    @property
    def warnings(self) -> list[str]:
        """Name once what was left out."""
        if not self.unread:
            return []
        return [f"not read, because of what they hold: {listed(self.unread)}"]

    def summary(self) -> dict[str, str]:
        """Sum up what is not a tensor."""
        operators = ", ".join(f"{name} {count}" for name, count in sorted(self.operators.items()))
        facts = {"inputs": ", ".join(self.inputs), "operators": operators}
        return {f"graph.{key}": value for key, value in facts.items() if value}


def graph_at(wire: Wire, start: int, stop: int) -> Graph:
    """Walk a GraphDef and the functions beside it."""
    graph = Graph()
    for each in wire.fields(start, stop):
        if each.number == 1:
            _node(wire, each, "", graph)
        elif each.number == 2:
            wire.want(each, BYTES)
            for function in wire.fields(each.start, each.stop):
                if function.number == 1:
                    _function(wire, function, graph)
        elif each.number in (3, 4):
            graph.has_versions = True
    return graph


def _function(wire: Wire, function: Field, graph: Graph) -> None:
    wire.want(function, BYTES)
    nodes, prefix = [], ""
    for each in wire.fields(function.start, function.stop):
        if each.number == 1:
            wire.want(each, BYTES)
            for part in wire.fields(each.start, each.stop):
                if part.number == 1:
                    prefix = wire.text(part) + "/"
        elif each.number == 3:
            nodes.append(each)
    for each in nodes:
        _node(wire, each, prefix, graph)


def _node(wire: Wire, node: Field, prefix: str, graph: Graph) -> None:
    """Count a node, and add its tensor if it is a constant."""
    wire.want(node, BYTES)
    name, operator, attributes = "", "", []
    for each in wire.fields(node.start, node.stop):
        if each.number == 1:
            name = prefix + wire.text(each)
        elif each.number == 2:
            operator = wire.text(each)
        elif each.number == 5:
            attributes.append(each)
    graph.nodes += 1
    graph.operators[operator] += 1
    if operator == "Const":
        for each in attributes:
            if value := _attribute(wire, each, "value", 8):
                _constant(wire, value, name, graph)
    elif operator == "Placeholder" and not prefix:
        graph.inputs.append(_placeholder(wire, name, attributes))


def _placeholder(wire: Wire, name: str, attributes: list[Field]) -> str:
    number, shape = 0, None
    for each in attributes:
        if kind := _attribute(wire, each, "dtype", 6):
            number = kind.value
        elif sizes := _attribute(wire, each, "shape", 7):
            shape = shape_of(wire, sizes)
    return f"{name} {described(number, shape)}"


def _attribute(wire: Wire, attribute: Field, key: str, number: int) -> Field | None:
    """Return a field of an attribute's value, where the attribute has that key."""
    wire.want(attribute, BYTES)
    found, value = "", None
    for each in wire.fields(attribute.start, attribute.stop):
        if each.number == 1:
            found = wire.text(each)
        elif each.number == 2:
            value = each
    if found != key or value is None:
        return None
    wire.want(value, BYTES)
    for each in wire.fields(value.start, value.stop):
        if each.number == number:
            return each
    return None


def _constant(wire: Wire, tensor: Field, name: str, graph: Graph) -> None:
    if name in graph.tensors:
        raise CorruptFile(wire.where, f"constant '{for_terminal(name)}' is given twice")
    wire.want(tensor, BYTES)
    number = 0
    shape: tuple[int, ...] | None = ()
    fields: dict[int, list[Field]] = {}
    for each in wire.fields(tensor.start, tensor.stop):
        if each.number == 1:
            wire.want(each, VARINT)
            number = each.value
        elif each.number == 2:
            shape = shape_of(wire, each)
        elif each.number in _VALUE_FIELDS and (each.wire != BYTES or each.stop > each.start):
            found = fields.setdefault(each.number, [])
            if len(found) >= 1 << 16:
                raise wire.too_scattered(each)
            found.append(each)
    kind = TYPES.get(number)
    if kind is None:
        graph.unread.append(f"{name} ({type_name(number)})")
        return
    about = f"constant '{for_terminal(name)}'"
    size = size_of(shape, kind, about, wire.where)
    graph.encodings[name] = _values(wire, number, size, fields, about)
    graph.tensors[name] = TensorInfo(name, kind.dtype, seen_shape(shape or (), kind), kind.stored)


def _values(
    wire: Wire, number: int, size: int, fields: dict[int, list[Field]], about: str
) -> Encoding:
    """Return a constant's values: its content, or what the field of its type holds."""
    kind = TYPES[number]
    if len(fields) > 1:
        raise CorruptFile(wire.where, f"{about}: its values are given twice")
    if _CONTENT in fields:
        (found, *more) = fields[_CONTENT]
        wire.want(found, BYTES)
        if more or found.stop - found.start != size:
            said = f"{about} takes {size} bytes, its content has {found.stop - found.start}"
            raise CorruptFile(wire.where, f"{said} in {1 + len(more)} fields")
        return Straight(wire.file, found.start)
    wanted, fixed = _FIELDS.get(number, _INTEGERS)
    if fields and wanted not in fields:
        raise CorruptFile(wire.where, f"{about}: its values are in the field of another type")
    given, stored = _typed(wire, kind, fields.get(wanted, []), fixed, about)
    if given > size or given % kind.width:
        reason = f"{about} takes {size} bytes, its values have {given}"
        raise CorruptFile(wire.where, reason)
    if given == size:
        return stored
    _check_repeated(wire, size, given, about)
    last = bytearray(kind.width)
    if given:
        stored.read_into(given - kind.width, memoryview(last))
    return Repeated(stored, given, bytes(last))


def _typed(
    wire: Wire, kind: Type, fields: list[Field], fixed: int, about: str
) -> tuple[int, Encoding]:
    """Return the values of a typed field and how many bytes they make."""
    if len(fields) == 1 and fields[0].wire == BYTES:
        place = range(fields[0].start, fields[0].stop)
        if fixed:
            return len(place), Straight(wire.file, place.start)
        count = count_varints(wire.file, place)
        varints = Varints(wire.file, place, count, kind.width, about)
        varints.check()
        return count * kind.width, varints
    data = wire.scattered(fields, fixed or kind.width, fixed=bool(fixed))
    return len(data), Inline(data)


def _check_repeated(wire: Wire, size: int, given: int, about: str) -> None:
    """Raise where a few bytes stand for more than the limit allows."""
    most, ratio = wire.file.limit("compressed_bytes"), wire.file.limit("compressed_ratio")
    if size > most and size > ratio * max(given, 1):
        reason = f"{about}: {given} bytes stand for {size}, the limit is {most}"
        raise LimitExceeded(wire.where, reason, hint="raise it with --limit compressed_bytes=N")
