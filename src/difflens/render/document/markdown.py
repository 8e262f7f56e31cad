"""A result on versions as Markdown for a pull request, below 64 KB whatever the store."""

from __future__ import annotations

from collections.abc import Iterator

from difflens.core.records import View

from .cutting import Part as Cut
from .cutting import fitted
from .document import Document, Line, Name, Part
from .inert import code, prose, row, table
from .numbers import plural

MOST_BYTES = 65_000  # GitHub takes 65,536 characters
_LONGEST = 1000
_SHARE = 12_000


def markdown(document: Document, view: View) -> str:  # noqa: ARG001  one signature for all
    """Write it: the verdict first, then the parts; what few need is folded."""
    head = [
        f"### difflens {prose(document.title, _LONGEST)}",
        "",
        prose(document.opening, _LONGEST),
    ]
    if document.verdict:
        head += ["", f"**{document.word}:** {prose(document.verdict, _LONGEST)}"]
    parts = [Cut(head), *(cut for part in document.parts for cut in _parts(part))]
    if document.warnings:
        lines = [f"- {prose(each, _LONGEST)}" for each in document.warnings]
        parts.append(Cut(["#### Warnings", ""], lines, share=2_000))
    parts.append(Cut([f"<sub>{prose(document.footer, _LONGEST)}</sub>"]))
    return fitted(parts, MOST_BYTES)


def _parts(part: Part) -> Iterator[Cut]:
    if not part.lines and not part.table:
        return
    title = prose(part.title)
    head = [f"<details><summary>{title}</summary>"] if part.folded else [f"#### {title}"]
    tail = ["", "</details>"] if part.folded else []
    if part.table:
        head += ["", *table(map(prose, part.table.heads))]
        rows = [_row(cells) for cells in part.table.rows]
        left_out = part.table.left_out
        note = ["", f"{plural(left_out, 'further line')}: `-o json`."] if left_out else []
        yield Cut(head, rows, [*note, *([] if part.lines else tail)], share=_SHARE)
        if part.lines:
            yield Cut([], [_line(line) for line in part.lines], tail, share=_SHARE)
    else:
        yield Cut([*head, ""], [_line(line) for line in part.lines], tail, share=_SHARE)


def _row(cells: tuple[str, ...]) -> str:
    return row(
        code(cell) if isinstance(cell, Name) and cell else prose(cell, 400) for cell in cells
    )


def _line(line: Line) -> str:
    strong = "**" if line.sign in {"-", "!"} and line.subject else ""
    subject = f"{strong}{prose(line.subject, _LONGEST)}{strong}: " if line.subject else ""
    return f"- {subject}{prose(line.text, _LONGEST)}"
