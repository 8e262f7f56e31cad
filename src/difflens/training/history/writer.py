"""Writes a run: one append to one file per step, in the hands of the system when it returns."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

import numpy as np

from difflens.core.errors import RunError
from difflens.core.escape import for_terminal

from ..records.runs import Note, RunInfo
from .format import (
    FRAME,
    HEAD_SIZE,
    INFO,
    LARGEST_INFO,
    MAGIC,
    NOTE,
    frame_payload,
    frame_records,
    head_of,
    json_payload,
    layout_of,
    read_head,
    trouble_with,
)
from .frame import Frame, no_scalars
from .reader import read_steps_of, read_tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIX = ".dlr"
_TRIES, _PAUSE = 10, 0.02  # for the lock: who lists runs holds it for a moment


def file_of(folder: str | Path, rank: int = 0) -> Path:
    """Name the file that one rank writes."""
    return Path(folder) / f"frames-{rank:03d}{SUFFIX}"


class RunWriter:
    """The one process that appends to a run; what `append` returned for outlives that process.

    A frame is one `pwritev`: where the disk takes only a part of it, that part is cut off again
    and the next frame goes to the same place, so that a full disk leaves no torn record behind.
    """

    def __init__(
        self,
        folder: str | Path,
        info: RunInfo,
        *,
        resume: bool = False,
        overwrite: bool = False,
        announce: bool = True,
    ) -> None:
        """Make the run's file; one that is there is an error unless continued or replaced.

        Who copies a run brings its notes along: `announce=False` adds none on begin and end.
        """
        self.path = file_of(folder, info.rank)
        self.info = info
        self.sequence = 0  # of the next frame
        self.read_steps: int | None = 0  # frames with their layers; None where that is not known
        self._process, self._announce, self._layout = os.getpid(), announce, 0
        self._file = self._opened(resume, overwrite)
        try:
            self._lock()
            self._end = self._begin(resume)
            if overwrite and info.rank == 0:
                self._remove_ranks(info.ranks)
            self.describe(info)
            if announce:
                self.note("resumed" if self.sequence else "begun")
        except BaseException:
            os.close(self._file)
            raise
        _open_writers.add(self)

    def _opened(self, resume: bool, overwrite: bool) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (0 if resume or overwrite else os.O_EXCL)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self.path, flags, 0o666)
        except FileExistsError as error:
            raise RunError(
                self.path.parent,
                "there is a run already",
                hint="resume=True continues it, overwrite=True replaces it",
            ) from error
        except OSError as error:
            raise RunError(self.path.parent, (error.strerror or str(error)).lower()) from error

    def _lock(self) -> None:
        for again in reversed(range(_TRIES)):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if again:
                    time.sleep(_PAUSE)
                    continue
                raise RunError(
                    self.path.parent,
                    "another process is writing this run",
                    hint="name another folder",
                ) from error
            return

    def _begin(self, resume: bool) -> int:
        """Find the end of what is whole, and cut off what is not."""
        end = 0
        if resume and not self._is_only_begun():
            tail = read_tail(self.path)
            self.sequence = tail.times.sequence + 1 if tail.times else 0
            self.read_steps = read_steps_of(tail)
            end = tail.end
        os.ftruncate(self._file, end)
        return end

    def _is_only_begun(self) -> bool:
        """Is there no more than a part of the first record, as of a writer killed right away?"""
        size = os.fstat(self._file).st_size
        if size < HEAD_SIZE:
            begun = os.pread(self._file, len(MAGIC), 0)
            return MAGIC.startswith(begun)
        head = read_head(os.pread(self._file, HEAD_SIZE, 0))
        return head is not None and size < HEAD_SIZE + head.length

    def _remove_ranks(self, ranks: int) -> None:
        """Remove what ranks that are no longer there wrote of the run that is replaced."""
        for path in self.path.parent.glob(f"frames-*{SUFFIX}"):
            number = path.stem.removeprefix("frames-")
            if number.isdecimal() and int(number) >= ranks:
                path.unlink(missing_ok=True)

    def describe(self, info: RunInfo) -> None:
        """Say how the frames that follow are laid out: at the start, and when a layer is new.

        It is written twice: no damage to one record can make every frame unreadable.
        """
        payload = self._as_json(info)
        reason = trouble_with(info)
        size = sum(map(len, payload))
        if not reason and size > LARGEST_INFO:
            reason = f"an info of {size} bytes, {LARGEST_INFO} can be recorded"
        if reason:
            raise RunError(self.path.parent, reason)
        record = [head_of(INFO, payload), *payload]
        self._append(record + record)
        self.info, self._layout = info, layout_of(payload)

    def append(
        self,
        step: int,
        scalars: Mapping[str, float] | NDArray[np.float64],
        layers: NDArray[np.float32],
        *,
        wall_time: float | None = None,
        monotonic_time: float | None = None,
        is_read: bool = True,
    ) -> int:
        """Write one frame and give its sequence number; the numbers have no gaps."""
        sequence = self.sequence
        frame = Frame(
            sequence,
            step,
            time.time() if wall_time is None else wall_time,
            time.monotonic() if monotonic_time is None else monotonic_time,
            self._in_order(scalars) if isinstance(scalars, Mapping) else scalars,
            layers,
            is_read,
        )
        self._check([frame])
        try:
            payload = frame_payload(frame)
        except struct.error as error:
            raise RunError(self.path.parent, f"step {step!r} is no 64-bit number") from error
        self._append([head_of(FRAME, payload, self._layout), *payload])
        self.sequence += 1
        self._count([frame])
        return sequence

    def append_all(self, frames: Sequence[Frame]) -> None:
        """Write frames whose numbers follow ours, all of them or none: one call of the system."""
        self._check(frames)
        if frames[0].sequence < self.sequence:
            given = frames[0].sequence
            raise RunError(self.path.parent, f"frame {given} again, the next is {self.sequence}")
        try:
            records = frame_records(frames, self._layout)
        except struct.error as error:
            raise RunError(self.path.parent, "a step is no 64-bit number") from error
        self._append(records)
        self.sequence = frames[-1].sequence + 1
        self._count(frames)

    def _count(self, frames: Sequence[Frame]) -> None:
        if self.read_steps is not None:
            self.read_steps += sum(frame.is_read for frame in frames)

    def _check(self, frames: Sequence[Frame]) -> None:
        wanted = ((len(self.info.scalars),), (len(self.info.fields), len(self.info.layers)))
        for frame in frames:
            given = (frame.scalars.shape, frame.layers.shape)
            if given != wanted:
                raise RunError(self.path.parent, f"a frame of {given}, the run has {wanted}")
            if not frame.is_read and self.info.schema < 2:
                raise RunError(self.path.parent, "a frame without layers, in a run of schema 1")

    def _in_order(self, given: Mapping[str, float]) -> NDArray[np.float64]:
        values = no_scalars(len(self.info.scalars))
        unknown = given.keys() - set(self.info.scalars)
        if unknown:
            reason = f"the scalar '{for_terminal(min(unknown), 80)}' is not in the run's layout"
            raise RunError(self.path.parent, reason, hint="describe() it first")
        for place, name in enumerate(self.info.scalars):
            if name in given:
                values[place] = given[name]
        return values

    def note(self, what: str, text: str = "", **data: Any) -> None:
        """Write down something that happened to the recording."""
        self.keep(Note(what, text, self.sequence, time.time(), data))

    def keep(self, note: Note) -> None:
        """Write a note as it is."""
        payload = self._as_json(note)
        self._append([head_of(NOTE, payload), *payload])

    def _as_json(self, record: RunInfo | Note) -> list[bytes | memoryview]:
        try:
            return json_payload(record)
        except (TypeError, ValueError, OverflowError) as error:
            raise RunError(self.path.parent, f"it cannot be written down: {error}") from error

    def _append(self, record: list[bytes | memoryview]) -> None:
        if os.getpid() != self._process:
            raise RunError(
                self.path.parent, f"process {self._process} writes it, a fork of it may not"
            )
        if self._file < 0:
            raise RunError(self.path.parent, "it was closed")
        size = sum(map(len, record))
        try:
            written = os.pwritev(self._file, record, self._end)
            if written < size:  # a disk that fills up takes a part; the rest would be refused
                rest = b"".join(record)[written:]
                while rest:
                    more = os.pwrite(self._file, rest, self._end + size - len(rest))
                    if not more:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    rest = rest[more:]
        except OSError as error:
            self._cut()
            raise RunError(self.path, (error.strerror or str(error)).lower()) from error
        self._end += size

    def _cut(self) -> None:
        with suppress(OSError):  # readers take it for a torn tail; the next frame goes over it
            os.ftruncate(self._file, self._end)

    def flush(self) -> None:
        """Do nothing: every frame went to the system when it was appended.

        Sinks have it because some of them keep frames back.
        """

    def close(self) -> None:
        """Say that the run ended, and let go of the file."""
        if self._file < 0:
            return
        try:
            if self._announce and os.getpid() == self._process:
                read = self.read_steps
                known: dict[str, Any] = {} if read is None else {"read_steps": read}
                self.note("ended", **known)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __enter__(self) -> Self:
        """Use it in a `with`."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        self.close()


_open_writers: WeakSet[RunWriter] = WeakSet()


def _forget() -> None:
    """Close what a fork inherited: its copy would keep the lock when the writer is gone."""
    for each in list(_open_writers):
        each._let_go()  # noqa: SLF001


os.register_at_fork(after_in_child=_forget)
