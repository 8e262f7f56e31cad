"""Follows a run that somebody else is writing: what came since the last look."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from ..errors import RunError
from . import FrameSource, open_run
from .building import Builder
from .frame import Frame
from .history import History
from .listing import is_written
from .writer import SUFFIX


class Follower:
    """A run seen from outside; each `update` takes the frames that were not there before."""

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
        told = [note.what for note in self._source.notes if note.what in ("ended", "resumed")]
        return bool(told) and told[-1] == "ended"

    @property
    def is_run(self) -> bool:
        """Is it a run of ours, and no log of another program?"""
        return self._source.path.suffix == SUFFIX

    def is_written(self) -> bool:
        """Does a process hold the run open to write it?"""
        return is_written(self._source.path)

    def update(self) -> int:
        """Take what is new, and say how many frames that were."""
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
        """Give what was seen so far."""
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
