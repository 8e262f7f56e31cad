"""The graph of an ONNX file, walked once: every tensor it holds, and a summary of the rest.

    ModelProto      1 ir_version  2 producer_name  3 producer_version  4 domain  5 model_version
                    7 graph  8 opset_import  14 metadata_props  20 training_info  25 functions
    GraphProto      1 node  2 name  5 initializer  11 input  12 output  15 sparse_initializer
    NodeProto       1 input  2 output  3 name  4 op_type  5 attribute  7 domain
    AttributeProto  1 name  2 f  3 i  5 t  6 g  7 floats  8 ints  10 tensors  11 graphs

No recursion: graphs inside nodes wait in a list, and their depth is counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from difflens.core.errors import INCOMPLETE, CorruptFile
from difflens.core.escape import for_terminal

from ..containers.protobuf import BYTES, FIXED32, VARINT, Field, Wire
from .tensor import Proto, entry, parse, value_info

_FACTS = {
    1: ("ir_version", VARINT),
    2: ("producer", BYTES),
    3: ("producer_version", BYTES),
    4: ("domain", BYTES),
    5: ("model_version", VARINT),
}
_NUMERIC = {"value_float": 2, "value_int": 3, "value_floats": 7, "value_ints": 8}
_MOST_NUMBERS = 1 << 16  # of a list in an attribute: each takes a field of its own
_LONG_NAMES = 1 << 26  # characters the prefixes of sub-graphs may add in all


class Scope(NamedTuple):
    """A graph still to be walked: where it is, how its names begin, how deep it lies."""

    start: int
    stop: int
    prefix: str
    depth: int
    is_function: bool = False


class NumberConstant(NamedTuple):
    """A constant that is a number or a list of numbers, without a TensorProto."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass
class GraphContents:
    """The tensors of a graph, and a summary of the rest."""

    tensors: dict[str, Proto | NumberConstant] = field(default_factory=dict)
    sparse: list[str] = field(default_factory=list)
    operators: Counter[str] = field(default_factory=Counter)
    facts: dict[str, str] = field(default_factory=dict)
    opsets: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)


class Node:
    """The fields of a NodeProto that matter here."""

    __slots__ = ("attributes", "name", "operator", "outputs")

    def __init__(self, wire: Wire, node: Field) -> None:
        """Read them; attributes are looked into later."""
        self.name = ""
        self.operator = ""
        self.outputs: list[str] = []
        self.attributes: list[Field] = []
        domain = ""
        for each in wire.fields(node.start, node.stop):
            if each.number == 2 and not self.outputs:
                self.outputs.append(wire.text(each))
            elif each.number == 3:
                self.name = wire.text(each)
            elif each.number == 4:
                self.operator = wire.text(each)
            elif each.number == 5:
                wire.want(each, BYTES)
                self.attributes.append(each)
            elif each.number == 7:
                domain = wire.text(each)
        if domain not in ("", "ai.onnx"):
            self.operator = f"{domain}.{self.operator}"

    def title(self, number: int) -> str:
        """Name the node: its own name, or that of what it makes."""
        return self.name or (self.outputs[0] if self.outputs else "") or f"node{number}"


