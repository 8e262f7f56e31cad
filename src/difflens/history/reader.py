"""Reads a run frame by frame, also while it is written and after its writer was killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from ..errors import RunError
from ..runs import Note, RunInfo
from .format import (
    FRAME,
    HEAD_SIZE,
    INFO,
    MAGIC,
    NOTE,
    frame_of,
    info_of,
    note_of,
    read_head,
)
from .frame import Frame

_PIECE = 1 << 22  # bytes read at a time; frames are views into such a piece


class RunReader:
    """One rank's file of a run.

    `frames()` yields what is whole now and can be called again when the run has grown. What is
    not whole at the end is a torn tail or still being written: `tail_bytes` counts it. What is
    damaged before the end is stepped over and told in `damage`.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the file and read what stands at its head."""
        self.path = Path(path)
        self.info = RunInfo()
        self.notes: list[Note] = []
        self.damage: list[str] = []
        self.offset = 0  # of the first byte that is not yet read as a whole record
        self.tail_bytes = 0
        self._piece, self._piece_at = b"", 0
        try:
            self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise RunError(self.path, (error.strerror or str(error)).lower()) from error
        try:
            self._read_info()
        except BaseException:
            os.close(self._file)
            raise

    def _read_info(self) -> None:
        head = read_head(self._bytes(0, HEAD_SIZE))
        if head is None or head[0] != INFO:
            empty = os.fstat(self._file).st_size == 0
            reason = "it is empty" if empty else "it does not begin as a run does"
            raise RunError(self.path, reason, hint="is it the folder that the monitor wrote?")
        next(self.frames(), None)  # the info is taken on the way to the first frame
        if not self.info.layers and not self.info.scalars:
            raise RunError(self.path, "its head is damaged: nothing says how frames are laid out")
        self.offset, self.tail_bytes = 0, 0
        self.notes.clear()
        self.damage.clear()

    def frames(self) -> Iterator[Frame]:
        """Yield the frames that are whole, from where the last call ended."""
        while (record := self._next()) is not None:
            kind, payload = record
            if kind == FRAME:
                frame = frame_of(payload, self.info)
                if frame is not None:
                    yield frame
                    continue
            elif kind == INFO:
                info = info_of(payload)
                if info is not None:
                    self.info = info
                    continue
            elif kind == NOTE:
                note = note_of(payload)
                if note is not None:
                    self.notes.append(note)
                    continue
            else:
                continue  # a kind of a later version
            self.damage.append(f"a record before byte {self.offset} cannot be understood")

    def _next(self) -> tuple[int, memoryview] | None:
        """Give the next whole record; None at the end or at a tail that is not whole."""
        while True:
            head = read_head(self._bytes(self.offset, HEAD_SIZE))
            size = os.fstat(self._file).st_size
            if head is None:
                if not self._skip_to_a_head(size):
                    return self._end_at(size)
                continue
            kind, length, check = head
            start, stop = self.offset + HEAD_SIZE, self.offset + HEAD_SIZE + length
            if stop > size:
                return self._end_at(size)
            payload = self._bytes(start, length)
            if crc32(payload) == check:
                self.offset, self.tail_bytes = stop, 0
                return kind, payload
            if stop == size:  # being written, or torn by a crash: nothing follows it
                return self._end_at(size)
            self.damage.append(f"{length} bytes at {start} are damaged, a record is lost")
            self.offset = stop

    def _skip_to_a_head(self, size: int) -> bool:
        """Step over bytes that are no record; False where no record follows them."""
        at = self.offset + 1
        while at < size:
            piece = bytes(self._bytes(at, min(_PIECE, size - at)))
            found = piece.find(MAGIC)
            while found >= 0:
                if read_head(self._bytes(at + found, HEAD_SIZE)) is not None:
                    lost = at + found - self.offset
                    self.damage.append(f"{lost} bytes at {self.offset} are damaged")
                    self.offset = at + found
                    return True
                found = piece.find(MAGIC, found + 1)
            if len(piece) < len(MAGIC):
                break
            at += max(1, len(piece) - len(MAGIC) + 1)
        return False

    def _end_at(self, size: int) -> None:
        """Stop here for now; the bytes in hand may be half written, so they are read again."""
        self.tail_bytes = size - self.offset
        self._piece = b""

    def _bytes(self, start: int, length: int) -> memoryview:
        """Give bytes of the file, out of the piece in hand where they lie in it."""
        inside = start - self._piece_at
        if inside < 0 or inside + length > len(self._piece):
            try:
                self._piece = os.pread(self._file, max(_PIECE, length), start)
            except OSError as error:
                raise RunError(self.path, (error.strerror or str(error)).lower()) from error
            self._piece_at, inside = start, 0
        return memoryview(self._piece)[inside : inside + length]

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> RunReader:
        """Use it in a `with`."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        self.close()
