"""TensorBoard's event files, both ways: records with checksums, and scalars in protocol buffers.

    record   length u64 | masked CRC-32C of it u32 | event | masked CRC-32C of the event u32
    event    1 wall_time f64, 2 step varint, 3 file_version, 5 summary
    summary  1 value: 1 tag, 2 simple_value f32, 8 tensor: 1 dtype, 2 shape, 4 content, 5.. values

The library of TensorBoard was not taken: it brings a server, and TensorFlow where that is there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from difflens.core.crc32c import crc32c, masked

LARGEST_RECORD = 1 << 26
VERSION = b"brain.Event:2"
_LENGTH, _CHECK, _DOUBLE, _FLOAT = (struct.Struct(each) for each in ("<Q", "<I", "<d", "<f"))
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8", 10: "?", 19: "<f2", 22: "<u4", 23: "<u8"}
_PACKED = {5: "<f4", 6: "<f8"}
_VARINTS = {7, 10, 11, 16, 17}


class Value(NamedTuple):
    """One scalar that was logged."""

    tag: str
    value: float


class Event(NamedTuple):
    """The scalars logged at one time for one step, and how many summaries are something else."""

    wall_time: float
    step: int
    values: list[Value]
    others: int = 0


class Damaged(Exception):
    """A record or a message breaks the rules of the format."""


def records(file: BinaryIO, size: int) -> Iterator[bytes | None]:
    """Yield the records; None for one whose bytes are damaged. Stops at a tail that is not whole.

    A damaged length raises: nothing tells where the next record begins.
    """
    at = 0
    while at + 12 <= size:
        head = file.read(12)
        if len(head) < 12:
            return
        if masked(crc32c(head[:8])) != _CHECK.unpack_from(head, 8)[0]:
            raise Damaged(f"the record at byte {at} has a damaged length")
        (length,) = _LENGTH.unpack_from(head)
        if at + 16 + length > size:
            return
        if length > LARGEST_RECORD:
            file.seek(length + 4, 1)
            yield None
        else:
            data = file.read(length)
            check = file.read(4)
            if len(check) < 4:
                return
            yield data if masked(crc32c(data)) == _CHECK.unpack(check)[0] else None
        at += 16 + length


def is_event_file(head: bytes) -> bool:
    """Do these first bytes begin with a record that is whole?"""
    if len(head) < 12 or masked(crc32c(head[:8])) != _CHECK.unpack_from(head, 8)[0]:
        return False
    return b"brain.Event:" in head[12:64]


def event_of(data: bytes) -> Event:
    """Read an event; raises `Damaged` where it is none."""
    wall_time, step, values, others = 0.0, 0, [], 0
    for number, wire, content in _fields(data):
        if number == 1 and wire == _FIXED64:
            wall_time = _DOUBLE.unpack(content)[0]
        elif number == 2 and wire == _VARINT:
            step = content - (1 << 64) if content >> 63 else content
        elif number == 5 and wire == _BYTES:
            for inner, kind, part in _fields(content):
                if inner == 1 and kind == _BYTES:
                    value = _value(part)
                    if value is None:
                        others += 1
                    else:
                        values.append(value)
    return Event(wall_time, step, values, others)


def _value(data: bytes) -> Value | None:
    tag, number = "", None
    for field, wire, value in _fields(data):
        if field == 1 and wire == _BYTES:
            tag = value.decode("utf-8", "replace")
        elif field == 2 and wire == _FIXED32:
            number = _FLOAT.unpack(value)[0]
        elif field == 8 and wire == _BYTES:
            number = _tensor(value)
    return None if number is None else Value(tag, number)


def _tensor(data: bytes) -> float | None:
    """Read a tensor that is one number; None if it is another."""
    dtype, content, number = 0, b"", None
    for field, wire, value in _fields(data):
        if field == 1 and wire == _VARINT:
            dtype = value
        elif field == 2 and wire == _BYTES and value:
            return None  # it has dimensions
        elif field == 4 and wire == _BYTES:
            content = value
        elif field in _PACKED:
            number = _packed(value, _PACKED[field])
        elif field in _VARINTS:
            number = _varint_value(value)
    if content and dtype in _DTYPES:
        number = _packed(content, _DTYPES[dtype])
    return number if dtype in _DTYPES else None


def _packed(data: Any, dtype: str) -> float | None:
    kind = np.dtype(dtype)
    if not isinstance(data, bytes) or len(data) != kind.itemsize:
        return None
    return float(np.frombuffer(data, kind)[0])


def _varint_value(value: Any) -> float | None:
    if isinstance(value, bytes):
        if not value:
            return None
        value, _end = _varint(value, 0)
    return float(value - (1 << 64) if value >> 63 else value)


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and value of each field of a message."""
    at, size = 0, len(data)
    while at < size:
        key, at = _varint(data, at)
        wire = key & 7
        value: Any
        if wire == _VARINT:
            value, at = _varint(data, at)
        else:
            if wire == _BYTES:
                length, at = _varint(data, at)
            elif wire in (_FIXED64, _FIXED32):
                length = 8 if wire == _FIXED64 else 4
            else:
                raise Damaged(f"a field of wire type {wire}")
            if at + length > size:
                raise Damaged("a field is longer than its message")
            value, at = data[at : at + length], at + length
        yield key >> 3, wire, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while shift < 64:
        if at >= len(data):
            raise Damaged("a number is cut off")
        byte = data[at]
        value, at, shift = value | (byte & 0x7F) << shift, at + 1, shift + 7
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise Damaged("a number has more than 64 bits")


def record(data: bytes) -> bytes:
    """Return an event as a record of the file."""
    length = _LENGTH.pack(len(data))
    checks = [_CHECK.pack(masked(crc32c(part))) for part in (length, data)]
    return b"".join((length, checks[0], data, checks[1]))


def first_event(wall_time: float) -> bytes:
    """Return the event that every file begins with."""
    return b"\x09" + _DOUBLE.pack(wall_time) + b"\x1a" + _sized(VERSION)


def encoded(wall_time: float, step: int, values: Iterable[bytes]) -> bytes:
    """Return an event of values made with `encoded_value`."""
    summary = b"".join(values)
    head = b"\x09" + _DOUBLE.pack(wall_time) + b"\x10" + _as_varint(step % (1 << 64))
    return head + b"\x2a" + _sized(summary)


def value_head(tag: str) -> bytes:
    """Return what stands before the four bytes of a value: it depends on the tag alone."""
    name = b"\x0a" + _sized(tag.encode("utf-8", "backslashreplace"))
    return b"\x0a" + _as_varint(len(name) + 5) + name + b"\x15"


def _sized(data: bytes) -> bytes:
    return _as_varint(len(data)) + data


def _as_varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
