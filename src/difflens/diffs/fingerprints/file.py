"""The fingerprint as a file: a safetensors file with an index, the sketches and a checksum.

    index     U8   JSON: the model, and per tensor its header, root, statistics and exponent
    sketches  I32  the numbers of all sketches, one tensor after another
    checksum  U8   CRC-32 of all bytes of the file before it, little-endian

docs/fingerprints.md describes it field by field. A file that contradicts itself is refused.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from os import PathLike, fspath
from typing import Any, Protocol

import msgspec

from difflens.core.addresses import locate
from difflens.core.dtypes import BITS
from difflens.core.errors import CorruptFile, DifflensError, LimitExceeded, OutputError
from difflens.core.escape import for_terminal, visible
from difflens.core.limits import LARGEST, check
from difflens.core.records import Stats, TensorInfo
from difflens.core.whole_file import whole_file
from difflens.measure.sketch.estimate import Sketch, parts, sketched
from difflens.models.formats.safetensors import parse_header
from difflens.storage.places import open_file

from .recognise import HEAD, HEAD_BYTES
from .records import Fingerprint, TensorFingerprint, model_info

FORMAT, VERSION = "difflens fingerprint", "1"
INDEX, SKETCHES, CHECKSUM = "index", "sketches", "checksum"
_LONGEST_HEADER = 10_000  # bytes; it names three tensors
_EXPONENTS = 1100  # the largest size of an exponent that F64 sums can have


class _Entry(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One tensor in the index."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    root: str
    stored: str | None = None
    stats: Stats | None = None
    exponent: int | None = None  # of the sketch; None: it has none


class _Index(msgspec.Struct, forbid_unknown_fields=True):
    """The index: the model, and all of its tensors."""

    path: str
    format: str
    identity: str
    metadata: dict[str, str]
    state: tuple[int, int]
    tensors: list[_Entry]


def to_bytes(fingerprint: Fingerprint) -> bytes:
    """Return the file of a fingerprint."""
    model = fingerprint.model
    every = fingerprint.tensors.values()
    index = _Index(
        model.path,
        model.format,
        fingerprint.identity,
        dict(fingerprint.metadata),
        (model.state_tensors, model.state_bytes),
        [_entry(each) for each in every],
    )
    try:
        data = msgspec.json.encode(index)
    except UnicodeEncodeError as error:
        reason = "a name in it is not Unicode text: it has no fingerprint"
        raise DifflensError(reason, where=visible(model.path)) from error
    data += b" " * (-len(data) % 8)
    sketches = b"".join(each.sketch.numbers for each in every if each.sketch)
    body = _header(
        {INDEX: ("U8", len(data)), SKETCHES: ("I32", len(sketches)), CHECKSUM: ("U8", 4)}
    )
    body += data + sketches
    return body + struct.pack("<I", zlib.crc32(body))


def _entry(each: TensorFingerprint) -> _Entry:
    info = each.info
    exponent = each.sketch.exponent if each.sketch else None
    return _Entry(info.name, info.dtype, info.shape, each.root, info.stored, each.stats, exponent)


def _header(sizes: Mapping[str, tuple[str, int]]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": FORMAT, "version": VERSION}}
    end = 0
    for name, (dtype, size) in sizes.items():
        shape = [size * 8 // BITS[dtype]]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    data = json.dumps(header, separators=(",", ":")).encode()
    data += b" " * (-len(data) % 8)
    return struct.pack("<Q", len(data)) + data


def write_fingerprint(fingerprint: Fingerprint, path: str | PathLike[str]) -> int:
    """Write a fingerprint, completely or not at all; return how many bytes that were."""
    data = to_bytes(fingerprint)
    try:
        with whole_file(fspath(path)) as file:
            file.write(data)
    except ValueError as error:
        raise OutputError("it is no name of a file", where=visible(fspath(path))) from error
    return len(data)


class _Readable(Protocol):
    """Bytes to be read by position: a file, or memory."""

    @property
    def size(self) -> int:
        """How many there are."""

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop)."""


