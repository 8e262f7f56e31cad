"""The history of a run while it is recorded, made when somebody asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..runs import Note, RunInfo

if TYPE_CHECKING:
    from ..history.building import Builder
    from ..history.frame import Frame
    from ..history.history import History


class Gathering:
    """Frames, notes and layouts of a run, in their order."""

    def __init__(self) -> None:
        """Begin with nothing: the layout comes with the first frame."""
        self._builder: Builder | None = None
        self._notes: list[Note] = []  # those before the first frame

    def add(self, frame: Frame, info: RunInfo) -> None:
        """Take a frame, laid out as the info says."""
        if self._builder is None:
            from ..history.building import Builder

            self._builder = Builder(info)
            for note in self._notes:
                self._builder.note(note)
        self._builder.add(frame, info)

    def note(self, note: Note) -> None:
        """Take a note."""
        if self._builder is None:
            self._notes.append(note)
        else:
            self._builder.note(note)

    def history(self) -> History | None:
        """Give what was gathered so far; None before the first frame."""
        return None if self._builder is None else self._builder.history()
