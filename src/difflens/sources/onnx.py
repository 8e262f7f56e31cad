"""ONNX: a protobuf message, read where it lies.

    1 ir_version, varint       2 producer_name ... 6 doc_string       8 opset_import
    7 graph, length, bytes     initializers, nodes (with graphs inside), inputs, outputs
    beside it                  files of raw bytes that tensors may name: external data

There is no magic: a file is recognised by first fields that a model has and nothing else does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import CorruptFile
from ..escape import for_terminal
from ..protocols import ModelFile
from ..records import TensorInfo
from . import source
from .containers.encodings import Encoding, Inline, Straight, part_of, place_of
from .containers.protobuf import BYTES, VARINT, Wire, varint
from .files import File
from .folders import listed
from .neighbours import neighbour
from .onnx_graph import Found, Plain, Walk
from .onnx_summary import entry
from .onnx_tensor import KINDS, STRING, Proto, count_of, values_of
from .strict_json import LARGEST

_MODEL = {1: VARINT, 5: VARINT} | dict.fromkeys((2, 3, 4, 6, 7, 8, 14, 20, 25, 26), BYTES)
_SHORT_TEXTS = (2, 3, 4)
_GRAPH_STARTS = bytes(number << 3 | BYTES for number in (1, 2, 5, 10, 11, 12, 13, 14, 15))
_LATEST_IR_VERSION = 255  # it is 13 in 2026
_KEYS = {"location", "offset", "length", "checksum"}


def recognise(head: bytes, path: Path) -> bool:
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


class Onnx:
    """An open ONNX file, and the files of external data it names."""

    format = "onnx"

    def __init__(self, file: ModelFile) -> None:
        """Walk the graph; touch no tensor."""
        self.warnings: list[str] = []
        self.aliases: dict[str, str] = {}
        self.tensors: dict[str, TensorInfo] = {}
        self._file = file
        self._wire = Wire(file)
        self._files: dict[str, File] = {}
        self._values: dict[str, Encoding] = {}
        try:
            found = Walk(self._wire).found
            self._take(found)
        except BaseException:
            self._close_others()
            raise
        self.metadata: Mapping[str, str] = _metadata(found)

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and say how many."""
        part = part_of(self.tensors, name, start, stop, buffer)
        return self._values[name].read_into(start, part)

    def place(self, name: str) -> tuple[ModelFile, int] | None:
        """Say in which file the tensor lies, and at which byte, where its bytes are plain."""
        return place_of(self._values[name])

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if a file is not the one that was opened."""
        self._file.confirm()
        for file in self._files.values():
            file.confirm()

    def close(self) -> None:
        """Give the descriptors back."""
        self._file.close()
        self._close_others()

    def _close_others(self) -> None:
        for file in self._files.values():
            file.close()

    def _take(self, found: Found) -> None:
        """Make a tensor of every one that can be read; the others are named once."""
        texts, foreign, segments = [], [], []
        homes: dict[tuple[str, int, str, tuple[int, ...]], str] = {}
        for name, proto in found.tensors.items():
            if isinstance(proto, Plain):
                self._keep(name, proto.dtype, proto.shape, None, Inline(proto.data))
            elif proto.data_type == STRING:
                texts.append(name)
            elif proto.data_type not in KINDS:
                foreign.append(f"{name} (type {proto.data_type})")
            elif proto.segmented:
                segments.append(name)
            else:
                self._tensor(name, proto, homes)
        for what, names in (
            ("strings", texts), ("a type this reader does not know", foreign),
            ("segments of tensors", segments), ("sparse tensors", found.sparse),
        ):  # fmt: skip
            if names:
                self.warnings.append(f"not read, because they hold {what}: {listed(names)}")

    def _tensor(
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
        self._keep(name, values.dtype, values.shape, values.stored, values.encoding)
        if outside is not None and self.tensors[name].size_bytes:
            place = str(outside.file.path), outside.offset, values.dtype, values.shape
            first = homes.setdefault(place, name)
            if first != name:
                self.aliases[name] = first

    def _keep(
        self, name: str, dtype: str, shape: tuple[int, ...], stored: str | None, value: Encoding
    ) -> None:
        self.tensors[name] = TensorInfo(name, dtype, shape, stored)
        self._values[name] = value

    def _outside(self, proto: Proto) -> Straight:
        """Find a tensor's bytes in the file it names, and hold that file to its size."""
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
            self._files[location] = neighbour(self._file, location)
        file, begin = self._files[location], offset or 0
        if begin + takes > file.size:
            reason = f"{said} ends at byte {begin + takes} of '{for_terminal(location)}'"
            hint = "the download may be incomplete"
            raise CorruptFile(where, f"{reason}, which has {file.size}", hint=hint)
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


def _metadata(found: Found) -> dict[str, str]:
    """Sum up what is not a tensor; the file's own properties keep their names."""
    facts = dict(found.facts)
    version = facts.pop("producer_version", "")
    if version:
        facts["producer"] = f"{facts.get('producer', '')} {version}".strip()
    held = found.tensors.keys()
    inputs = [each for each in found.inputs if each.partition(" ")[0] not in held]
    operators = sorted(found.operators.items())
    facts["opset"] = ", ".join(found.opsets)
    facts["inputs"] = ", ".join(inputs)
    facts["outputs"] = ", ".join(found.outputs)
    facts["operators"] = ", ".join(f"{name} {count}" for name, count in operators)
    summary = {f"onnx.{key}": value for key, value in facts.items() if value}
    return {**found.properties, **summary}