class Attribute:
    """The fields of an AttributeProto that matter here."""

    __slots__ = ("graphs", "name", "numbers", "tensors")

    def __init__(self, wire: Wire, attribute: Field) -> None:
        """Read them."""
        self.name = ""
        self.graphs: list[Field] = []
        self.tensors: list[Field] = []
        self.numbers: dict[int, list[Field]] = {}
        for each in wire.fields(attribute.start, attribute.stop):
            number = each.number
            if number == 1:
                self.name = wire.text(each)
            elif number in (5, 10):
                wire.want(each, BYTES)
                self.tensors.append(each)
            elif number in (6, 11):
                wire.want(each, BYTES)
                self.graphs.append(each)
            elif number in (2, 3, 7, 8):
                kept = self.numbers.setdefault(number, [])
                if len(kept) >= _MOST_NUMBERS:
                    raise wire.too_scattered(each)
                kept.append(each)

    def constant_value(self, wire: Wire) -> NumberConstant:
        """Return the value of a Constant that is a number or a list of numbers."""
        number = _NUMERIC[self.name]
        values = []
        for each in self.numbers.get(number, []):
            if number in (3, 8):
                values += [value.to_bytes(8, "little") for value in wire.numbers(each, 1 << 16)]
            elif each.wire == BYTES and number == 7:
                data = wire.piece(each.start, min(each.stop, each.start + 4 * _MOST_NUMBERS))
                values += [data[at : at + 4] for at in range(0, len(data) & ~3, 4)]
            else:
                wire.want(each, FIXED32)
                values.append(each.value.to_bytes(4, "little"))
        if len(values) > _MOST_NUMBERS:
            raise wire.too_scattered(self.numbers[number][-1])
        if number in (2, 3):
            values = values[-1:] or [bytes(4 if number == 2 else 8)]
        shape = (len(values),) if number > 3 else ()
        return NumberConstant("F32" if number in (2, 7) else "I64", shape, b"".join(values))


