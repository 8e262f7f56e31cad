"""How a run lies on disk: records one after the other, each with its length and two checksums.

    record   "DLR1" | kind u8, 3 zero bytes | payload length u32 | CRC-32 of the payload u32
             | layout u32 | CRC-32 of the 20 bytes before u32 | payload
    info     kind 1: a `RunInfo` as JSON, padded with spaces, written twice
    frame    kind 2: sequence u64, step i64, wall time f64, monotonic time f64,
             a f64 for each scalar, a f32 for each field of each layer, field after field;
             it ends behind the scalars where the layers of the step were not read
    note     kind 3: a `Note` as JSON
    layout   of a frame: the CRC-32 of the info that says how it is laid out; else 0

Little-endian, appended only. A length with its own checksum lets a reader step over a damaged
payload; the four letters let it find the next record after a damaged length; the layout keeps it
from reading a frame by the wrong info where the right one is lost. A database was not taken: one
append per step neither waits for a lock nor for a checkpoint.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from ..records.runs import Note, RunInfo
from .frame import Frame, unread_layers

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAGIC = b"DLR1"
INFO, FRAME, NOTE = 1, 2, 3
LARGEST_PAYLOAD = 1 << 26  # a million layers with every field; a length beyond it is damage
LARGEST_INFO, LARGEST_NOTE = 1 << 25, 1 << 20
MOST_OBJECTS = 1 << 20  # in the JSON of an info: in memory one is many times its text
MOST_NAMES = 1 << 20  # of scalars or fields

_HEAD = struct.Struct("<4sB3xIII")
_CHECK = struct.Struct("<I")
HEAD_SIZE = _HEAD.size + _CHECK.size
_TIMES = struct.Struct("<Qqdd")
TIMES_SIZE = _TIMES.size


class Head(NamedTuple):
    """What stands before a payload."""

    kind: int
    length: int
    check: int
    layout: int


class Times(NamedTuple):
    """What stands first in a frame, whatever its layout."""

    sequence: int
    step: int
    wall_time: float
    monotonic_time: float


def head_of(kind: int, payload: list[bytes | memoryview], layout: int = 0) -> bytes:
    """Return the bytes that stand before a payload, which may come in parts."""
    length, check = 0, 0
    for part in payload:
        length += len(part)
        check = crc32(part, check)
    head = _HEAD.pack(MAGIC, kind, length, check, layout)
    return head + _CHECK.pack(crc32(head))


def read_head(head: bytes | memoryview) -> Head | None:
    """Read a head; return None if there is none here."""
    if len(head) < HEAD_SIZE or head[:4] != MAGIC:
        return None
    _, kind, length, check, layout = _HEAD.unpack_from(head)
    if _CHECK.unpack_from(head, _HEAD.size)[0] != crc32(head[: _HEAD.size]):
        return None
    return Head(kind, length, check, layout) if length <= LARGEST_PAYLOAD else None


def frame_size(info: RunInfo) -> int:
    """Count the bytes of a frame that is laid out as the info says."""
    return TIMES_SIZE + 8 * len(info.scalars) + 4 * len(info.fields) * len(info.layers)


def trouble_with(info: RunInfo) -> str:
    """Return why no frame can be laid out as the info says; an empty text if one can."""
    for what, names in (
        ("layer", [layer.name for layer in info.layers]),
        ("field", list(info.fields)),
        ("scalar", list(info.scalars)),
    ):
        if len(names) > MOST_NAMES:
            return f"{len(names)} {what}s, {MOST_NAMES} can be recorded"
        if len(set(names)) < len(names):
            return f"two {what}s have one name"
    if frame_size(info) > LARGEST_PAYLOAD:
        return f"a frame of {frame_size(info)} bytes, {LARGEST_PAYLOAD} can be recorded"
    return ""


def frame_payload(frame: Frame) -> list[bytes | memoryview]:
    """Return the parts of a frame's payload; the arrays are not copied."""
    times = _TIMES.pack(frame.sequence, frame.step, frame.wall_time, frame.monotonic_time)
    parts: list[bytes | memoryview] = [times, _bytes(frame.scalars, "<f8")]
    return [*parts, _bytes(frame.layers, "<f4")] if frame.is_read else parts


