"""CSV for spreadsheets and data frames: one line a tensor."""

from __future__ import annotations

from collections.abc import Iterator
from csv import writer
from math import isfinite
from typing import Any

from difflens.core.escape import for_csv
from difflens.core.records import Report, Row, View

from ..report.rows import FIGURES, figures, is_different, shown_kind
from . import renderer

COLUMNS = ("name", "kind", "left_dtype", "right_dtype", "left_shape", "right_shape")


@renderer(suffix=".csv")
def csv(report: Report, view: View) -> str:
    """One line a tensor that differs (with verbose: every tensor), one column a figure."""
    told = [row for row in report.tensors if view.verbose or is_different(row)]
    # A dict for its order: a measure nobody listed here gets its column after the listed ones.
    names = list(dict.fromkeys([*FIGURES, *(key for row in told for key in _extra_columns(row))]))
    lines = _Lines()
    write = writer(lines, lineterminator="\r\n").writerow
    write([*COLUMNS, *map(for_csv, names)])
    for row in told:
        write([*_identity(row), *_figures(row, names)])
    return "".join(lines)


def _extra_columns(row: Row) -> Iterator[str]:
    """Name what else was measured and fits a cell; a structure is for JSON."""
    found = figures(row).items()
    return (key for key, value in found if key not in FIGURES and not isinstance(value, dict))


class _Lines(list[str]):
    r"""Collects lines ending in \n; csv quotes a lone \r in a name only if \r ends lines too."""

    def write(self, line: str) -> None:
        self.append(f"{line[:-2]}\n")


def _identity(row: Row) -> list[str]:
    sides = (row.left, row.right)
    dtypes = [side.dtype if side else "" for side in sides]
    shapes = [_shape(side.shape) if side else "" for side in sides]
    return [_text(row.name), shown_kind(row), *map(_text, dtypes), *shapes]


def _figures(row: Row, names: list[str]) -> list[str]:
    found = figures(row)
    return [_cell(found.get(name)) for name in names]


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "x".join(map(str, value))
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    return for_csv(text).encode("utf-8", "backslashreplace").decode()
