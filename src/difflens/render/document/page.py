"""A document as one page that needs nothing but a browser, and the templates of all pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from difflens.core.escape import for_terminal
from difflens.core.records import View

from .document import Document, Line, Name, Part, Table, is_number

if TYPE_CHECKING:
    from jinja2 import Environment

_LONGEST = 1000
_LONGEST_LABEL = 24


def templates() -> Environment:
    """Open the room's templates: values are escaped, a missing value is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    room = Environment(
        loader=PackageLoader("difflens", "render/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    room.filters |= {"shown": _shown, "brief": _brief}
    return room


def _shown(text: str) -> str:
    return for_terminal(text, _LONGEST)


def _brief(text: str) -> str:
    """Cut a label to what a drawing has room for; its full text is in the table."""
    shown = for_terminal(text)
    return f"{shown[:_LONGEST_LABEL]}…" if len(shown) > _LONGEST_LABEL else shown


_SIGNS = {"+": "better", "-": "worse", "~": "changed", "!": "alarm", "?": "unknown", "": ""}
_TURNS = ("+", "-")  # signs that are good or bad only without a badge


def page(document: Document, view: View) -> str:  # noqa: ARG001  one signature for all
    """Write it: the verdict, numbers in large, pictures, tables."""
    shown = document._asdict() | {"parts": list(map(_part, document.parts))}
    return templates().get_template("versions.html.jinja").render(shown) + "\n"


def _part(part: Part) -> dict[str, object]:
    return part._asdict() | {
        "lines": [_line(line) for line in part.lines],
        "table": _table(part.table) if part.table else None,
    }


def _line(line: Line) -> dict[str, str]:
    sign = _SIGNS[line.sign]
    return {
        "text": line.text,
        "subject": line.subject,
        "sign": sign,
        "badge": line.badge or sign,
        "tone": "plain" if line.badge and line.sign in _TURNS else sign,
    }


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
