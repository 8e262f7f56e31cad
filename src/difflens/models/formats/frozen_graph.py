"""A frozen TensorFlow graph: a GraphDef whose constants are the weights.

    1 node, length: NodeDef    1 name  2 op  3 input  5 attr      again and again
    2 library                  functions, with nodes of their own
    4 versions                 the last thing a writer writes

There is no magic: a file is recognised by a first node that has a name and an operation.
"""

from __future__ import annotations

import re

from difflens.core.addresses import Location
from difflens.core.errors import CorruptFile
from difflens.core.escape import visible
from difflens.core.protocols import ModelFile

from ..containers.encodings import EncodedSource
from ..containers.protobuf import Wire, varint
from ..tensorflow.graph import graph_at
from . import source

_NAME = re.compile(rb"[A-Za-z0-9.^][A-Za-z0-9_.\\/>-]*")
_OPERATION = re.compile(rb"_?[A-Z][A-Za-z0-9_>]*")


def recognise(head: bytes, path: Location) -> bool:
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
def frozen_graph(file: ModelFile) -> EncodedSource:
    """Frozen TensorFlow graphs (.pb): the constants of a GraphDef."""
    graph = graph_at(Wire(file), 0, file.size)
    if not graph.nodes:
        raise CorruptFile(visible(str(file.path)), "the graph has no node")
    model = EncodedSource(file, "frozen-graph")
    model.tensors, model.encodings = graph.tensors, graph.encodings
    model.metadata = graph.summary()
    model.warnings = graph.warnings
    if not graph.has_versions:
        model.warnings.append("the graph names no version, its end may be missing")
    return model
