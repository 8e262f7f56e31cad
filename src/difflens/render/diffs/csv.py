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


def pieces(report: Report, view: View) -> Iterator[str]:
    """Yield the table, a line at a time."""
    # A dict for its order: a measure nobody listed here gets its column after the listed ones.
    extra = (key for row in _shown(report, view) for key in _extra_columns(row))
    names = list(dict.fromkeys([*FIGURES, *extra]))
    line = _Line()
    write = writer(line, lineterminator="\r\n").writerow
    write([*COLUMNS, *map(for_csv, names)])
    yield line.text
    for row in _shown(report, view):
        write([*_identity(row), *_figures(row, names)])
        yield line.text


@renderer(suffix=".csv", pieces=pieces)
def csv(report: Report, view: View) -> str:
    """One line a tensor that differs (with verbose: every tensor), one column a figure."""
    return "".join(pieces(report, view))


def _shown(report: Report, view: View) -> Iterator[Row]:
    return (row for row in report.tensors if view.verbose or is_different(row))


def _extra_columns(row: Row) -> Iterator[str]:
    """Name what else was measured and fits a cell; a structure is for JSON."""
    found = figures(row).items()
    return (key for key, value in found if key not in FIGURES and not isinstance(value, dict))


class _Line:
    r"""The last line, ending in \n; csv quotes a lone \r in a name only if \r ends lines too."""

    text = ""

    def write(self, line: str) -> None:
        self.text = f"{line[:-2]}\n"


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
