"""The end of a run, found from behind: a long run is continued or listed without being read."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..runs import Note
from .format import FRAME, LARGEST_PAYLOAD, NOTE, Times, note_of, times_of
from .reader import RunReader

_WINDOW = 1 << 16


class Tail(NamedTuple):
    """What the last records of a run say."""

    end: int  # of what is whole
    tail_bytes: int  # behind it
    times: Times | None = None  # of the last frame
    layout_id: int = 0
    payload: bytes = b""
    notes: tuple[Note, ...] = ()


def read_tail(path: str | Path) -> Tail:
    """Find the last whole frame and what follows it."""
    window = _WINDOW
    with RunReader(path) as reader:
        while True:
            size = reader.path.stat().st_size
            tail = _within(reader, max(0, size - window))
            if tail.times is not None or window >= min(size, 4 * LARGEST_PAYLOAD):
                break
            window *= 8
        return tail if tail.times is not None else _within(reader, 0)


def _within(reader: RunReader, start: int) -> Tail:
    """Read the records from the first head behind `start` on."""
    reader.offset = start
    times, layout_id, kept, notes = None, 0, b"", []
    for head, payload in reader.records():
        if head.kind == FRAME:
            times, layout_id, kept = times_of(payload), head.layout, bytes(payload)
        elif head.kind == NOTE and (note := note_of(payload)) is not None:
            notes.append(note)
    return Tail(reader.offset, reader.tail_bytes, times, layout_id, kept, tuple(notes[-100:]))
