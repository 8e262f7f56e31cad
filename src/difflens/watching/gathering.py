"""The history of a run while it is recorded, made when somebody asks for it.

Frames are kept as they come and built in one go: a history is asked for every few seconds, and a
hundred frames in a row are gathered in half the time of a hundred one by one between other work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..runs import Note, RunInfo

if TYPE_CHECKING:
    from ..history.building import Builder
    from ..history.frame import Frame
    from ..history.history import History

_MOST = 256  # frames that wait to be gathered


class Gathering:
    """Frames, notes and layouts of a run, in their order."""

    def __init__(self) -> None:
        """Begin with nothing: the layout comes with the first frame."""
        self._builder: Builder | None = None
        self._waiting: list[tuple[Frame, RunInfo]] = []
        self._notes: list[Note] = []
        self._info: RunInfo | None = None
        self.frames = 0

    def add(self, frame: Frame, info: RunInfo) -> None:
        """Take a frame, laid out as the info says."""
        self._waiting.append((frame, info))
        self.frames += 1
        if len(self._waiting) >= _MOST:
            self._build()

    def note(self, note: Note) -> None:
        """Take a note."""
        self._notes.append(note)

    def _build(self) -> Builder | None:
        from ..history.building import Builder

        for frame, info in self._waiting:
            if self._builder is None:
                self._builder = Builder(info)
            elif info is not self._info:
                self._builder.describe(info)
            self._info = info
            self._builder.add(frame)
        self._waiting.clear()
        if self._builder is not None:
            for note in self._notes:
                self._builder.note(note)
            self._notes.clear()
        return self._builder

    def history(self) -> History | None:
        """Give what was gathered so far; None before the first frame."""
        builder = self._build()
        return None if builder is None else builder.history()
