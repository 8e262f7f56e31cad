"""Text for the terminal: colours, tables that keep to its width, and whole documents.

A number is never cut: without its end it is another number. Where room is short, columns with
nothing in them go, names are shortened, words and heads folded, then what consists of several
numbers; where that is not enough, the columns go on below, each time beside the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from difflens.core.escape import for_terminal
from difflens.core.records import View
from difflens.core.terminal import display_width, fitted_names, flush, folded

from .numbers import plural

if TYPE_CHECKING:
    from .document import Document, Line, Part, Table

Paint = Callable[[str, str], str]

_CODES = {
    "+": "32",
    "-": "31",
    "~": "33",
    "!": "35",
    "?": "35",
    ">": "36",
    "=": "36",
    "*": "36",
    "alarm": "1;31",
    "totals": "2",
    "verdict": "1",
}


def painter(color: bool) -> Paint:
    r"""Return a function `(text, what) -> text`; without colour it changes nothing.

    >>> painter(True)("+ a", "+"), painter(False)("+ a", "+")
    ('\x1b[32m+ a\x1b[0m', '+ a')
    """
    return _painted if color else _checked


def _painted(text: str, what: str) -> str:
    return f"\x1b[{_CODES[what]}m{text}\x1b[0m" if text else ""


def _checked(text: str, what: str) -> str:  # noqa: ARG001  one signature for both
    return text


Kind = Literal["name", "number", "words", "value"]
_LEAST_NAME, _LEAST_WORDS, _LONGEST_WORD = 16, 10, 30
_GAP = 2
_STAGES: tuple[tuple[Kind, ...], ...] = ((), ("words",), ("words", "number"))  # what is folded


class Column(NamedTuple):
    """Cells under a head, which may be empty; a value stays on one line."""

    head: str
    cells: Sequence[str]
    kind: Kind = "words"
    right: bool = False  # flush right


class _Fitted(NamedTuple):
    """A column as wide as it is shown; each cell is its lines."""

    width: int
    head: list[str]
    cells: list[list[str]]
    right: bool


def table_lines(columns: Sequence[Column], room: int | None = None) -> Iterator[str]:
    """Write the rows, under their heads where there are any; `room` is the cells there are."""
    shown = [
        column._replace(head=for_terminal(column.head), cells=list(map(for_terminal, column.cells)))
        for column in columns
    ]
    if room is not None and _total(_wanted(shown)) > room:
        shown = [shown[0], *(column for column in shown[1:] if any(column.cells))]
    fitted = list(map(_fitted, shown, _widths(shown, room)))
    for place, block in enumerate(_blocks(fitted, room)):
        if place:
            yield ""
        yield from _written(block)


def _widths(columns: Sequence[Column], room: int | None) -> list[int]:
    """Return each column the width it wants, or take from the widest until all have room."""
    widths = wanted = _wanted(columns)
    if room is None:
        return wanted
    for may_fold in _STAGES:
        widths = _shrunk(widths, [_least(each, may_fold) for each in columns], room)
        if _total(widths) <= room:
            return widths
    # They will not stand side by side: then each has more room than it would have had there.
    first = min(wanted[0], max(room // 3, _least(columns[0], _STAGES[-1])))
    rest = room - first - _GAP
    return [first, *(_alone(each, rest) for each in columns[1:])]


def _alone(column: Column, room: int) -> int:
    """Return the width of a column that has the whole room beside the first one."""
    unfolded = max(map(display_width, column.cells), default=0)
    return max(_least(column, _STAGES[-1]), min(unfolded, room))


def _wanted(columns: Sequence[Column]) -> list[int]:
    return [max(map(display_width, (each.head, *each.cells))) for each in columns]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _shrunk(wanted: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    widths = list(wanted)
    over = _total(widths) - room
    while over > 0:
        spare = [i for i, width in enumerate(widths) if width > least[i]]
        if not spare:
            break
        widths[max(spare, key=widths.__getitem__)] -= 1
        over -= 1
    return widths


def _least(column: Column, may_fold: Sequence[Kind]) -> int:
    """Say how narrow it may get: heads fold always, and no word is torn but a very long one."""
    head = _longest_word([column.head])
    if column.kind == "name":
        return max(head, _LEAST_NAME)
    if column.kind not in may_fold:
        return max([head, *map(display_width, column.cells)])
    word = _longest_word(column.cells)
    if column.kind == "words":
        return max(head, _LEAST_WORDS, min(word, _LONGEST_WORD))
    return max(head, word)


def _longest_word(texts: Sequence[str]) -> int:
    words = (word for text in texts for word in text.split(" "))
    return max(map(display_width, words), default=0)


def _fitted(column: Column, width: int) -> _Fitted:
    if column.kind == "name":
        cells = [[name] for name in fitted_names(column.cells, width)]
    else:
        cells = [folded(cell, width) for cell in column.cells]
    head = folded(column.head, width) if column.head else []
    return _Fitted(width, head, cells, column.right)


def _blocks(columns: Sequence[_Fitted], room: int | None) -> Iterator[list[_Fitted]]:
    """Yield the columns that stand side by side; the first one stands before all of them."""
    first, *rest = columns
    block, used = [first], first.width
    for column in rest:
        if room is not None and used + _GAP + column.width > room and len(block) > 1:
            yield block
            block, used = [first], first.width
        block.append(column)
        used += _GAP + column.width
    yield block


def _written(block: Sequence[_Fitted]) -> Iterator[str]:
    height = max(len(column.head) for column in block)
    for line in range(height):
        # Heads stand on their column: what is short begins further down.
        heads = [
            column.head[line - height + len(column.head)]
            if line >= height - len(column.head)
            else ""
            for column in block
        ]
        yield _row(heads, block)
    for cells in zip(*(column.cells for column in block), strict=True):
        for line in range(max(map(len, cells))):
            yield _row([cell[line] if line < len(cell) else "" for cell in cells], block)


def _row(cells: Sequence[str], block: Sequence[_Fitted]) -> str:
    return (
        (" " * _GAP)
        .join(
            flush(cell, column.width, right=column.right)
            for cell, column in zip(cells, block, strict=True)
        )
        .rstrip()
    )


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
    from .document import is_number  # a diff is no document, and shows tables all the same

    columns = [
        Column(head, cells, _kind(cells), right=all(map(is_number, cells)))
        for head, *cells in zip(table.heads, *table.rows, strict=True)
    ]
    yield from table_lines(columns, room)
    if table.left_out:
        yield f"{plural(table.left_out, 'further line')}: -o json"


def _kind(cells: list[str]) -> Kind:
    from .document import Name, is_number

    if any(isinstance(cell, Name) for cell in cells):
        return "words" if any(", " in cell for cell in cells) else "name"  # a list of them folds
    if all(map(is_number, cells)):
        return "number"
    return "value" if any(cell.startswith("[") for cell in cells) else "words"
