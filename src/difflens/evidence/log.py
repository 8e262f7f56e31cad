"""Training logs: the trainer_state.json of Hugging Face, or a table with step and columns."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..escape import for_terminal
from ..evidences import Log
from .documents import Limits, broken, json_value, kind_of, number, text
from .points import Columns, is_number, step_of, value_of
from .tables import Row, rows


class State(NamedTuple):
    """A log, and the step at which it was saved where it says so."""

    log: Log
    step: int | None


def log(path: str | Path, limits: Limits = None) -> State:
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
    return State(_table(path, entries), None if step is None else _whole(step, path))


def _whole(step: Any, path: str) -> int:
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