class _Memory(bytes):
    """Bytes in memory, read like a file."""

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self)

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop)."""
        return self[start:stop]


def read_fingerprint(
    path: str | PathLike[str], limits: Mapping[str, int] | None = None
) -> Fingerprint:
    """Read and check a fingerprint."""
    bounds = check(limits)
    file = open_file(locate(fspath(path)), bounds)
    try:
        return _read(file, visible(fspath(path)), bounds)
    finally:
        file.close()


def parse_fingerprint(data: bytes, where: str) -> Fingerprint:
    """Read and check a fingerprint that is in memory."""
    return _read(_Memory(data), where, check(None))


def _read(file: _Readable, where: str, limits: Mapping[str, int]) -> Fingerprint:
    """Read the header, then the index, then the sketches that the index has room for."""
    head = file.read(0, min(file.size, HEAD_BYTES))
    start = 8 + int.from_bytes(head[:8], "little")
    if head[8:] != HEAD:
        hint = "difflens fingerprint makes one"
        raise CorruptFile(where, "it is not a fingerprint", hint=hint)
    if start > min(file.size, _LONGEST_HEADER):
        raise _damaged(where, "its header does not end")
    header = file.read(0, start)
    length = _index_length(header, file.size - start, where, limits)
    data = file.read(start, start + length)
    try:
        index = msgspec.json.decode(data, type=_Index)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _damaged(where, for_terminal(f"its index: {error}")) from error
    tensors = list(_checked(index, where, limits["rank"]))
    sizes = [4 * sketched(info) if each.exponent is not None else 0
             for each, info in zip(index.tensors, tensors, strict=True)]  # fmt: skip
    if start + length + sum(sizes) + 4 != file.size:
        raise _damaged(where, "its sketches do not fit its tensors")
    sketches = file.read(start + length, file.size - 4)
    checksum = zlib.crc32(sketches, zlib.crc32(data, zlib.crc32(header)))
    if file.read(file.size - 4, file.size) != struct.pack("<I", checksum):
        raise _damaged(where, "its checksum is another one")
    return _fingerprint(index, tensors, sizes, memoryview(sketches))


def _index_length(header: bytes, rest: int, where: str, limits: Mapping[str, int]) -> int:
    """Check what the file is made of, and return the bytes of its index."""
    depth, rank = limits["json_depth"], limits["rank"]
    described = parse_header(header[8:], where, depth=depth, rank=rank)
    version = described.metadata.get("version", "")
    if version != VERSION:
        shown = for_terminal(version, 40)
        raise CorruptFile(where, f"its version is '{shown}', this difflens reads {VERSION}")
    parts_found = [(info.name, info.dtype) for info in described.tensors.values()]
    if parts_found != [(INDEX, "U8"), (SKETCHES, "I32"), (CHECKSUM, "U8")]:
        raise _damaged(where, "it does not hold an index, sketches and a checksum")
    if described.end != rest:
        raise _damaged(where, f"{described.end} bytes follow its header, it has {rest}")
    length = described.tensors[INDEX].size_bytes
    if length > limits["json_header"]:
        reason = f"its index takes {length} bytes, the limit is {limits['json_header']}"
        raise LimitExceeded(where, reason, hint="raise it with --limit json_header=N")
    return length


def _checked(index: _Index, where: str, rank: int) -> Iterator[TensorInfo]:
    """Yield the headers of all tensors, once nothing about them is impossible."""
    if min(index.state) < 0 or max(index.state) > LARGEST:
        raise _damaged(where, "its counts of state cannot be")
    names = set()
    for each in index.tensors:
        info = TensorInfo(each.name, each.dtype, each.shape, each.stored)
        reason = _fault(each, info, rank)
        if each.name in names:
            reason = "it is named twice"
        if reason:
            raise _damaged(where, f"tensor '{for_terminal(each.name)}': {reason}")
        names.add(each.name)
        yield info


def _fingerprint(
    index: _Index, infos: list[TensorInfo], sizes: list[int], sketches: memoryview
) -> Fingerprint:
    tensors, at = {}, 0
    for each, info, size in zip(index.tensors, infos, sizes, strict=True):
        sketch = (
            Sketch(each.exponent, sketches[at : at + size]) if each.exponent is not None else None
        )
        tensors[each.name] = TensorFingerprint(info, each.root, each.stats, sketch)
        at += size
    headers = {info.name: info for info in infos}
    model = model_info(index.path, index.format, headers, index.state)
    return Fingerprint(model, tensors, metadata=index.metadata, identity=index.identity)


def _fault(each: _Entry, info: TensorInfo, rank: int) -> str:
    """Say what cannot be true of a tensor; nothing if all of it can."""
    if each.dtype not in BITS:
        return f"no dtype is called '{for_terminal(each.dtype, 40)}'"
    if len(each.shape) > rank or any(not 0 <= size <= LARGEST for size in each.shape):
        return "its shape cannot be"
    if info.count * BITS[each.dtype] > LARGEST:
        return "it is larger than any file"
    if len(each.root) != 64 or not set(each.root) <= set("0123456789abcdef"):
        return "its root is no hash"
    return _wrong_numbers(each, info)


def _wrong_numbers(each: _Entry, info: TensorInfo) -> str:
    has_numbers = sketched(info) > 0
    if (each.stats is not None) != has_numbers or (each.exponent is not None and not has_numbers):
        return "its statistics do not fit its dtype"
    if each.exponent is not None and abs(each.exponent) > _EXPONENTS:
        return "the exponent of its sketch cannot be"
    return _wrong_statistics(each.stats, parts(info) * info.count) if each.stats else ""


def _wrong_statistics(stats: Stats, count: int) -> str:
    counts = stats.zeros, stats.nan, stats.positive_infinite, stats.negative_infinite
    ordered = stats.min is None or stats.max is None or stats.min <= stats.max
    is_good = min(counts) >= 0 and sum(counts) <= count and ordered
    return "" if is_good and (stats.std or 0.0) >= 0 else "its statistics cannot be"


def _damaged(where: str, reason: str) -> CorruptFile:
    return CorruptFile(where, f"the fingerprint is damaged: {reason}")
