"""A frozen TensorFlow graph: a GraphDef whose constants are the weights.

    1 node, length: NodeDef    1 name  2 op  3 input  5 attr      again and again
    2 library                  functions, with nodes of their own
    4 versions                 the last thing a writer writes

There is no magic: a file is recognised by a first node that has a name and an operation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..errors import CorruptFile
from ..escape import visible
from ..protocols import ModelFile
from ..records import TensorInfo
from . import source
from .containers.encodings import part_of, place_of
from .containers.protobuf import Wire, varint
from .tensorflow_graph import graph_at

_NAME = re.compile(rb"[A-Za-z0-9.^][A-Za-z0-9_.\\/>-]*")
_OPERATION = re.compile(rb"_?[A-Z][A-Za-z0-9_>]*")


def recognise(head: bytes, path: Path) -> bool:
    """Do these bytes begin with a node: its length, its name, its operation?"""
    del path
    if head[:1] != b"\x0a":
        return False
    length, at = varint(head, 1)
    if at < 0 or head[at : at + 1] != b"\x0a":
        return False
    stop = at + length
    size, at = varint(head, at + 1)
    name = head[at : at + size] if 0 < at <= stop else b""
    at += size
    if not _NAME.fullmatch(name) or head[at : at + 1] != b"\x12":
        return False
    size, at = varint(head, at + 1)
    return at > 0 and at + size <= stop and bool(_OPERATION.fullmatch(head[at : at + size]))


@source(recognise=recognise, suffixes=(".pb",))
def frozen_graph(file: ModelFile) -> FrozenGraph:
    """Frozen TensorFlow graphs (.pb): the constants of a GraphDef."""
    return FrozenGraph(file)


class FrozenGraph:
    """An open GraphDef."""

    format = "frozen-graph"

    def __init__(self, file: ModelFile) -> None:
        """Walk the nodes; touch no constant."""
        self._file = file
        graph = graph_at(Wire(file), 0, file.size)
        if not graph.nodes:
            raise CorruptFile(visible(str(file.path)), "the graph has no node")
        self.tensors: Mapping[str, TensorInfo] = graph.tensors
        self.metadata: Mapping[str, str] = graph.summary()
        self.warnings: list[str] = graph.warnings
        if not graph.has_versions:
            self.warnings.append("the graph names no version, its end may be missing")
        self._values = graph.values

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and say how many."""
        part = part_of(self.tensors, name, start, stop, buffer)
        return self._values[name].read_into(start, part)

    def place(self, name: str) -> tuple[ModelFile, int] | None:
        """Say in which file the tensor lies, and at which byte, where its bytes are plain."""
        return place_of(self._values[name])

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the file is not the one that was opened."""
        self._file.confirm()

    def close(self) -> None:
        """Give the descriptor back."""
        self._file.close()
