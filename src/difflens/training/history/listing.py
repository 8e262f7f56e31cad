"""Which runs a folder holds and how each stands, and what came to one since the last look.

Runs are listed from their heads and tails alone.
"""

from __future__ import annotations

import fcntl
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from difflens.core.errors import RunError
from difflens.core.findings import Missing
from difflens.core.kept import Kept, Number

from ..records.runs import Note, RunInfo
from . import FrameSource, frame_files, open_run
from .building import Builder
from .format import frame_of
from .frame import Frame, is_missing
from .history import History
from .reader import RunReader, Tail, read_steps_of, read_tail
from .writer import SUFFIX

RunState = Literal["running", "ended", "stopped without end", "unreadable"]
_NOT_COUNTED = Missing("read_steps", "the end of the run", "its writer counts them, and says so")
_LATEST = 253402300799.0  # the last second of the year 9999


class RunLine(Kept, frozen=True, kw_only=True):
    """One run of a folder: how it stands, how far it came."""

    as_logged: ClassVar[frozenset[str]] = frozenset({"last_loss"})
    says_why: ClassVar[tuple[str, str]] = ("a frame that holds it", "no whole frame holds it")

    name: str
    path: str
    state: RunState
    frames: int = 0
    read_steps: int | None = None  # of them, those with their layers
    first_step: int | None = None
    last_step: int | None = None
    last_loss: Number | None = None
    begun: str | None = None
    latest: str | None = None  # when the last frame was recorded
    layers: int | None = None
    ranks: int = 1  # files of it that are there
    size_bytes: int = 0
    damage: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()


def run_lines(folder: str | Path) -> list[RunLine]:
    """List the runs below a folder, or the one it is, by name."""
    folder = Path(folder)
    try:
        if not folder.is_dir():
            there = "it is not a folder" if folder.exists() else "no such folder"
            raise RunError(folder, there, hint="name the folder that holds the runs")
        folders = [folder] if frame_files(folder) else _below(folder)
    except OSError as error:
        raise RunError(folder, (error.strerror or str(error)).lower()) from error
    return [line_of(each) for each in folders]


def _below(folder: Path) -> list[Path]:
    """Find the runs in a folder; what an export has not finished yet is hidden."""
    folders = {path.parent for path in folder.glob("*/frames-*.dlr")}
    return sorted(each for each in folders if not each.name.startswith("."))


def line_of(folder: Path) -> RunLine:
    """Say how one run stands, by the file of its first rank."""
    files = sorted(folder.glob("frames-*.dlr"))
    first = files[0]
    size = sum(each.stat().st_size for each in files)
    shared: dict[str, Any] = {
        "name": folder.name,
        "path": str(folder),
        "ranks": len(files),
        "size_bytes": size,
    }
    try:
        running = is_written(first)
        with RunReader(first) as reader:
            start = next(reader.frames(), None)
            info: RunInfo | None = reader.info
            created, layout_id = reader.info.created, reader.layout_id
            notes, damage = reader.notes, tuple(reader.damage)
        tail = read_tail(first)
        if tail.times and tail.layout_id != layout_id:  # it changed: that info is further down
            info = _info_of_tail(first, tail)
    except RunError as error:
        return RunLine(**shared, state="unreadable", damage=(error.reason,))
    if tail.tail_bytes and not running:
        damage += (f"{tail.tail_bytes} bytes at the end are incomplete",)
    return RunLine(
        **shared,
        state="running" if running else _state(tail),
        frames=tail.times.sequence + 1 if tail.times else 0,
        read_steps=read_steps_of(tail),
        missing=() if read_steps_of(tail) is not None else (_NOT_COUNTED,),
        first_step=start.step if start else None,
        last_step=tail.times.step if tail.times else None,
        last_loss=_last_loss(tail, info),
        begun=_begun(notes) or created or (_time(start.wall_time) if start else None),
        latest=_time(tail.times.wall_time) if tail.times else None,
        layers=len(info.layers) if info else None,
        damage=damage,
    )


def is_written(path: Path) -> bool:
    """Does a process hold the run open to write it? Its lock tells, also after a kill."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise RunError(path, (error.strerror or str(error)).lower()) from error
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def _state(tail: Tail) -> RunState:
    """Tell a run that ended from one that was killed: what its last note says."""
    last = next((note.what for note in reversed(tail.notes) if note.what in _ENDS), "")
    after = next((note.sequence for note in reversed(tail.notes) if note.what == "ended"), -1)
    whole = tail.times is None or after > tail.times.sequence
    return "ended" if last == "ended" and whole else "stopped without end"


_ENDS = ("ended", "begun", "resumed")


def _info_of_tail(path: Path, tail: Tail) -> RunInfo | None:
    """Walk from head to head to the info of the last frame; None if it is lost."""
    with RunReader(path) as reader:
        return reader.info_called(tail.layout_id)


def _last_loss(tail: Tail, info: RunInfo | None) -> float | None:
    if tail.times is None or info is None or "loss" not in info.scalars:
        return None
    frame = frame_of(memoryview(tail.payload), info)
    if frame is None:
        return None
    place = info.scalars.index("loss")
    value = frame.scalars[place : place + 1]
    return None if is_missing(value)[0] else float(value[0])


def _begun(notes: list[Note]) -> str | None:
    begun = next((note for note in notes if note.what == "begun"), None)
    return _time(begun.wall_time) if begun else None


def _time(seconds: float) -> str | None:
    if not 0 < seconds < _LATEST:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Follower:
    """A run seen from outside; each `update` reads the frames that are new."""

    def __init__(self, path: str | Path, rank: int | None = None) -> None:
        """Open the run; the frames that are there already come with the first update."""
        self.path = Path(path)
        self._source: FrameSource = open_run(path, rank)
        self._info = self._source.info
        self._builder = Builder(self._info)
        self._notes = 0
        self.latest: Frame | None = None

    @property
    def scalars(self) -> tuple[str, ...]:
        """The names of the latest frame's scalars, in its order."""
        return self._info.scalars

    @property
    def has_ended(self) -> bool:
        """Has its writer said that the run is over?"""
        ends = [note.what for note in self._source.notes if note.what in ("ended", "resumed")]
        return bool(ends) and ends[-1] == "ended"

    @property
    def is_run(self) -> bool:
        """Is it a run of ours, and no log of another program?"""
        return self._source.path.suffix == SUFFIX

    def is_written(self) -> bool:
        """Does a process hold the run open to write it?"""
        return is_written(self._source.path)

    def update(self) -> int:
        """Read what is new; return how many frames that is."""
        new = 0
        for frame in self._source.frames():
            self._info = self._source.info
            self._builder.add(frame, self._info)
            self.latest, new = frame, new + 1
        for note in self._source.notes[self._notes :]:
            self._builder.note(note)
        self._notes = len(self._source.notes)
        return new

    def is_gone(self) -> bool:
        """Was the run removed or replaced under us?"""
        try:
            return not self.path.exists()
        except OSError as error:
            raise RunError(self.path, (error.strerror or str(error)).lower()) from error

    def history(self) -> History:
        """Return what was seen so far."""
        return self._builder.history(tuple(self._source.damage))

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()

    def __enter__(self) -> Self:
        """Use it in a `with`."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        self.close()
