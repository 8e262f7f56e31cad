"""The run's file as a recorder sees it: it may be full, removed, and there again.

A writer that was given up for good after the first error was not taken: disks are cleared, and a
run of a week is worth the frames after it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from difflens.core.errors import RunError

from ..history.frame import Frame
from ..history.reader import read_tail
from ..history.writer import RunWriter, file_of
from ..records.runs import RunInfo

_LOOK = 1.0  # seconds between two looks whether the file is still in its place


class RunFile:
    """Writes what it can, and remembers what it still has to write."""

    def __init__(
        self, folder: Path, info: RunInfo, *, resume: bool = False, overwrite: bool = False
    ) -> None:
        """Make or continue the run; a refusal is raised, training has not begun yet."""
        self._folder = folder
        self.first_step = _step_after(file_of(folder, info.rank)) if resume else 0
        self._writer: RunWriter | None = RunWriter(folder, info, resume=resume, overwrite=overwrite)
        self._info, self._sequence = info, self._writer.sequence
        self._owes_info = False
        self._looked = time.monotonic()
        self.trouble = ""

    def append(self, frames: list[Frame]) -> int:
        """Write frames whose numbers follow one another; return how many could not be written.

        Where all of them together fail they are tried one by one: a disk may have room for some.
        """
        try:
            self._ready().append_all(frames)
        except (RunError, OSError) as error:
            self.trouble = str(error)
            if len(frames) > 1:
                return sum(self.append([frame]) for frame in frames)
            # The number is spent: a reader sees that a frame is missing.
            self._sequence = frames[0].sequence + 1
            if self._writer is not None:
                self._writer.sequence = self._sequence
            return 1
        self._sequence = frames[-1].sequence + 1
        return 0

    @property
    def sequence(self) -> int:
        """The number of the next frame."""
        return self._sequence

    def _ready(self) -> RunWriter:
        """Return a writer whose file is in its place and knows the layout."""
        now = time.monotonic()
        if now - self._looked > _LOOK:
            self._looked = now
            if self._writer is not None and not self._writer.path.exists():
                self._let_go()
        if self._writer is None:
            self._writer = RunWriter(self._folder, self._info, resume=True)
            self._writer.sequence = max(self._sequence, self._writer.sequence)
            self._owes_info = False
        if self._owes_info:
            self._writer.describe(self._info)
            self._owes_info = False
        return self._writer

    def _let_go(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(RunError, OSError):  # it may be gone; there is nobody to tell
                writer.close()

    def describe(self, info: RunInfo) -> None:
        """Say how the frames that follow are laid out, now or with the next frame."""
        self._info, self._owes_info = info, True
        try:
            self._ready()
        except (RunError, OSError) as error:
            self.trouble = str(error)

    def note(self, what: str, text: str, data: dict[str, Any]) -> bool:
        """Write down something that happened; was it possible?"""
        try:
            self._ready().note(what, text, **data)
        except (RunError, OSError) as error:
            self.trouble = str(error)
            return False
        return True

    def close(self) -> None:
        """Note that the run ended, and close the file."""
        self._let_go()


def _step_after(path: Path) -> int:
    """Return the step behind the last one of a run that is continued."""
    if not path.exists() or not path.stat().st_size:
        return 0
    times = read_tail(path).times
    return 0 if times is None else times.step + 1


MOST = 512  # names a run may have
LONGEST = 255  # characters of a name


class Names:
    """The names of a run's scalars; a new name changes how frames are laid out."""

    def __init__(self, known: tuple[str, ...]) -> None:
        """Begin with those that every run has."""
        self.known, self._whole = known, frozenset(known)
        self.refused = 0  # values that had no place

    def place(self, values: Mapping[str, float]) -> tuple[dict[str, float], bool]:
        """Return the scalars that have a place, and whether one of them is new."""
        if self._whole.issuperset(values):
            return dict(values), False
        new = [
            name
            for name in values
            if name not in self.known and 0 < len(name) <= LONGEST and name.isprintable()
        ][: MOST - len(self.known)]
        self.known = (*self.known, *new)
        self._whole = frozenset(self.known)
        placed = {name: value for name, value in values.items() if name in self.known}
        self.refused += len(values) - len(placed)
        return placed, bool(new)
