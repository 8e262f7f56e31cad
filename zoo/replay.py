"""Replays a recorded run and asks the diagnoses at every few steps, as a monitor would.

Asking at every step was not taken: an alarm is looked for at coarse steps, then step by step
within the stretch in which it appeared, which finds the same step at a tenth of the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from difflens.history import open_run
from difflens.history.building import Builder

from .verdicts import Alarm, Verdict

if TYPE_CHECKING:
    from difflens.history.frame import Frame
    from difflens.history.history import History
    from difflens.runs import Note, RunFinding, RunInfo

EVERY = 10
Judge = Callable[["History"], "tuple[RunFinding, ...]"]


def diagnosed(history: History) -> tuple[RunFinding, ...]:
    """Ask the diagnoses of difflens."""
    from difflens.diagnoses import diagnose

    return diagnose(history).findings


class _Film:
    """The frames of a run with what was in force when each was written."""

    def __init__(self, folder: Path) -> None:
        source = open_run(folder)
        self.first_info: RunInfo = source.info
        self.frames: list[tuple[Frame, RunInfo, int]] = []
        for frame in source.frames():
            self.frames.append((frame, source.info, len(source.notes)))
        self.notes: list[Note] = list(source.notes)
        source.close()

    def __len__(self) -> int:
        return len(self.frames)


class _Show:
    """A history that grows along a film."""

    def __init__(self, film: _Film) -> None:
        self._film, self._builder, self.at = film, Builder(film.first_info), 0
        self._noted = 0

    def until(self, stop: int) -> History:
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
    """Give what is said while the run goes on, and what is said of it last.

    That is what stands at the end; where nothing does any more, what stood last: who was warned
    has been told a remedy, and a warning that is withdrawn does not take it back.
    """
    film = _Film(folder)
    show, known, alarms = _Show(film), set[str](), list[Alarm]()
    last: tuple[RunFinding, ...] = ()
    before = stood = 0
    for stop in [*range(every, len(film), every), len(film)]:
        found = _serious(judge(show.until(stop)))
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
    return Verdict(tuple(alarms), tuple(_alarm(each, stood) for each in last), fixes=fixes)


def _narrowed(film: _Film, judge: Judge, fresh: set[str], stretch: range) -> list[Alarm]:
    """Find the step within a stretch at which each new alarm first stood."""
    alarms: list[Alarm] = []
    waiting, show = set(fresh), _Show(film)
    for at in stretch:
        now = [each for each in _serious(judge(show.until(at))) if each.name in waiting]
        alarms += [_alarm(each, at - 1) for each in now]
        waiting -= {each.name for each in now}
        if not waiting:
            break
    return alarms


def _serious(found: tuple[RunFinding, ...]) -> tuple[RunFinding, ...]:
    return tuple(each for each in found if each.severity != "info")


def _alarm(found: RunFinding, step: int) -> Alarm:
    return Alarm(frozenset({found.name}), step, found.severity == "critical", found.layers)
