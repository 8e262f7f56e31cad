"""Measurements beside a model: scores of examples, latencies, points over steps, logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any, NamedTuple

from difflens.core.addresses import Location
from difflens.core.errors import EvidenceError
from difflens.core.escape import for_terminal

from .documents import Limits, broken, json_value, kind_of, number, text
from .records import Example, Latency, Log
from .tables import Row, rows

Points = tuple[tuple[float, float], ...]


class Columns:
    """Points by column. A step that comes again, as after a restart, replaces what was there."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._points: dict[str, dict[float, float]] = {}
        self._odd: dict[str, set[float]] = {}

    def add(self, column: str, step: float, value: float) -> None:
        """Take a point; one that is no finite number is only remembered by its step."""
        here, odd = self._points.setdefault(column, {}), self._odd.setdefault(column, set())
        if isfinite(value):
            here[step] = value
            odd.discard(step)
        else:
            here.pop(step, None)
            odd.add(step)

    def points(self) -> dict[str, Points]:
        """Return the points of each column, steps ascending."""
        return {name: tuple(sorted(found.items())) for name, found in self._points.items()}

    def nonfinite(self) -> dict[str, tuple[float, ...]]:
        """Return the steps at which a column held NaN or an infinity."""
        return {name: tuple(sorted(steps)) for name, steps in self._odd.items() if steps}


def step_of(row: Row) -> float:
    """Return the step a row is about: not negative."""
    step = row.number("step")
    if step < 0:
        raise broken(row.path, f"{row.where('step')}: {step:g}, a step is not negative")
    return step


def value_of(row: Row, column: str) -> float:
    """Return a number that may be NaN or infinite: what a log honestly holds."""
    value = _float(row, column)
    return row.number(column) if value is None else value


def is_number(row: Row, column: str) -> bool:
    """Is there a number in the cell, finite or not?"""
    return _float(row, column) is not None


def _float(row: Row, column: str) -> float | None:
    cell = row.cells[column]
    if type(cell) not in ((str,) if row.written else (int, float)) or "_" in str(cell):
        return None
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return None


def evals(path: str | Location, limits: Limits = None) -> tuple[Example, ...]:
    """Read one example a row; an id stands once a metric."""
    seen: dict[tuple[str, str], str] = {}
    found = []
    for row in rows(path, limits, required=("id", "score"), optional=("cluster", "metric")):
        example = Example(
            row.label("id"),
            row.number("score"),
            row.label_or_none("metric") or "score",
            row.label_or_none("cluster"),
        )
        key = (example.id, example.metric)
        if key in seen:
            raise _twice(row, example, seen[key])
        seen[key] = row.place
        found.append(example)
    return tuple(found)


def _twice(row: Row, example: Example, before: str) -> EvidenceError:
    said = f"{row.place}: the id '{for_terminal(example.id, 80)}' of metric"
    reason = f"{said} '{for_terminal(example.metric, 80)}' stands in {before} already"
    return broken(row.path, reason, "average several samples of one example before")


_BEGINS_A_NUMBER = re.compile(r"\s*[-+.0-9]|\s*(nan|inf)", re.IGNORECASE)


def latency(path: str | Location, limits: Limits = None) -> tuple[Latency, ...]:
    """Read milliseconds, none below zero."""
    whole = text(path, limits)
    listed = _BEGINS_A_NUMBER.match(whole)
    return tuple(_lines(str(path), whole) if listed else _times(path, limits))


def _lines(path: str, whole: str) -> Iterator[Latency]:
    for line, written in enumerate(whole.splitlines(), 1):
        if written.strip():
            where = f"line {line}"
            yield Latency(_positive(number(written, path, where, written=True), path, where))


def _times(path: str | Location, limits: Limits) -> Iterator[Latency]:
    for row in rows(path, limits, required=("ms",), optional=("run",)):
        yield Latency(
            _positive(row.number("ms"), row.path, row.where("ms")), row.label_or_none("run")
        )


def _positive(ms: float, path: str, where: str) -> float:
    if ms < 0:
        raise broken(path, f"{where}: {ms} ms, a latency is not negative")
    return ms


class State(NamedTuple):
    """A log, and the step at which it was saved where it says so."""

    log: Log
    step: int | None


def log(path: str | Location, limits: Limits = None) -> State:
    """Read a training log, of whichever kind."""
    whole = text(path, limits)
    if _is_trainer_state(whole):
        return _trainer_state(str(path), whole, limits)
    return State(_table(str(path), rows(path, limits, required=("step",), lenient=True)), None)


def _is_trainer_state(whole: str) -> bool:
    """Is it one JSON object over many lines, or one that holds a history?"""
    if not whole.lstrip().startswith("{"):
        return False
    first = whole.lstrip().partition("\n")[0]
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        return True
    return type(found) is dict and "log_history" in found


def _trainer_state(path: str, whole: str, limits: Limits) -> State:
    found = json_value(path, whole, limits, lenient=True)
    history = found.get("log_history") if type(found) is dict else None
    if type(history) is not list:
        said = "it holds no list 'log_history'"
        raise broken(path, said, "a trainer_state.json, or a table with step and columns is wanted")
    entries = []
    for place, entry in enumerate(history, 1):
        if type(entry) is not dict:
            said = f"entry {place} of log_history is {kind_of(entry)}"
            raise broken(path, f"{said}, an object is wanted")
        entries.append(Row(path, f"entry {place} of log_history", entry))
    step = found.get("global_step")
    return State(_table(path, entries), None if step is None else _step_number(step, path))


def _step_number(step: Any, path: str) -> int:
    value = number(step, path, "global_step")
    if value < 0 or value != int(value):
        raise broken(path, f"global_step: {step}, a whole number is wanted")
    return int(value)


def _table(path: str, found: Iterable[Row]) -> Log:
    """Gather the columns; one without any number (a phase, a date) is left out, and named."""
    columns = Columns()
    words: dict[str, Row] = {}
    for row in found:
        step = step_of(row)
        for column in row.cells:
            if column == "step" or row.is_empty(column):
                continue
            if is_number(row, column):
                columns.add(column, step, value_of(row, column))
            else:
                words.setdefault(column, row)
    points = columns.points()
    mixed = [name for name in words if name in points]
    if mixed:
        words[mixed[0]].number(mixed[0])
    if not points:
        said = "no column beside step holds a number" if words else "it logs nothing"
        raise broken(path, said)
    left_out = tuple(for_terminal(name, 80) for name in words)
    return Log(points, str(path), columns.nonfinite(), left_out)
