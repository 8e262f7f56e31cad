"""A result on versions as text for the terminal: who, the parts, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterator

from ...escape import for_terminal
from ...records import View
from ..colors import Paint, painter
from ..numbers import plural
from .document import Document, Line, Part, Table, is_number

_LONGEST_LINE = 1000
_LONGEST_CELL = 60
_MOODS = {"good": "+", "bad": "-", "open": "~", "plain": "verdict"}


def text(document: Document, view: View) -> str:
    """Write it; the first line says who, the last what came of it."""
    paint = painter(view.color)
    lines = [paint(for_terminal(document.opening, _LONGEST_LINE), "verdict")]
    for part in document.parts:
        if not part.folded or view.verbose:
            lines += ["", *_part(part, paint)]
    if document.verdict:
        said = for_terminal(document.verdict, _LONGEST_LINE)
        lines += ["", paint(said, _MOODS[document.mood])]
    return "\n".join(lines).rstrip("\n") + "\n"


def _part(part: Part, paint: Paint) -> Iterator[str]:
    if not part.lines and not part.table:
        return
    yield paint(f"{part.title}:", "totals")
    if part.table:
        yield from _table(part.table)
    yield from (f"  {_line(line, paint)}" for line in part.lines)


def _line(line: Line, paint: Paint) -> str:
    said = for_terminal(line.text, _LONGEST_LINE)
    subject = for_terminal(line.subject, _LONGEST_LINE)
    who = " ".join(filter(None, (line.sign, f"{subject}:" if subject else "")))
    return " ".join(filter(None, (paint(who, line.sign) if line.sign else who, said)))


def _table(table: Table) -> Iterator[str]:
    rows = [[for_terminal(cell, _LONGEST_CELL) for cell in row] for row in table.rows]
    heads = [for_terminal(head, _LONGEST_CELL) for head in table.heads]
    columns = list(zip(heads, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(is_number(cell) for cell in column[1:]) for column in columns]
    for row in (heads, *rows):
        cells = [
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(row, widths, right, strict=True)
        ]
        yield f"  {'  '.join(cells)}".rstrip()
    if table.left_out:
        yield f"  {plural(table.left_out, 'further line')}: -o json"
