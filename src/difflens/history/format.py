"""How a run lies on disk: records one after the other, each with its length and two checksums.

    record   "DLR1" | kind u8, 3 zero bytes | payload length u32 | CRC-32 of the payload u32
             | zero u32 | CRC-32 of the 20 bytes before u32 | payload
    info     kind 1: a `RunInfo` as JSON; frames that follow are laid out as it says
    frame    kind 2: sequence u64, step i64, wall time f64, monotonic time f64,
             a f64 for each scalar, a f32 for each field of each layer, field after field
    note     kind 3: a `Note` as JSON

Little-endian, appended only. A length with its own checksum lets a reader step over a damaged
payload; the four letters let it find the next record after a damaged length. A database was not
taken: one append per step neither waits for a lock nor for a checkpoint.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any
from zlib import crc32

import msgspec
import numpy as np

from ..runs import Note, RunInfo
from .frame import Frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAGIC = b"DLR1"
INFO, FRAME, NOTE = 1, 2, 3
LARGEST_PAYLOAD = 1 << 28  # a million layers with every field; a length beyond it is damage

_HEAD = struct.Struct("<4sB3xIII")
_CHECK = struct.Struct("<I")
HEAD_SIZE = _HEAD.size + _CHECK.size
_TIMES = struct.Struct("<Qqdd")


def head_of(kind: int, payload: list[bytes | memoryview]) -> bytes:
    """Give the bytes that stand before a payload, which may come in parts."""
    length, check = 0, 0
    for part in payload:
        length += len(part)
        check = crc32(part, check)
    head = _HEAD.pack(MAGIC, kind, length, check, 0)
    return head + _CHECK.pack(crc32(head))


def read_head(head: bytes | memoryview) -> tuple[int, int, int] | None:
    """Give kind, length and checksum of the payload; None where this is no head."""
    if len(head) < HEAD_SIZE or head[:4] != MAGIC:
        return None
    _, kind, length, check, _zero = _HEAD.unpack_from(head)
    if _CHECK.unpack_from(head, _HEAD.size)[0] != crc32(head[: _HEAD.size]):
        return None
    return (kind, length, check) if length <= LARGEST_PAYLOAD else None


def frame_payload(frame: Frame) -> list[bytes | memoryview]:
    """Give the parts of a frame's payload; the arrays are not copied."""
    times = _TIMES.pack(frame.sequence, frame.step, frame.wall_time, frame.monotonic_time)
    return [times, _bytes(frame.scalars, "<f8"), _bytes(frame.layers, "<f4")]


def _bytes(array: NDArray[Any], dtype: str) -> memoryview:
    return memoryview(np.ascontiguousarray(array, dtype)).cast("B")


def frame_of(payload: memoryview, info: RunInfo) -> Frame | None:
    """Read a frame laid out as the info says; None where its size is another."""
    scalars, fields, layers = len(info.scalars), len(info.fields), len(info.layers)
    if len(payload) != _TIMES.size + 8 * scalars + 4 * fields * layers:
        return None
    sequence, step, wall_time, monotonic_time = _TIMES.unpack_from(payload)
    numbers = np.frombuffer(payload, "<f8", scalars, _TIMES.size)
    block = np.frombuffer(payload, "<f4", fields * layers, _TIMES.size + 8 * scalars)
    block = block.reshape(fields, layers)
    return Frame(sequence, step, wall_time, monotonic_time, numbers, block)


def json_payload(record: RunInfo | Note) -> list[bytes | memoryview]:
    """Give an info or a note as JSON."""
    return [msgspec.json.encode(record)]


def info_of(payload: memoryview) -> RunInfo | None:
    """Read an info; None where it is not one."""
    try:
        return msgspec.json.decode(payload, type=RunInfo)
    except msgspec.MsgspecError:
        return None


def note_of(payload: memoryview) -> Note | None:
    """Read a note; None where it is not one."""
    try:
        return msgspec.json.decode(payload, type=Note)
    except msgspec.MsgspecError:
        return None
