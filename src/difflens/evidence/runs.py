"""A table of runs: hyper-parameters and outcomes, one run a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .documents import Limits, broken, kind_of
from .points import is_number
from .tables import Row, rows


def runs(path: str | Path, limits: Limits = None) -> tuple[dict[str, Any], ...]:
    """Read the runs; a cell is a finite number, text, true or false, or None where it is empty."""
    return tuple({column: _cell(row, column) for column in row.cells} for row in rows(path, limits))


def _cell(row: Row, column: str) -> Any:
    cell = row.cells[column]
    if row.is_empty(column):
        return None
    if type(cell) in (list, dict):
        said = f"{row.where(column)}: {kind_of(cell)} where a number or text is wanted"
        raise broken(row.path, said)
    return row.number(column) if is_number(row, column) or type(cell) is int else cell
