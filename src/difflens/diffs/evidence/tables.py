"""Tables as users hand them in: CSV, JSON lines, or a JSON list of objects; told by content."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

from difflens.core.addresses import Location
from difflens.core.escape import for_terminal

from .documents import Limits, broken, json_value, kind_of, number, text, twice_in


class Row(NamedTuple):
    """One row: where it stands, and its cells by column; all text where it is `written` as CSV."""

    path: str
    place: str
    cells: dict[str, Any]
    written: bool = False
    header: str = ""  # where the columns are named, if that is another place

    def where(self, column: str) -> str:
        """Say where a cell stands."""
        return f"{self.place}, column '{for_terminal(column, 80)}'"

    def is_empty(self, column: str) -> bool:
        """Is there nothing in that cell?"""
        cell = self.cells.get(column)
        return cell is None or (type(cell) is str and not cell.strip())

    def number(self, column: str) -> float:
        """Return the finite number in a cell."""
        cell = self.cells.get(column)
        return number(cell, self.path, self.where(column), written=self.written)

    def label(self, column: str) -> str:
        """Return the text in a cell; a whole number is a label too."""
        cell = self.cells.get(column)
        if self.is_empty(column):
            raise broken(self.path, f"{self.where(column)}: nothing where text is wanted")
        if type(cell) not in (str, int):
            raise broken(self.path, f"{self.where(column)}: {kind_of(cell)} where text is wanted")
        return str(cell).strip()

    def label_or_none(self, column: str) -> str | None:
        """Return the text in a cell, None if it is empty."""
        return None if self.is_empty(column) else self.label(column)


def rows(
    path: str | Location,
    limits: Limits = None,
    *,
    required: tuple[str, ...] = (),
    optional: tuple[str, ...] | None = None,
    lenient: bool = False,
) -> Iterator[Row]:
    """Yield the rows of a table.

    `optional` are the other columns it may have; None allows any. `lenient` lets bare NaN pass in
    JSON, for logs.
    """
    whole = text(path, limits)
    first = whole.lstrip()[0]
    if first == "{":
        found = _from_lines(str(path), whole, limits, lenient=lenient)
    elif first == "[":
        found = _from_list(str(path), whole, limits, lenient=lenient)
    else:
        found = _from_csv(str(path), whole)
    empty = True
    for row in found:
        empty = False
        _check_columns(row, required, optional)
        yield row
    if empty:
        raise broken(path, "it has a header and no row" if first not in "{[" else "it has no row")


def _from_csv(path: str, whole: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(whole, newline=""), strict=True)
    header: list[str] = []
    top = ""
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header, top = _header(path, cells, reader.line_num), f"line {reader.line_num}"
                continue
            if len(cells) != len(header):
                said = f"line {reader.line_num} has {len(cells)} cells, the header has"
                raise broken(path, f"{said} {len(header)}")
            named = dict(zip(header, cells, strict=True))
            yield Row(path, f"line {reader.line_num}", named, True, top)
    except csv.Error as error:
        said = str(error).removesuffix(" - do you need to open the file with newline=''?")
        raise broken(path, f"line {reader.line_num}: not CSV: {for_terminal(said)}") from error


def _header(path: str, cells: list[str], line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    twice = twice_in(filter(None, names))
    if twice:
        raise broken(path, f"line {line}: the column '{for_terminal(twice, 80)}' stands twice")
    if "" in names:
        raise broken(path, f"line {line}: a column has no name")
    return names


def _from_lines(path: str, whole: str, limits: Limits, *, lenient: bool) -> Iterator[Row]:
    for line, written in enumerate(whole.split("\n"), 1):
        if written.strip():
            hint = "JSON lines are wanted: one object a line"
            found = json_value(path, written, limits, lenient=lenient, line=line, hint=hint)
            yield _row(path, f"line {line}", found)


def _from_list(path: str, whole: str, limits: Limits, *, lenient: bool) -> Iterator[Row]:
    for place, found in enumerate(json_value(path, whole, limits, lenient=lenient), 1):
        yield _row(path, f"entry {place}", found)


def _row(path: str, place: str, found: Any) -> Row:
    if type(found) is not dict:
        raise broken(path, f"{place}: {kind_of(found)} where an object is wanted")
    return Row(path, place, found)


def _check_columns(row: Row, required: tuple[str, ...], optional: tuple[str, ...] | None) -> None:
    cells = row.cells
    missing = [name for name in required if name not in cells]
    strange = []
    if optional is not None and len(cells) > len(required) - len(missing):
        strange = [name for name in cells if name not in required and name not in optional]
    if not missing and not strange:
        return
    said = (
        f"there is no column '{missing[0]}'"
        if missing
        else (f"the column '{for_terminal(strange[0], 80)}' is not known")
    )
    may = f", and may be {', '.join(optional)}" if optional else ""
    raise broken(
        row.path, f"{row.header or row.place}: {said}", f"wanted are {', '.join(required)}{may}"
    )
