"""A result on versions as text for the terminal: who, the parts, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterator

from ...escape import for_terminal
from ...records import View
from ...terminal import folded
from ..colors import Paint, painter
from ..columns import Column, Kind, table_lines
from ..numbers import plural
from .document import Document, Line, Name, Part, Table, is_number

_LONGEST_LINE = 1000
_INDENT = "  "
_MOODS = {"good": "+", "bad": "-", "open": "~", "plain": "verdict"}


def text(document: Document, view: View) -> str:
    """Write it; the first line says who, the last what came of it."""
    paint = painter(view.color)
    room = view.width if view.fitted else None
    said = [paint(each, "verdict") for each in _sentence(document.opening, room)]
    for part in document.parts:
        if not part.folded or view.verbose:
            said += ["", *_part(part, paint, room and room - len(_INDENT))]
    if document.verdict:
        mood = _MOODS[document.mood]
        said += ["", *(paint(each, mood) for each in _sentence(document.verdict, room))]
    return "\n".join(said).rstrip("\n") + "\n"


def _sentence(said: str, room: int | None) -> list[str]:
    """Fold a sentence where there is a width; what goes on stands further in."""
    harmless = for_terminal(said, _LONGEST_LINE)
    if room is None:
        return [harmless]
    first, *rest = folded(harmless, room - len(_INDENT))
    further = " " * (len(first) - len(first.lstrip(" "))) + _INDENT
    return [first, *(further + each for each in rest)]


def _part(part: Part, paint: Paint, room: int | None) -> Iterator[str]:
    if not part.lines and not part.table:
        return
    yield paint(f"{part.title}:", "totals")
    if part.table:
        yield from (f"{_INDENT}{each}".rstrip() for each in _table(part.table, room))
    for line in part.lines:
        yield from (f"{_INDENT}{each}" for each in _line(line, paint, room))


def _line(line: Line, paint: Paint, room: int | None) -> list[str]:
    subject = for_terminal(line.subject, _LONGEST_LINE)
    who = " ".join(filter(None, (line.sign, f"{subject}:" if subject else "")))
    said = for_terminal(line.text, _LONGEST_LINE)
    first, *rest = _sentence(" ".join(filter(None, (who, said))), room)
    if line.sign:
        shown = who if first.startswith(who) else first
        first = paint(shown, line.sign) + first[len(shown) :]
    return [first, *rest]


def _table(table: Table, room: int | None) -> Iterator[str]:
    columns = [
        Column(head, cells, _kind(cells), right=all(map(is_number, cells)))
        for head, *cells in zip(table.heads, *table.rows, strict=True)
    ]
    yield from table_lines(columns, room)
    if table.left_out:
        yield f"{plural(table.left_out, 'further line')}: -o json"


def _kind(cells: list[str]) -> Kind:
    if any(isinstance(cell, Name) for cell in cells):
        return "words" if any(", " in cell for cell in cells) else "name"  # a list of them folds
    if all(map(is_number, cells)):
        return "number"
    return "value" if any(cell.startswith("[") for cell in cells) else "words"
