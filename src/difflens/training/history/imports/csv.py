"""CSV: a row per step and a column per name; or step, layer, norm; or what `export` wrote."""

from __future__ import annotations

import csv as text
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from difflens.core.errors import RunError
from difflens.core.escape import for_terminal

from ...records.runs import RUN_SCHEMA, Layer, Note, RunInfo
from ..exported import TIMES, column_from
from ..foreign import (
    MOST_COLUMNS,
    STEPS,
    WALL_TIMES,
    Column,
    Gathered,
    Lines,
    column_of,
    is_parameter,
    number_of,
    step_of,
)
from ..format import trouble_with
from ..frame import Frame, is_any_recorded, no_layers, no_scalars
from . import importer

if TYPE_CHECKING:
    from .. import FrameSource

_LONGEST_CELL = 1 << 17


def _recognise(path: Path, head: bytes) -> bool:
    """Is there a first line of names with a step among them?"""
    if path.suffix.lower() in (".csv", ".tsv"):
        return not path.is_dir()
    if not head or head.lstrip()[:1] in (b"{", b"[") or b"\0" in head:
        return False
    names = _split(head.splitlines()[0].decode("utf-8-sig", "replace"))
    return len(names) > 1 and bool({*names} & {*STEPS})


def _split(line: str) -> list[str]:
    return [cell.strip(' "') for cell in line.strip().split("\t" if "\t" in line else ",")]


@importer(recognise=_recognise)
def csv(path: Path) -> FrameSource:
    """CSV: step and a column per layer or scalar; or step, layer, norm."""
    rows = _Rows(path)
    names = rows.names()
    if tuple(names[: len(TIMES)]) == TIMES:
        return _Exported(path, rows, names)
    gathered = Gathered(path, "CSV")
    step = next((name for name in STEPS if name in names), None)
    if step is None:
        raise RunError(path, "no column says the step", hint=f"call one of them {STEPS[0]}")
    if {"layer", "norm"} <= {*names}:
        _long(rows, names, step, gathered)
    else:
        _wide(rows, names, step, gathered)
    return gathered.finish()


class _Rows:
    """Rows of cells; an error names its line."""

    def __init__(self, path: Path) -> None:
        self.path, self.lines = path, Lines(path)
        self._columns = 0

    def names(self) -> list[str]:
        """Return the first row."""
        self._rows = _cells(self.path, self.lines)
        names = next(self._rows, [])
        if len({*names}) < len(names) or len(names) > MOST_COLUMNS:
            raise RunError(self.path, "line 1: two columns have one name, or there are too many")
        self._columns = len(names)
        return names

    def rest(self) -> Iterator[list[str]]:
        """Yield the rows below the first; one cut short at the end is being written."""
        for cells in self._rows:
            if len(cells) == self._columns:
                yield cells
            elif cells and self.lines.whole:
                reason = f"{len(cells)} cells under {self._columns} names"
                raise RunError(self.path, f"line {self.lines.number}: {reason}")


def _cells(path: Path, lines: Lines) -> Iterator[list[str]]:
    """Yield rows; no method, which would know its owner: a file is closed when that is let go."""
    rest = iter(lines)
    first = next(rest, "")
    delimiter = "\t" if "\t" in first and "," not in first else ","
    before = text.field_size_limit(_LONGEST_CELL)
    try:
        yield from text.reader(_chained(first, rest), delimiter=delimiter, strict=True)
    except text.Error as error:
        reason = f"line {lines.number}: {for_terminal(str(error))}"
        raise RunError(path, reason) from error
    finally:
        text.field_size_limit(before)


def _chained(first: str, rest: Iterable[str]) -> Iterator[str]:
    yield first
    yield from rest


def _long(rows: _Rows, names: list[str], step: str, gathered: Gathered) -> None:
    at = [names.index(each) for each in (step, "layer", "norm")]
    for cells in rows.rest():
        where, layer, norm = (cells[place] for place in at)
        value = number_of(norm)
        if value is None:
            gathered.refuse(layer)
            continue
        gathered.add(_step(where, rows), ("grad_l2", layer), value)


def _wide(rows: _Rows, names: list[str], step: str, gathered: Gathered) -> None:
    place = names.index(step)
    wall = next((names.index(each) for each in WALL_TIMES if each in names), None)
    columns = {i: _column(name) for i, name in enumerate(names) if i not in (place, wall) and name}
    for cells in rows.rest():
        number = _step(cells[place], rows)
        time = None if wall is None else number_of(cells[wall])
        for i, column in columns.items():
            value = number_of(cells[i])
            if value is not None:
                gathered.add(number, column, value, time)
            elif cells[i].strip():
                gathered.refuse(names[i])


def _column(name: str) -> Column:
    column = column_of(name)
    return ("grad_l2", name) if not column[0] and is_parameter(name) else column


def _step(cell: str, rows: _Rows) -> int:
    return step_of(cell, rows.path, f"line {rows.lines.number}")


class _Exported:
    """What `export --to csv` wrote: a row per frame, read as it streams."""

    def __init__(self, path: Path, rows: _Rows, names: list[str]) -> None:
        self.path, self._rows = path, rows
        columns = [column_from(name) for name in names[len(TIMES) :]]
        fields = tuple(dict.fromkeys(field for field, _ in columns if field is not None))
        layers = tuple(dict.fromkeys(name for field, name in columns if field is not None))
        scalars = tuple(name for field, name in columns if field is None)
        self.info = RunInfo(
            name=path.stem,
            schema=RUN_SCHEMA,  # rows may have no layers
            layers=tuple(map(Layer, layers)),
            fields=fields,
            scalars=scalars,
            facts={"imported": "CSV of difflens"},
        )
        wanted: list[tuple[str | None, str]] = [(None, each) for each in scalars]
        wanted += [(field, layer) for field in fields for layer in layers]
        if columns != wanted or trouble_with(self.info):
            raise RunError(path, "line 1: the columns are not those of an exported run")
        self.notes: list[Note] = [Note("imported", "read from an exported CSV")]
        self.damage: list[str] = []
        self.tail_bytes = 0

    def layout(self) -> RunInfo:
        """Return what all frames hold together."""
        return self.info

    def frames(self) -> Iterator[Frame]:
        """Yield a frame per row."""
        shape = len(self.info.fields), len(self.info.layers)
        first = len(TIMES) + len(self.info.scalars)
        for cells in self._rows.rest():
            scalars, layers = no_scalars(len(self.info.scalars)), no_layers(*shape)
            self._fill(cells[len(TIMES) : first], scalars)
            self._fill(cells[first:], layers.reshape(-1))
            where = f"line {self._rows.lines.number}"
            sequence, step = (step_of(each, self.path, where) for each in cells[:2])
            if sequence < 0:
                raise RunError(self.path, f"{where}: a sequence below zero")
            times = [self._number(each) for each in cells[2:4]]
            read = is_any_recorded(layers)
            yield Frame(sequence, step, times[0], times[1], scalars, layers, read)

    def _fill(self, cells: list[str], values: np.ndarray) -> None:
        if "" not in cells:
            try:
                with np.errstate(over="ignore"):
                    values[:] = cells
            except ValueError:
                pass
            else:
                return
        for i, cell in enumerate(cells):
            if cell:
                values[i] = self._number(cell)

    def _number(self, cell: str) -> float:
        value = number_of(cell)
        if value is None:
            reason = f"line {self._rows.lines.number}: {for_terminal(cell, 40)!r} is no number"
            raise RunError(self.path, reason)
        return value

    def close(self) -> None:
        """Hold no file: it is closed when its last line was read."""
