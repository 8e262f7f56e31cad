"""Replays a recorded run and asks the diagnoses at every few steps, as a monitor would.

Asking at every step was not taken: an alarm is looked for at coarse steps, then step by step
within the stretch in which it appeared, which finds the same step at a tenth of the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from difflens.training.history import open_run
from difflens.training.history.building import Builder

from .verdicts import Alarm, Verdict

if TYPE_CHECKING:
    from difflens.training.history.frame import Frame
    from difflens.training.history.history import History
    from difflens.training.records.runs import Note, RunFinding, RunInfo

EVERY = 10
Judge = Callable[["History"], "tuple[RunFinding, ...]"]


def diagnosed(history: History) -> tuple[RunFinding, ...]:
    """Ask the diagnoses of difflens."""
    from difflens.training.diagnoses import diagnose

    return diagnose(history).findings


class Film:
    """The frames of a run with what was in force when each was written."""

    def __init__(self, folder: Path) -> None:
        """Read a recorded run."""
        source = open_run(folder)
        self.first_info: RunInfo = source.info
        self.frames: list[tuple[Frame, RunInfo, int]] = []
        for frame in source.frames():
            self.frames.append((frame, source.info, len(source.notes)))
        self.notes: list[Note] = list(source.notes)
        source.close()

    def __len__(self) -> int:
        """Count the frames."""
        return len(self.frames)


class Show:
    """A history that grows along a film."""

    def __init__(self, film: Film) -> None:
        """Begin before the first frame."""
        self._film, self._builder, self.at = film, Builder(film.first_info), 0
        self._noted = 0

    def until(self, stop: int) -> History:
        """Return the history up to a frame."""
        for frame, info, notes in self._film.frames[self.at : stop]:
            self._builder.add(frame, info)
            self._note(notes)
        self.at = max(self.at, stop)
        if stop >= len(self._film):
            self._note(len(self._film.notes))
        return self._builder.history()

    def _note(self, upto: int) -> None:
        for note in self._film.notes[self._noted : upto]:
            self._builder.note(note)
        self._noted = max(self._noted, upto)


def replay(folder: Path, judge: Judge = diagnosed, every: int = EVERY) -> Verdict:
    """Return what is said while the run goes on, and what is said of it last.

    That is what stands at the end; where nothing does any more, what stood last: who was warned
    has been told a remedy, and a warning that is withdrawn does not take it back.
    """
    film = Film(folder)
    show, known, alarms = Show(film), set[str](), list[Alarm]()
    last: tuple[RunFinding, ...] = ()
    before = stood = 0
    for stop in [*range(every, len(film), every), len(film)]:
        found = serious(judge(show.until(stop)))
        if found:
            last, stood = found, stop
        fresh = {each.name for each in found} - known
        if fresh:
            alarms += _narrowed(film, judge, fresh, range(before + 1, stop + 1))
            known |= fresh
        before = stop
    fixes: tuple[dict[str, object], ...] = tuple(
        {"code": each.fix.code, "parameters": each.fix.parameters} for each in last if each.fix
    )
    return Verdict(tuple(alarms), tuple(alarm_of(each, stood) for each in last), fixes=fixes)


def _narrowed(film: Film, judge: Judge, fresh: set[str], stretch: range) -> list[Alarm]:
    """Find the step within a stretch at which each new alarm first stood."""
    alarms: list[Alarm] = []
    waiting, show = set(fresh), Show(film)
    for at in stretch:
        now = [each for each in serious(judge(show.until(at))) if each.name in waiting]
        alarms += [alarm_of(each, film.frames[at - 1][0].step) for each in now]
        waiting -= {each.name for each in now}
        if not waiting:
            break
    return alarms


def serious(found: tuple[RunFinding, ...]) -> tuple[RunFinding, ...]:
    """Leave out what is told for information."""
    return tuple(each for each in found if each.severity != "info")


def alarm_of(found: RunFinding, step: int) -> Alarm:
    """Return a finding as an alarm raised at a step."""
    return Alarm(frozenset({found.name}), step, found.severity == "critical", found.layers)
