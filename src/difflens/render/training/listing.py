"""The layout of `runs`: a line a run, how each stands and how far it came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..document.document import Document, Line, Name, part, table
from ..document.numbers import UNKNOWN, plural, size
from ..document.values import moment, value

_HEADS = ("run", "state", "frames", "read", "steps", "last loss", "latest (UTC)", "size")


def run_list(lines: Sequence[Mapping[str, Any]], where: str) -> Document:
    """Lay out the runs of a folder; each line is what `RunLine.to_dict` gives."""
    said = plural(len(lines), "run") if lines else "no runs"
    broken = sum(bool(line["damage"]) for line in lines)
    if broken:
        said += f", {broken} with damage"
    damage = [Line(text, line["name"], sign="!") for line in lines for text in line["damage"]]
    return Document(
        "runs",
        f"runs in {where}",
        said,
        "Listed",
        "plain",
        (
            *part("Runs", rows=table(_HEADS, map(_row, lines), most=len(lines))),
            *part("Damage", damage),
        ),
    )


def _row(line: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        Name(line["name"]),
        line["state"],
        f"{line['frames']:,}",
        UNKNOWN if line["read_steps"] is None else f"{line['read_steps']:,}",
        _steps(line["first_step"], line["last_step"]),
        value(line["last_loss"]),
        moment(line["latest"]) if line["latest"] else UNKNOWN,
        size(line["size_bytes"]),
    )


def _steps(first: int | None, last: int | None) -> str:
    if first is None or last is None:
        return UNKNOWN
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"
