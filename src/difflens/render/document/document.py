"""What every result on versions is made into before it is written: parts, lines and tables.

A result is laid out once; text, Markdown and the page are three ways to write the same layout.
Nothing is escaped here: each writer makes strings harmless for the place they go to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from difflens.core.findings import Missing

from .drawing import Drawing
from .numbers import UNKNOWN

Mood = Literal["good", "bad", "open", "plain"]
MOST_ROWS = 60


class Name(str):
    """A name as somebody chose it: of a model, a metric, a tensor, a setting."""

    __slots__ = ()


class Line(NamedTuple):
    """One sentence; `sign` says what it means for a reader in a hurry, as in a diff."""

    text: str
    subject: str = ""
    sign: Literal["+", "-", "~", "!", "?", ""] = ""
    badge: str = ""  # the word of the sign on a page, where "better" or "worse" would be wrong


class Table(NamedTuple):
    """Rows under heads; a cell is text, or a `Name`."""

    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left_out: int = 0


class Part(NamedTuple):
    """A stretch of the result under its own heading."""

    title: str
    lines: tuple[Line, ...] = ()
    table: Table | None = None
    drawings: tuple[Drawing, ...] = ()
    folded: bool = False  # of use to few: folded away where that is possible


class Document(NamedTuple):
    """A result laid out: who, what came of it, and the parts that show why."""

    title: str
    opening: str
    verdict: str
    word: str
    mood: Mood
    parts: tuple[Part, ...]
    tiles: tuple[tuple[str, str], ...] = ()  # number and what it counts, for the page
    warnings: tuple[str, ...] = ()
    footer: str = ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], most: int = MOST_ROWS) -> Table:
    """Lay out rows, the first ones where there are very many."""
    every = [tuple(row) for row in rows]
    return Table(tuple(heads), every[:most], max(0, len(every) - most))


def is_number(cell: str) -> bool:
    """Does it read as a number, to be set flush right?

    >>> is_number("0.91"), is_number("+5%"), is_number("<0.0001"), is_number("higher")
    (True, True, True, False)
    """
    if isinstance(cell, Name):
        return False
    return cell in ("", UNKNOWN) or cell[0].isdigit() or (cell[0] in "+-<" and cell[1:2].isdigit())


def part(
    title: str,
    lines: Iterable[Line] = (),
    rows: Table | None = None,
    drawings: Iterable[Drawing] = (),
    *,
    folded: bool = False,
) -> list[Part]:
    """Return the part where there is anything in it, nothing if there is not."""
    told, drawn = tuple(lines), tuple(drawings)
    filled = rows if rows is not None and rows.rows else None
    return [Part(title, told, filled, drawn, folded)] if told or filled or drawn else []


def unknown(*missing: Iterable[Missing]) -> list[Part]:
    """List what is not known, one line a reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in (each for some in missing for each in some):
        fields = reasons.setdefault((each.needs, each.why), [])
        if each.field not in fields:
            fields.append(each.field)
    lines = [
        Line(_why(needs, why), ", ".join(fields), "?") for (needs, why), fields in reasons.items()
    ]
    return part("Not known", lines)


def _why(needs: str, why: str) -> str:
    return "; ".join(filter(None, (why, f"needs {needs}" if needs else "")))
