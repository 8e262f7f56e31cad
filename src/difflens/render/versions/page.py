"""A result on versions as one page that needs nothing but a browser; no script runs in it."""

from __future__ import annotations

from ...escape import for_terminal
from ...records import View
from ..templates import templates
from .document import Document, Line, Name, Part, Table, is_number

_LONGEST = 1000
_LONGEST_LABEL = 24
_SIGNS = {"+": "better", "-": "worse", "~": "changed", "!": "alarm", "?": "unknown", "": ""}


def page(document: Document, view: View) -> str:  # noqa: ARG001  one signature for all
    """Write it: the verdict, numbers in large, pictures, tables."""
    room = templates()
    room.filters["shown"] = _shown
    room.filters["brief"] = _brief
    shown = document._asdict() | {"parts": list(map(_part, document.parts))}
    return room.get_template("versions.html.jinja").render(shown) + "\n"


def _shown(text: str) -> str:
    return for_terminal(text, _LONGEST)


def _brief(text: str) -> str:
    """Cut a label to what a drawing has room for; its full text is in the table."""
    shown = for_terminal(text)
    return f"{shown[:_LONGEST_LABEL]}…" if len(shown) > _LONGEST_LABEL else shown


def _part(part: Part) -> dict[str, object]:
    return part._asdict() | {
        "lines": [_line(line) for line in part.lines],
        "table": _table(part.table) if part.table else None,
    }


def _line(line: Line) -> dict[str, str]:
    return {"text": line.text, "subject": line.subject, "sign": _SIGNS[line.sign]}


def _table(table: Table) -> dict[str, object]:
    columns = list(zip(*table.rows, strict=True))
    numeric = [all(map(is_number, column)) for column in columns]
    rows = [
        [
            (cell, "n" if right else "name" if isinstance(cell, Name) else "")
            for cell, right in zip(row, numeric, strict=True)
        ]
        for row in table.rows
    ]
    heads = list(zip(table.heads, numeric, strict=True))
    return {"heads": heads, "rows": rows, "left_out": table.left_out}
