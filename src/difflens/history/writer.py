"""Writes a run: one append to one file per step, in the hands of the system when it returns."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RunError
from ..runs import Note, RunInfo
from .format import FRAME, INFO, NOTE, frame_payload, head_of, json_payload
from .frame import Frame, no_scalars
from .reader import RunReader

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIX = ".dlr"


def file_of(folder: str | Path, rank: int = 0) -> Path:
    """Name the file that one rank writes."""
    return Path(folder) / f"frames-{rank:03d}{SUFFIX}"


class RunWriter:
    """The one process that appends to a run; what `append` returned for outlives that process.

    A frame is one `pwritev`: where the disk takes only a part of it, that part is cut off again
    and the next frame goes to the same place, so that a full disk leaves no torn record behind.
    """

    def __init__(
        self, folder: str | Path, info: RunInfo, *, resume: bool = False, overwrite: bool = False
    ) -> None:
        """Make the run's file; one that is there is an error unless continued or replaced."""
        self.path = file_of(folder, info.rank)
        self.info = info
        self.sequence = 0  # of the next frame
        self._process = os.getpid()
        self._file = self._opened(resume, overwrite)
        try:
            self._lock()
            self._end = self._begin(resume)
            self.describe(info)
            self.note("resumed" if self.sequence else "begun")
        except BaseException:
            os.close(self._file)
            raise

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
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunError(
                self.path.parent,
                "another process is writing this run",
                hint="name another folder",
            ) from error

    def _begin(self, resume: bool) -> int:
        """Find the end of what is whole, and cut off what is not."""
        end = 0
        if resume and os.fstat(self._file).st_size:
            with RunReader(self.path) as before:
                for frame in before.frames():
                    self.sequence = frame.sequence + 1
                end = before.offset
        os.ftruncate(self._file, end)
        return end

    def describe(self, info: RunInfo) -> None:
        """Say how the frames that follow are laid out: at the start, and when a layer is new."""
        self._append(INFO, json_payload(info))
        self.info = info

    def append(
        self,
        step: int,
        scalars: Mapping[str, float] | NDArray[np.float64],
        layers: NDArray[np.float32],
        *,
        wall_time: float | None = None,
        monotonic_time: float | None = None,
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
        )
        wanted = ((len(self.info.scalars),), (len(self.info.fields), len(self.info.layers)))
        given = (frame.scalars.shape, frame.layers.shape)
        if given != wanted:
            raise RunError(self.path.parent, f"a frame of {given}, the run has {wanted}")
        self._append(FRAME, frame_payload(frame))
        self.sequence += 1
        return sequence

    def _in_order(self, given: Mapping[str, float]) -> NDArray[np.float64]:
        values = no_scalars(len(self.info.scalars))
        for place, name in enumerate(self.info.scalars):
            if name in given:
                values[place] = given[name]
        return values

    def note(self, what: str, text: str = "", **data: Any) -> None:
        """Write down something that happened to the recording."""
        self._append(NOTE, json_payload(Note(what, text, self.sequence, time.time(), data)))

    def _append(self, kind: int, payload: list[bytes | memoryview]) -> None:
        if os.getpid() != self._process:
            raise RunError(
                self.path.parent, f"process {self._process} writes it, a fork of it may not"
            )
        record = [head_of(kind, payload), *payload]
        size = sum(map(len, record))
        try:
            written = os.pwritev(self._file, record, self._end)
            if written < size:  # a disk that fills up takes a part; the rest would be refused
                rest = b"".join(record)[written:]
                while rest:
                    more = os.pwrite(self._file, rest, self._end + written)
                    written, rest = written + more, rest[more:]
        except OSError as error:
            self._cut()
            raise RunError(self.path, (error.strerror or str(error)).lower()) from error
        self._end += size

    def _cut(self) -> None:
        try:
            os.ftruncate(self._file, self._end)
        except OSError:
            pass  # readers take it for a torn tail, and the next frame is written over it

    def flush(self) -> None:
        """Do nothing: every frame went to the system when it was appended.

        It is part of the contract of sinks, some of which do keep frames back.
        """

    def close(self) -> None:
        """Say that the run ended, and let go of the file."""
        if self._file < 0:
            return
        try:
            if os.getpid() == self._process:
                self.note("ended")
        finally:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> RunWriter:
        """Use it in a `with`."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        self.close()