def frame_records(frames: Sequence[Frame], layout: int) -> list[bytes | memoryview]:
    """Return the records of frames of one layout, one after the other.

    It is what `head_of` and `frame_payload` give of each, at a third of the price.
    """
    records: list[bytes | memoryview] = []
    for _, alike in groupby(frames, lambda each: each.is_read):
        records.append(_records_alike(list(alike), layout))
    return records


def _records_alike(frames: Sequence[Frame], layout: int) -> memoryview:
    """Return the records of frames all of which have their layers, or none."""
    scalars = np.concatenate([frame.scalars for frame in frames]).astype("<f8", copy=False)
    blocks_of = frames if frames[0].is_read else ()
    layers = np.concatenate([np.zeros(0, "<f4"), *(frame.layers.ravel() for frame in blocks_of)])
    numbers, blocks = (_rows_of_bytes(each, len(frames)) for each in (scalars, layers))
    size = TIMES_SIZE + numbers.shape[1] + blocks.shape[1]
    records = np.empty((len(frames), HEAD_SIZE + size), np.uint8)
    records[:, HEAD_SIZE + TIMES_SIZE : HEAD_SIZE + TIMES_SIZE + numbers.shape[1]] = numbers
    records[:, HEAD_SIZE + TIMES_SIZE + numbers.shape[1] :] = blocks
    whole, at = memoryview(records.reshape(-1).data), 0
    for frame in frames:
        _TIMES.pack_into(whole, at + HEAD_SIZE, *frame[:4])
        check = crc32(whole[at + HEAD_SIZE : at + HEAD_SIZE + size])
        _HEAD.pack_into(whole, at, MAGIC, FRAME, size, check, layout)
        _CHECK.pack_into(whole, at + _HEAD.size, crc32(whole[at : at + _HEAD.size]))
        at += HEAD_SIZE + size
    return whole


def _rows_of_bytes(array: NDArray[Any], rows: int) -> NDArray[np.uint8]:
    return array.reshape(rows, array.size // rows).view(np.uint8)


def _bytes(array: NDArray[Any], dtype: str) -> memoryview:
    flat = np.ascontiguousarray(array, dtype).reshape(-1)
    return memoryview(flat.view(np.uint8).data) if flat.size else memoryview(b"")


def times_of(payload: bytes | memoryview) -> Times | None:
    """Read what stands first in a frame; None if it is too short for it."""
    return Times(*_TIMES.unpack_from(payload)) if len(payload) >= TIMES_SIZE else None


def frame_of(payload: memoryview, info: RunInfo) -> Frame | None:
    """Read a frame laid out as the info says; None if its size is another."""
    scalars, fields, layers = len(info.scalars), len(info.fields), len(info.layers)
    behind = len(payload) - TIMES_SIZE - 8 * scalars
    if behind not in {0, 4 * fields * layers}:
        return None
    sequence, step, wall_time, monotonic_time = _TIMES.unpack_from(payload)
    numbers = np.frombuffer(payload, "<f8", scalars, TIMES_SIZE)
    if not behind and fields * layers:
        block = unread_layers(fields, layers)
        return Frame(sequence, step, wall_time, monotonic_time, numbers, block, is_read=False)
    block = np.frombuffer(payload, "<f4", fields * layers, TIMES_SIZE + 8 * scalars)
    block = block.reshape(fields, layers)
    return Frame(sequence, step, wall_time, monotonic_time, numbers, block)


def json_payload(record: RunInfo | Note) -> list[bytes | memoryview]:
    """Return an info or a note as JSON; spaces behind it keep the floats of frames aligned."""
    text = msgspec.json.encode(record)
    return [text, b" " * (-len(text) % 8)]


def layout_of(payload: list[bytes | memoryview]) -> int:
    """Return what frames call the info of that payload by."""
    return crc32(b"".join(payload)) or 1


def info_of(payload: memoryview) -> RunInfo | None:
    """Read an info; None if it is not one, or lays out what no frame can hold."""
    if len(payload) > LARGEST_INFO:
        return None
    text = bytes(payload)
    if text.count(b"{") + text.count(b"[") > MOST_OBJECTS:  # before memory is taken for them
        return None
    try:
        info = msgspec.json.decode(text, type=RunInfo)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    return None if trouble_with(info) else info


def note_of(payload: memoryview) -> Note | None:
    """Read a note; None if it is not one."""
    if len(payload) > LARGEST_NOTE:
        return None
    try:
        return msgspec.json.decode(payload, type=Note)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
