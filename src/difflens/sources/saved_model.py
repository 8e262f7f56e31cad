"""A SavedModel of TensorFlow: a folder with the graph, and the variables as a checkpoint.

    saved_model.pb       1 saved_model_schema_version   2 meta_graphs, each:
                         1 meta_info_def (4 tags, 5 version)  2 graph_def  5 signature_def
    variables/           variables.index and variables.data-*: a checkpoint
    assets/              not read

The variables are the tensors; the graph's constants only where there are no variables, because
a graph is full of small constants whose names change from one export to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import CorruptFile
from ..escape import visible
from ..protocols import ModelFile
from ..records import TensorInfo
from . import source
from .containers.encodings import part_of, place_of
from .containers.protobuf import BYTES, VARINT, Field, Wire, varint
from .files import File, is_file
from .neighbours import limits_of, neighbour
from .tensorflow import Checkpoint
from .tensorflow_graph import Graph, graph_at
from .tensorflow_types import described, shape_of

NAME = "saved_model.pb"
_VARIABLES = "variables/variables.index"
_VARIABLES_IN_GRAPH = {"VarHandleOp", "VariableV2", "Variable"}
_LARGE = 1 << 20  # bytes of constants beside variables that are worth a warning


def recognise(head: bytes, path: Path) -> bool:
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


def open_saved_model(folder: Path, limits: Mapping[str, int]) -> SavedModel:
    """Open the SavedModel a folder holds."""
    file = File(folder / NAME, limits)
    try:
        return SavedModel(file)
    except BaseException:
        file.close()
        raise


class SavedModel:
    """An open SavedModel."""

    format = "saved-model"

    def __init__(self, file: ModelFile) -> None:
        """Walk the graph for its summary, and open the variables."""
        self._file = file
        self.warnings: list[str] = []
        self._metadata: dict[str, str] = {}
        self.metadata: Mapping[str, str] = self._metadata
        self._variables = self._open_variables()
        self._graph = Graph()
        try:
            self._read()
        except BaseException:
            if self._variables:
                self._variables.close()
            raise
        held = self._variables.tensors if self._variables else self._graph.tensors
        self.tensors: Mapping[str, TensorInfo] = held
        self._warn()

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and say how many."""
        if self._variables:
            return self._variables.read_into(name, start, stop, buffer)
        part = part_of(self.tensors, name, start, stop, buffer)
        return self._graph.values[name].read_into(start, part)

    def place(self, name: str) -> tuple[ModelFile, int] | None:
        """Say in which file the tensor lies, and at which byte, where its bytes are plain."""
        return (
            self._variables.place(name) if self._variables else place_of(self._graph.values[name])
        )

    def verify(self) -> None:
        """Raise unless every variable has the checksum that is kept for it."""
        if self._variables:
            self._variables.verify()

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if a file is not the one that was opened."""
        self._file.confirm()
        if self._variables:
            self._variables.confirm()

    def close(self) -> None:
        """Give the descriptors back."""
        self._file.close()
        if self._variables:
            self._variables.close()

    def _open_variables(self) -> Checkpoint | None:
        path = self._file.path.parent / _VARIABLES
        if not is_file(path):
            return None
        neighbour(self._file, _VARIABLES).close()  # it lies in the folder, and nowhere else
        index = File(path, limits_of(self._file))
        try:
            return Checkpoint(index)
        except BaseException:
            index.close()
            raise

    def _read(self) -> None:
        wire, graphs, version = Wire(self._file), 0, 0
        for each in wire.fields(0, self._file.size):
            if each.number == 1:
                wire.want(each, VARINT)
                version = each.value
            elif each.number == 2:
                wire.want(each, BYTES)
                self._meta_graph(wire, each, "" if not graphs else f"{graphs + 1}.")
                graphs += 1
        if version != 1:
            reason = f"its schema version is {version}, 1 is known"
            raise CorruptFile(visible(str(self._file.path)), reason)
        if not self._variables and _VARIABLES_IN_GRAPH & self._graph.operators.keys():
            reason = f"the graph has variables, and {_VARIABLES} is not there"
            hint = "the folder `variables` belongs beside it"
            raise CorruptFile(visible(str(self._file.path)), reason, hint=hint)
        if not graphs:
            hint = "the download may be incomplete"
            raise CorruptFile(visible(str(self._file.path)), "it has no graph", hint=hint)

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
        self._metadata |= {f"saved_model.{prefix}{key}": value for key, value in facts.items()}

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
