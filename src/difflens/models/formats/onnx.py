"""ONNX: a protobuf message, read where it lies.

    1 ir_version, varint       2 producer_name ... 6 doc_string       8 opset_import
    7 graph, length, bytes     initializers, nodes (with graphs inside), inputs, outputs
    beside it                  files of raw bytes that tensors may name: external data

There is no magic: a file is recognised by first fields that a model has and nothing else does.
"""

from __future__ import annotations

import re

from difflens.core.addresses import Location
from difflens.core.errors import INCOMPLETE, CorruptFile
from difflens.core.escape import for_terminal
from difflens.core.limits import LARGEST
from difflens.core.protocols import ModelFile
from difflens.core.records import GraphNode, TensorInfo

from ..containers.encodings import EncodedSource, Inline, Straight
from ..containers.protobuf import BYTES, VARINT, Field, Wire, signed, varint
from ..folders.listing import listed, neighbour
from ..onnx.graph import Attribute, GraphContents, Node, NumberConstant, Scope, Walk
from ..onnx.tensor import KINDS, STRING, Proto, count_of, entry, values_of
from . import source

_MODEL = {1: VARINT, 5: VARINT} | dict.fromkeys((2, 3, 4, 6, 7, 8, 14, 20, 25, 26), BYTES)
_SHORT_TEXTS = (2, 3, 4)
_GRAPH_STARTS = bytes(number << 3 | BYTES for number in (1, 2, 5, 10, 11, 12, 13, 14, 15))
_LATEST_IR_VERSION = 255  # it is 13 in 2026
MOST_NODES = 1 << 19
_MOST_VALUES = 1 << 22  # inputs and outputs of all nodes
_MOST_INTS = 16  # of one attribute: a perm has as many as a tensor has dimensions
_SCOPES = "pkg.torch.onnx.name_scopes"
_CLASSES = "pkg.torch.onnx.class_hierarchy"
_QUOTED = re.compile(r"'([^']*)'")
_KEYS = {"location", "offset", "length", "checksum"}


def recognise(head: bytes, path: Location) -> bool:
    """Do these bytes begin as a ModelProto does: a version, short texts, then a graph?"""
    del path
    at, seen = 0, set()
    while at < len(head):
        tag, at = varint(head, at)
        number, wire = tag >> 3, tag & 7
        if at < 0 or number not in _MODEL or _MODEL[number] != wire:
            return False
        value, at = varint(head, at)
        if at < 0 or (number == 1 and not 0 < value <= _LATEST_IR_VERSION):
            return False
        if number == 7:
            return 1 in seen and (at >= len(head) or (not value or head[at] in _GRAPH_STARTS))
        if number in _SHORT_TEXTS and not _is_short_text(head[at : at + value], value):
            return False
        if 1 not in seen and number != 1 and number not in _SHORT_TEXTS:
            return False
        seen.add(number)
        at += value if wire == BYTES else 0
    return 1 in seen and bool(seen & {6, 8})


def _is_short_text(text: bytes, length: int) -> bool:
    if len(text) != length or length > 1000:
        return False
    try:
        return text.decode("utf-8").isprintable()
    except UnicodeDecodeError:
        return False


@source(recognise=recognise, suffixes=(".onnx",))
def onnx(file: ModelFile) -> Onnx:
    """ONNX: initializers and constants of the graph and the graphs within it."""
    return Onnx(file)


