"""Columns over steps, gathered row by row: what training logs and gradient records are made of."""

from __future__ import annotations

from math import isfinite

from .documents import broken
from .tables import Row

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
        """Give the points of each column, steps ascending."""
        return {name: tuple(sorted(found.items())) for name, found in self._points.items()}

    def nonfinite(self) -> dict[str, tuple[float, ...]]:
        """Give the steps at which a column held NaN or an infinity."""
        return {name: tuple(sorted(steps)) for name, steps in self._odd.items() if steps}


def step_of(row: Row) -> float:
    """Give the step a row is about: not negative."""
    step = row.number("step")
    if step < 0:
        raise broken(row.path, f"{row.where('step')}: {step:g}, a step is not negative")
    return step


def value_of(row: Row, column: str) -> float:
    """Give a number that may be NaN or infinite: what a log honestly holds."""
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