class Walk:
    """One pass over the model."""

    def __init__(self, wire: Wire) -> None:
        """Walk from the first byte to the last."""
        self.contents = GraphContents()
        self._wire = wire
        self._spent = 0
        waiting = self._model()
        while waiting:
            scope = waiting.pop()
            if scope.depth > wire.file.limit("protobuf_depth"):
                raise wire.too_deep()
            waiting += reversed(self._scope(scope))

    def _model(self) -> list[Scope]:
        """Read the outermost message, and list the graphs it holds: the main one comes last."""
        wire, found = self._wire, self.contents
        main: list[Scope] = []
        others: list[Scope] = []
        trainings = 0
        for each in wire.fields(0, wire.file.size):
            if each.number in _FACTS:
                self._fact(each)
            elif each.number == 7:
                wire.want(each, BYTES)
                if main:
                    raise wire.corrupt(each.start, "there is a second graph")
                main.append(Scope(each.start, each.stop, "", 1))
            elif each.number == 8:
                found.opsets.append(self._opset(each))
            elif each.number == 14:
                found.properties.update([entry(wire, each)])
            elif each.number == 20:
                others += self._training(each, trainings)
                trainings += 1
            elif each.number == 25:
                wire.want(each, BYTES)
                others.append(Scope(each.start, each.stop, self._function(each), 1, True))
        self._check_complete(main)
        return [*reversed(others), *main]

    def _fact(self, each: Field) -> None:
        key, wire_type = _FACTS[each.number]
        self._wire.want(each, wire_type)
        text = str(each.value) if wire_type == VARINT else self._wire.brief(each, 1000)
        if text:
            self.contents.facts[key] = text

    def _check_complete(self, main: list[Scope]) -> None:
        """A model cut between two of its fields is still a message; it is no model."""
        missing = "" if main else "graph"
        if not self.contents.opsets and int(self.contents.facts.get("ir_version", "0")) >= 3:
            missing = missing or "operator set"  # every model names one since ir_version 3
        if missing:
            reason = f"it has no {missing}"
            raise CorruptFile(self._wire.where, reason, hint=INCOMPLETE)

    def _scope(self, scope: Scope) -> list[Scope]:
        """Walk one graph or function, and list the graphs inside its nodes."""
        wire, inner, node_field = self._wire, [], 7 if scope.is_function else 1
        names: set[str] = set()
        nodes = 0
        outermost = scope.depth == 1 and not scope.prefix
        for each in wire.fields(scope.start, scope.stop):
            if each.number == node_field:
                wire.want(each, BYTES)
                inner += self._node(each, scope, nodes, names)
                nodes += 1
            elif scope.is_function:
                continue
            elif each.number == 5:
                wire.want(each, BYTES)
                proto = parse(wire, each.start, each.stop)
                self._add(proto.name, proto, scope, names)
            elif each.number == 15:
                wire.want(each, BYTES)
                self.contents.sparse.append(scope.prefix + self._sparse_name(each))
            elif outermost and each.number == 2:
                self.contents.facts["graph"] = wire.brief(each, 1000)
            elif outermost and each.number in (11, 12):
                kept = self.contents.inputs if each.number == 11 else self.contents.outputs
                kept.append(value_info(wire, each))
        return inner

    def _node(self, node: Field, scope: Scope, number: int, names: set[str]) -> list[Scope]:
        """Count a node, keep the tensors in its attributes, and list the graphs in them."""
        wire, inner = self._wire, []
        read = Node(wire, node)
        self.contents.operators[read.operator] += 1
        for each in read.attributes:
            attribute = Attribute(wire, each)
            is_value = read.operator == "Constant" and attribute.name.startswith("value")
            title = read.title(number)
            own = (read.outputs or [title])[0] if is_value else f"{title}.{attribute.name}"
            for place, tensor in enumerate(attribute.tensors):
                proto = parse(wire, tensor.start, tensor.stop)
                proto.name = own if not place else f"{own}[{place}]"
                self._add(proto.name, proto, scope, names)
            if is_value and attribute.name in _NUMERIC:
                self._add(own, attribute.constant_value(wire), scope, names)
            for place, graph in enumerate(attribute.graphs):
                which = attribute.name if len(attribute.graphs) == 1 else f"{attribute.name}{place}"
                prefix = f"{scope.prefix}{title}/{which}/"
                self._spent += len(prefix)
                if self._spent > _LONG_NAMES:
                    raise wire.too_deep()
                # A graph in an attribute in a node: three messages down.
                inner.append(Scope(graph.start, graph.stop, prefix, scope.depth + 3))
        return inner

    def _add(
        self, name: str, tensor: Proto | NumberConstant, scope: Scope, names: set[str]
    ) -> None:
        """Keep a tensor under its path; the same name twice in one graph is refused."""
        if not name:
            raise CorruptFile(self._wire.where, "an initializer has no name")
        if name in names:
            said = f"tensor '{for_terminal(scope.prefix + name)}'"
            raise CorruptFile(self._wire.where, f"{said} is given twice in one graph")
        names.add(name)
        full, again = scope.prefix + name, 1
        while full in self.contents.tensors:  # nodes that share a name, or a name like a path
            again += 1
            full = f"{scope.prefix}{name}~{again}"
        if isinstance(tensor, Proto):
            tensor.name = full
        self.contents.tensors[full] = tensor

    def _opset(self, each: Field) -> str:
        wire, domain, version = self._wire, "ai.onnx", 0
        wire.want(each, BYTES)
        for part in wire.fields(each.start, each.stop):
            if part.number == 1:
                domain = wire.text(part) or domain
            elif part.number == 2:
                version = part.value
        return f"{domain} {version}"

    def _training(self, each: Field, number: int) -> list[Scope]:
        wire = self._wire
        wire.want(each, BYTES)
        names = {1: "initialization", 2: "algorithm"}
        return [
            Scope(part.start, part.stop, f"training_info{number}/{names[part.number]}/", 2)
            for part in wire.fields(each.start, each.stop)
            if part.number in names and part.wire == BYTES
        ]

    def _function(self, each: Field) -> str:
        wire = self._wire
        texts = {1: "", 10: "", 13: ""}
        for part in wire.fields(each.start, each.stop):
            if part.number in texts:
                texts[part.number] = wire.text(part)
        return "/".join(["functions", *filter(None, (texts[10], texts[1], texts[13])), ""])

    def _sparse_name(self, each: Field) -> str:
        wire = self._wire
        for part in wire.fields(each.start, each.stop):
            if part.number == 1 and part.wire == BYTES:
                return parse(wire, part.start, part.stop).name
        return ""
