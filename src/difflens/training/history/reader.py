"""Reads a run frame by frame, or its end; also while it is written, or its writer was killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self
from zlib import crc32

from difflens.core.errors import RunError

from ..records.runs import RUN_SCHEMA, Note, RunInfo
from .format import (
    FRAME,
    HEAD_SIZE,
    INFO,
    LARGEST_PAYLOAD,
    MAGIC,
    NOTE,
    Head,
    Times,
    frame_of,
    info_of,
    note_of,
    read_head,
    times_of,
    trouble_with,
)
from .frame import Frame, union

_PIECE = 1 << 22  # bytes read at a time; frames are views into such a piece
MOST_NOTES, MOST_DAMAGE = 4096, 100  # kept in memory; a count tells of the rest


class RunReader:
    """One rank's file of a run.

    `frames()` yields what is whole now and can be called again when the run has grown. What is
    not whole at the end is a torn tail or still being written: `tail_bytes` counts it. What is
    damaged before the end is stepped over and listed in `damage`.
    """

    def __init__(self, path: str | Path, *, piece: int = _PIECE) -> None:
        """Open the file and read what stands at its head."""
        self.path = Path(path)
        self.info = RunInfo()
        self.notes: list[Note] = []
        self.damage: list[str] = []
        self.offset = 0  # of the first byte that is not yet read as a whole record
        self.tail_bytes = 0
        self.layout_id = 0  # what frames call the info in force by
        self._unlisted = 0
        self._piece, self._piece_at, self._piece_size, self._size = b"", 0, piece, 0
        try:
            self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise RunError(self.path, (error.strerror or str(error)).lower()) from error
        try:
            self._read_info()
        except BaseException:
            self.close()
            raise

    def _read_info(self) -> None:
        if not self._reaches(1):
            raise RunError(self.path, "it is empty")
        if MAGIC not in bytes(self._bytes(0, min(_PIECE, self._size))):
            hint = "is it the folder that the monitor wrote?"
            raise RunError(self.path, "it does not begin as a run does", hint=hint)
        next(self.frames(), None)  # the info is taken on the way to the first frame
        if not self.layout_id:
            torn = self.tail_bytes == self._size
            reason = "is not whole yet" if torn else "is damaged"
            raise RunError(self.path, f"its head {reason}: nothing says how frames are laid out")
        self.offset, self.tail_bytes, self._unlisted = 0, 0, 0
        self.notes.clear()
        self.damage.clear()

    def frames(self) -> Iterator[Frame]:
        """Yield the frames that are whole, from where the last call ended."""
        for head, payload in self.records():
            if head.kind == FRAME:
                known = head.layout == self.layout_id
                frame = frame_of(payload, self.info) if known else None
                if frame is not None:
                    yield frame
                    continue
            elif head.kind == INFO:
                if self._take_info(head, payload):
                    continue
            elif head.kind == NOTE:
                note = note_of(payload)
                if note is not None:
                    self._keep(note)
                    continue
            else:
                continue  # a kind of a later version
            self._tell(f"the record that ends at byte {self.offset} cannot be understood")

    def _take_info(self, head: Head, payload: memoryview) -> bool:
        name = head.check or 1
        if name == self.layout_id:
            return True  # the second copy
        info = info_of(payload)
        if info is None:
            return False
        if info.schema > RUN_SCHEMA:
            reason = f"schema {info.schema}, this difflens reads up to {RUN_SCHEMA}"
            raise RunError(self.path, reason, hint="a newer difflens wrote it")
        self.info, self.layout_id = info, name
        return True

    def _keep(self, note: Note) -> None:
        self.notes.append(note)
        if len(self.notes) > MOST_NOTES:  # the first ones say how it began, the last what counts
            del self.notes[MOST_NOTES // 2 : MOST_NOTES // 2 + MOST_NOTES // 4]
            text = "notes in the middle of the run were left out of memory"
            if text not in self.damage:
                self.damage.append(text)

    def _tell(self, damage: str) -> None:
        if len(self.damage) < MOST_DAMAGE:
            self.damage.append(damage)
            return
        self._unlisted += 1
        self.damage[MOST_DAMAGE:] = [f"{self._unlisted} further places are damaged"]

    def layout(self) -> RunInfo:
        """Return what all frames of the file hold together; where it was read to does not move."""
        infos: list[RunInfo] = []
        with RunReader(self.path, piece=HEAD_SIZE) as walker:
            for head, payload in walker.records(skip=FRAME):
                if head.kind == INFO and walker._take_info(head, payload):
                    infos.append(walker.info)
        united = union(*infos) if infos else self.info
        reason = trouble_with(united)
        if reason:
            raise RunError(self.path, f"in all {reason}")
        return united

    def info_called(self, layout_id: int) -> RunInfo | None:
        """Find the info that frames call by that number, stepping from head to head."""
        with RunReader(self.path, piece=HEAD_SIZE) as walker:
            for head, payload in walker.records(skip=FRAME):
                if head.kind == INFO and (head.check or 1) == layout_id:
                    return info_of(payload)
        return None

    def records(self, skip: int = 0) -> Iterator[tuple[Head, memoryview]]:
        """Yield the records that are whole; those of the kind `skip` are stepped over unread."""
        while True:
            start = self.offset + HEAD_SIZE
            if not self._reaches(start):  # asked once: it may have grown by the next asking
                break
            head = self._head()
            if head is None:
                if self._skip_to_a_head():
                    continue
                break
            stop = start + head.length
            if not self._reaches(stop):
                break
            if head.kind == skip:
                self.offset = stop
                continue
            payload = self._bytes(start, head.length)
            if crc32(payload) != head.check:
                payload = self._bytes(start, head.length, again=True)
            if crc32(payload) == head.check:
                self.offset = stop
                yield head, payload
            elif self._reaches(stop + 1):
                self._tell(f"{head.length} bytes at {start} are damaged, a record is lost")
                self.offset = stop
            else:  # being written, or torn by a crash: nothing follows it
                break
        # The bytes in hand may be half written, so they are read again.
        self._piece, self.tail_bytes = b"", self._size - self.offset

    def _head(self) -> Head | None:
        """Read the head at the offset; a piece taken while it was written is taken again."""
        head = read_head(self._bytes(self.offset, HEAD_SIZE))
        return head or read_head(self._bytes(self.offset, HEAD_SIZE, again=True))

    def _reaches(self, stop: int) -> bool:
        """Is the file that long by now?"""
        if stop > self._size:
            self._size = os.fstat(self._file).st_size
            if self._size < self.offset:
                raise RunError(self.path, "it is shorter than it was: it was overwritten")
        return stop <= self._size

    def _skip_to_a_head(self) -> bool:
        """Step over bytes that are no record; False if no record follows them."""
        at, size = self.offset + 1, self._size
        while at + HEAD_SIZE <= size:
            piece = os.pread(self._file, min(_PIECE, size - at), at)
            place = piece.find(MAGIC)
            while 0 <= place <= len(piece) - HEAD_SIZE:
                if read_head(piece[place : place + HEAD_SIZE]) is not None:
                    lost = at + place - self.offset
                    self._tell(f"{lost} bytes at {self.offset} are damaged")
                    self.offset = at + place
                    return True
                place = piece.find(MAGIC, place + 1)
            at += max(1, len(piece) - HEAD_SIZE + 1)
        return False

    def _bytes(self, start: int, length: int, *, again: bool = False) -> memoryview:
        """Return bytes of the file, out of the piece in hand where they lie in it."""
        inside = start - self._piece_at
        if again or inside < 0 or inside + length > len(self._piece):
            try:
                self._piece = os.pread(self._file, max(self._piece_size, length), start)
            except OSError as error:
                raise RunError(self.path, (error.strerror or str(error)).lower()) from error
            self._piece_at, inside = start, 0
        return memoryview(self._piece)[inside : inside + length]

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        """Use it in a `with`."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        self.close()


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


def read_steps_of(tail: Tail) -> int | None:
    """Return how many steps of the run have their layers, as its writer said when it ended."""
    if tail.times is None:
        return 0
    for note in reversed(tail.notes):
        count = note.data.get("read_steps")
        if note.what == "ended" and note.sequence > tail.times.sequence and isinstance(count, int):
            return count
    return None
