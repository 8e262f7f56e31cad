"""A SavedModel of TensorFlow: a folder with the graph, and the variables as a checkpoint.

    saved_model.pb       1 saved_model_schema_version   2 meta_graphs, each:
                         1 meta_info_def (4 tags, 5 version)  2 graph_def  5 signature_def
    variables/           variables.index and variables.data-*: a checkpoint
    assets/              not read

The variables are the tensors; the graph's constants only where there are no variables, because
a graph is full of small constants whose names change from one export to the next.
"""

from __future__ import annotations

from difflens.core.addresses import Location
from difflens.core.errors import INCOMPLETE, CorruptFile
from difflens.core.escape import visible
from difflens.core.protocols import ModelFile
from difflens.storage.places import is_file

from ..containers.encodings import EncodedSource
from ..containers.protobuf import BYTES, VARINT, Field, Wire, varint
from ..folders.listing import neighbour
from ..tensorflow.graph import Graph, graph_at
from ..tensorflow.tensors import described, shape_of
from . import source
from .tensorflow import Checkpoint

_VARIABLES = "variables/variables.index"
_VARIABLES_IN_GRAPH = {"VarHandleOp", "VariableV2", "Variable"}
_LARGE = 1 << 20  # bytes of constants beside variables that are worth a warning


def recognise(head: bytes, path: Location) -> bool:
    """Do these bytes begin as a SavedModel does: schema 1, a graph with its operations or tags?"""
    del path
    if head[:3] != b"\x08\x01\x12":
        return False
    length, at = varint(head, 3)
    if at < 0 or head[at : at + 1] not in (b"\x0a", b"\x12"):
        return False
    if head[at] == 0x12:  # no information, the graph comes at once
        size, inner = varint(head, at + 1)
        return inner > 0 and inner + size <= at + length and head[inner : inner + 1] == b"\x0a"
    size, inner = varint(head, at + 1)
    if inner < 0 or inner + size > at + length:
        return False
    return head[inner : inner + 1] in (b"\x12", b"\x22", b"\x2a") or not size


@source(recognise=recognise, suffixes=(".pb",))
def saved_model(file: ModelFile) -> SavedModel:
    """TensorFlow SavedModel: saved_model.pb with its folder of variables."""
    return SavedModel(file)


class SavedModel(EncodedSource):
    """An open SavedModel."""

    def __init__(self, file: ModelFile) -> None:
        """Walk the graph for its summary, and open the variables."""
        super().__init__(file, "saved-model")
        self._where = visible(str(file.path))
        self._facts: dict[str, str] = {}
        self._graph = Graph()
        self._variables = self._open_variables()
        try:
            self._read()
        except BaseException:
            self.close()
            raise
        self.metadata = self._facts
        tensors = self._variables or self._graph
        self.tensors, self.encodings = tensors.tensors, tensors.encodings
        self._warn()

    def verify(self) -> None:
        """Raise unless every variable has the checksum that is stored for it."""
        if self._variables:
            self._variables.verify()

    def _open_variables(self) -> Checkpoint | None:
        if not is_file(self.file.path.parent / _VARIABLES):
            return None
        index = neighbour(self.file, _VARIABLES)
        try:
            variables = Checkpoint(index)
        except BaseException:
            index.close()
            raise
        self.opened.append(variables)
        return variables

    def _read(self) -> None:
        wire, graphs, version = Wire(self.file), 0, 0
        for each in wire.fields(0, self.file.size):
            if each.number == 1:
                wire.want(each, VARINT)
                version = each.value
            elif each.number == 2:
                wire.want(each, BYTES)
                self._meta_graph(wire, each, "" if not graphs else f"{graphs + 1}.")
                graphs += 1
        if version != 1:
            reason = f"its schema version is {version}, 1 is known"
            raise CorruptFile(self._where, reason)
        if not self._variables and _VARIABLES_IN_GRAPH & self._graph.operators.keys():
            reason = f"the graph has variables, and {_VARIABLES} is not there"
            hint = "the folder `variables` belongs beside it"
            raise CorruptFile(self._where, reason, hint=hint)
        if not graphs:
            raise CorruptFile(self._where, "it has no graph", hint=INCOMPLETE)

    def _meta_graph(self, wire: Wire, meta: Field, prefix: str) -> None:
        """Read one of the graphs; a SavedModel nearly always has one."""
        facts: dict[str, str] = {}
        signatures: list[str] = []
        for each in wire.fields(meta.start, meta.stop):
            if each.number == 1:
                facts |= _info(wire, each)
            elif each.number == 2:
                wire.want(each, BYTES)
                graph = graph_at(wire, each.start, each.stop)
                self._graph = graph if not prefix else self._graph
                operators = graph.summary().get("graph.operators")
                facts |= {"operators": operators} if operators else {}
            elif each.number == 5:
                signatures.append(_signature(wire, each))
        if signatures:
            facts["signatures"] = ", ".join(sorted(signatures))
        self._facts |= {f"saved_model.{prefix}{key}": value for key, value in facts.items()}

    def _warn(self) -> None:
        if not self._variables:
            self.warnings += self._graph.warnings
            return
        self.warnings += self._variables.warnings
        size = sum(info.size_bytes for info in self._graph.tensors.values())
        if size >= _LARGE:
            count = len(self._graph.tensors)
            said = f"the graph holds {count} constants of {size} bytes beside the variables"
            self.warnings.append(f"{said}, they were not read")


def _info(wire: Wire, info: Field) -> dict[str, str]:
    wire.want(info, BYTES)
    tags, facts = [], {}
    for each in wire.fields(info.start, info.stop):
        if each.number == 4:
            tags.append(wire.brief(each, 1000))
        elif each.number == 5:
            facts["tensorflow_version"] = wire.brief(each, 1000)
    return facts | ({"tags": ", ".join(tags)} if tags else {})


def _signature(wire: Wire, found: Field) -> str:
    """Describe a signature as `name(inputs) -> outputs`."""
    wire.want(found, BYTES)
    name, sides = "", {1: [], 2: []}  # type: ignore[var-annotated]
    for each in wire.fields(found.start, found.stop):
        if each.number == 1:
            name = wire.text(each)
        elif each.number == 2:
            wire.want(each, BYTES)
            for part in wire.fields(each.start, each.stop):
                if part.number in sides:
                    sides[part.number].append(_tensor(wire, part))
    inputs, outputs = (", ".join(sorted(sides[side])) for side in (1, 2))
    return f"{name}({inputs}) -> ({outputs})"


def _tensor(wire: Wire, found: Field) -> str:
    wire.want(found, BYTES)
    name, number, shape = "", 0, None
    for each in wire.fields(found.start, found.stop):
        if each.number == 1:
            name = wire.text(each)
        elif each.number == 2:
            wire.want(each, BYTES)
            for part in wire.fields(each.start, each.stop):
                if part.number == 2 and part.wire == VARINT:
                    number = part.value
                elif part.number == 3:
                    shape = shape_of(wire, part)
    return f"{name} {described(number, shape)}"