class Onnx(EncodedSource):
    """An open ONNX file, and the files of external data it names."""

    def __init__(self, file: ModelFile) -> None:
        """Walk the graph; touch no tensor."""
        super().__init__(file, "onnx")
        self._wire = Wire(file)
        self._files: dict[str, ModelFile] = {}
        try:
            contents = Walk(self._wire).contents
            self._add_tensors(contents)
        except BaseException:
            self.close()
            raise
        self.metadata = _metadata(contents)

    def nodes(self) -> tuple[GraphNode, ...] | None:
        """Walk the graph again for its nodes; None if there are too many to follow."""
        return read_nodes(self._wire)

    def _add_tensors(self, contents: GraphContents) -> None:
        """Make a tensor of every one that can be read; the others are named once."""
        texts, foreign, segments = [], [], []
        homes: dict[tuple[str, int, str, tuple[int, ...]], str] = {}
        for name, proto in contents.tensors.items():
            if isinstance(proto, NumberConstant):
                self.add(TensorInfo(name, proto.dtype, proto.shape), Inline(proto.data))
            elif proto.data_type == STRING:
                texts.append(name)
            elif proto.data_type not in KINDS:
                foreign.append(f"{name} (type {proto.data_type})")
            elif proto.segmented:
                segments.append(name)
            else:
                self._add_tensor(name, proto, homes)
        for what, names in (
            ("strings", texts),
            ("a type this reader does not know", foreign),
            ("segments of tensors", segments),
            ("sparse tensors", contents.sparse),
        ):
            if names:
                self.warnings.append(f"not read, because they hold {what}: {listed(names)}")

    def _add_tensor(
        self, name: str, proto: Proto, homes: dict[tuple[str, int, str, tuple[int, ...]], str]
    ) -> None:
        wire = self._wire
        if proto.location not in (0, 1):
            raise CorruptFile(wire.where, f"{proto.about} has data_location {proto.location}")
        outside = self._outside(proto) if proto.location else None
        if proto.external and not proto.location:
            said = f"{proto.about} names external data and says that it has none"
            self.warnings.append(f"{said}: its own values were read")
        values = values_of(wire, proto, outside)
        info = TensorInfo(name, values.dtype, values.shape, values.stored)
        self.add(info, values.encoding)
        if outside is not None and info.size_bytes:
            place = str(outside.file.path), outside.offset, values.dtype, values.shape
            first = homes.setdefault(place, name)
            if first != name:
                self.aliases[name] = first

    def _outside(self, proto: Proto) -> Straight:
        """Find a tensor's bytes in the file it names, and check that they lie within that file."""
        where, said = self._wire.where, proto.about
        keys = self._keys(proto)
        location = keys.get("location")
        if location is None:
            raise CorruptFile(where, f"{said} has external data without a location")
        offset, length = (_number(keys.get(key), key, said, where) for key in ("offset", "length"))
        kind = KINDS[proto.data_type]
        takes = -(-count_of(self._wire, proto, kind) * kind.bits // 8)
        if length is not None and length != takes:
            reason = f"{said} takes {takes} bytes, its external data has the length {length}"
            raise CorruptFile(where, reason)
        if location not in self._files:
            self._files[location] = neighbour(self.file, location)
            self.opened.append(self._files[location])
        file, begin = self._files[location], offset or 0
        if begin + takes > file.size:
            reason = f"{said} ends at byte {begin + takes} of '{for_terminal(location)}'"
            raise CorruptFile(where, f"{reason}, which has {file.size}", hint=INCOMPLETE)
        return Straight(file, begin)

    def _keys(self, proto: Proto) -> dict[str, str]:
        keys: dict[str, str] = {}
        for each in proto.external:
            key, value = entry(self._wire, each)
            if key not in _KEYS:
                said = f"{proto.about}: its external data has the unknown key"
                self.warnings.append(f"{said} '{for_terminal(key)}', which was ignored")
            elif key in keys:
                reason = f"{proto.about}: its external data has the key '{key}' twice"
                raise CorruptFile(self._wire.where, reason)
            else:
                keys[key] = value
        return keys


def _number(text: str | None, key: str, said: str, where: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= LARGEST):
        shown = f"'{for_terminal(text, 40)}'"
        reason = f"{said}: the {key} of its external data is {shown}, a whole number is wanted"
        raise CorruptFile(where, reason)
    return int(text)


def _metadata(contents: GraphContents) -> dict[str, str]:
    """Sum up what is not a tensor; the file's own properties keep their names."""
    facts = dict(contents.facts)
    version = facts.pop("producer_version", "")
    if version:
        facts["producer"] = f"{facts.get('producer', '')} {version}".strip()
    tensors = contents.tensors.keys()
    inputs = [each for each in contents.inputs if each.partition(" ")[0] not in tensors]
    operators = sorted(contents.operators.items())
    facts["opset"] = ", ".join(contents.opsets)
    facts["inputs"] = ", ".join(inputs)
    facts["outputs"] = ", ".join(contents.outputs)
    facts["operators"] = ", ".join(f"{name} {count}" for name, count in operators)
    summary = {f"onnx.{key}": value for key, value in facts.items() if value}
    return {**contents.properties, **summary}


# The nodes of the graph, read when somebody wants to know which operation consumes a tensor.
#
#    NodeProto        1 input  2 output  3 name  4 op_type  5 attribute  7 domain  9 metadata_props
#
# This is a second walk over the graph; opening a file does not need it. Names are resolved to those
# of the tensors of the source, through the graphs that contain the node.

Raw = tuple[Scope, Node, list[str], list[str], dict[str, tuple[int, ...]], str, str]


def read_nodes(wire: Wire) -> tuple[GraphNode, ...] | None:
    """Read all nodes in the order of the file; None if there are too many to follow."""
    walk = _NodeWalk(wire)
    return None if walk.too_many else tuple(map(walk.resolved, walk.raw))


class _NodeWalk(Walk):
    """A walk that collects the nodes, and the names that each graph gives to its tensors."""

    def __init__(self, wire: Wire) -> None:
        self.raw: list[Raw] = []
        self.too_many = False
        self._values = 0
        self._parents: dict[int, int] = {}  # graphs by where they start
        self._names: dict[tuple[int, str], str] = {}
        super().__init__(wire)

    def _node(self, node: Field, scope: Scope, number: int, names: set[str]) -> list[Scope]:
        inner = super()._node(node, scope, number, names)
        self._parents.update((each.start, scope.start) for each in inner)
        if len(self.raw) >= MOST_NODES or self._values >= _MOST_VALUES:
            self.too_many = True
            return inner
        wire, read = self._wire, Node(self._wire, node)
        inputs, outputs, module, kind = [], [], "", ""
        for each in wire.fields(node.start, node.stop):
            if each.number == 1:
                inputs.append(wire.text(each))
            elif each.number == 2:
                outputs.append(wire.text(each))
            elif each.number == 9 and each.wire == BYTES:
                key, value = entry(wire, each)
                if key == _SCOPES:
                    module = _last_module(value)
                elif key == _CLASSES:
                    kind = _last_module(value)
        self._values += len(inputs) + len(outputs)
        for output in outputs:
            self._names.setdefault((scope.start, output), scope.prefix + output)
        self.raw.append((scope, read, inputs, outputs, self._integers(read), module, kind))
        return inner

    def _add(
        self, name: str, tensor: Proto | NumberConstant, scope: Scope, names: set[str]
    ) -> None:
        before = len(self.contents.tensors)
        super()._add(name, tensor, scope, names)
        if len(self.contents.tensors) > before:
            self._names[scope.start, name] = next(reversed(self.contents.tensors))

    def _integers(self, node: Node) -> dict[str, tuple[int, ...]]:
        found = {}
        for each in node.attributes:
            read = Attribute(self._wire, each)
            fields = read.numbers.get(3, []) + read.numbers.get(8, [])
            numbers = [n for part in fields[:_MOST_INTS] for n in self._wire.numbers(part, 16)]
            if numbers:
                found[read.name] = tuple(map(signed, numbers[:_MOST_INTS]))
        return found

    def resolved(self, raw: Raw) -> GraphNode:
        """Make a node whose inputs and outputs have the names that tensors have."""
        scope, node, inputs, outputs, integers, module, kind = raw
        return GraphNode(
            node.operator,
            node.name,
            tuple(self._full(name, scope) for name in inputs),
            tuple(self._full(name, scope) for name in outputs),
            integers,
            module,
            kind,
        )

    def _full(self, name: str, scope: Scope) -> str:
        where: int | None = scope.start
        while where is not None:
            full = self._names.get((where, name))
            if full is not None:
                return full
            where = self._parents.get(where)
        return name


def _last_module(text: str) -> str:
    """Read the last but one of a list as Python writes it: the last is the operation itself."""
    parts = _QUOTED.findall(text)
    return parts[-2] if len(parts) > 1 else ""
