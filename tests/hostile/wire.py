"""Protobuf messages and sorted tables, written by hand, as right or as wrong as a test wants."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from difflens.core.crc32c import crc32c, masked

# Our dtypes as TensorFlow numbers them.
TENSORFLOW = {
    "F32": 1, "F64": 2, "I32": 3, "U8": 4, "I16": 5, "I8": 6, "C64": 8, "I64": 9, "BOOL": 10,
    "BF16": 14, "U16": 17, "F16": 19, "U32": 22, "U64": 23, "F8_E5M2": 24, "F8_E4M3": 25,
    "F8_E4M3FNUZ": 26, "F8_E5M2FNUZ": 28,
}  # fmt: skip


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def fixed32(field: int, value: int) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<I", value)


def text(field: int, data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def shape(sizes: tuple[int, ...]) -> bytes:
    return b"".join(text(2, number(1, size)) for size in sizes)


def node(name: str, operation: str, *attributes: tuple[str, bytes]) -> bytes:
    pairs = (text(5, text(1, key) + text(2, value)) for key, value in attributes)
    return text(1, text(1, name) + text(2, operation) + b"".join(pairs))


def constant(name: str, dtype: int, sizes: tuple[int, ...], values: bytes) -> bytes:
    tensor = number(1, dtype) + text(2, shape(sizes)) + values
    return node(name, "Const", ("dtype", number(6, dtype)), ("value", text(8, tensor)))


def block(entries: Mapping[bytes, bytes], kind: int = 0, packed: bytes | None = None) -> bytes:
    """Write the contents of a block, each key whole, with its trailer."""
    data = b"".join(
        varint(0) + varint(len(key)) + varint(len(value)) + key + value
        for key, value in entries.items()
    )
    data += struct.pack("<II", 0, 1)
    return sealed(data if packed is None else packed, kind)


def sealed(data: bytes, kind: int = 0) -> bytes:
    data += bytes([kind])
    return data + struct.pack("<I", masked(crc32c(data)))


def table(*blocks: bytes) -> bytes:
    """Put blocks, an index of them and a footer together."""
    data, handles = b"", {}
    for each in blocks:
        handles[b"%08d" % len(data)] = varint(len(data)) + varint(len(each) - 5)
        data += each
    meta, data = len(data), data + block({})
    index = block(handles)
    footer = varint(meta) + varint(len(block({})) - 5) + varint(len(data)) + varint(len(index) - 5)
    return data + index + footer.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db")


def header(shards: int = 1, endianness: int = 0) -> bytes:
    end = number(2, endianness) if endianness else b""
    return number(1, shards) + end + text(3, number(1, 1))


def entry(dtype: int, sizes: tuple[int, ...], offset: int, data: bytes, **more: int) -> bytes:
    fields = number(1, dtype) + text(2, shape(sizes)) + number(3, more.get("shard", 0))
    fields += number(4, offset) + number(5, more.get("size", len(data)))
    return fields + fixed32(6, more.get("checksum", masked(crc32c(data))))


def checkpoint(tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]]) -> tuple[bytes, bytes]:
    """Return the index and the one shard of a checkpoint."""
    entries, data = {b"": header()}, b""
    for name, (dtype, sizes, values) in sorted(tensors.items()):
        entries[name.encode()] = entry(TENSORFLOW[dtype], sizes, len(data), values)
        data += values
    return table(block(entries)), data


def saved_model(graph: bytes = b"", tags: tuple[str, ...] = ("serve",)) -> bytes:
    info = b"".join(text(4, tag) for tag in tags) + text(5, "2.21.0")
    return number(1, 1) + text(2, text(1, info) + text(2, graph))
