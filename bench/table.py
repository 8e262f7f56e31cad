"""Shows the results: a table for people, one for docs/benchmarks.md, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .cases import Row

_HEADS = ("what", "difflens", "other", "figure", "bar", "met")


def text(rows: Iterable[Row]) -> str:
    """Align the rows in columns."""
    lines = [("name", *_HEADS), *((row.name, *_cells(row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_line(line, widths) for line in lines)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    named = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
    counted = [cell.rjust(width) for cell, width in zip(cells[2:-1], widths[2:-1], strict=True)]
    return "  ".join([*named, *counted, cells[-1]]).rstrip()


def markdown(rows: Iterable[Row], about: dict[str, Any]) -> str:
    """Write the table of docs/benchmarks.md."""
    where = f"{about['cpu']}, {about['cores']} cores, Python {about['python']}, {about['kernel']}"
    lines = [
        "| " + " | ".join(_HEADS) + " |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
        *("| " + " | ".join(_cells(row)) + " |" for row in rows),
        "",
        f"Measured by `make bench` on {about['date'][:10]}: {where}.",
    ]
    return "\n".join(lines)


def as_json(rows: Iterable[Row], about: dict[str, Any]) -> str:
    """Write all there is, the single runs too."""
    found = [{**row._asdict(), "met": row.met} for row in rows]
    return json.dumps({**about, "rows": found}, indent=2) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    met = {True: "yes", False: "MISSED", None: ""}[row.met]
    return (
        row.what,
        _seconds(row.ours_seconds),
        _seconds(row.peer_seconds),
        _figure(row.figure, row.unit),
        "" if row.bar is None else _figure(row.bar, row.unit),
        f"{met} ({row.note})".strip() if row.note else met,
    )


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3f} s"


def _figure(figure: float, unit: str) -> str:
    if unit in {"modules", "requests", "files"}:
        return f"{figure:.0f}"
    digits = 0 if unit == "MB" else 4 if figure < 0.1 else 2
    return f"{figure:.{digits}f}{'' if unit in {'x', 'of 1'} else ' ' + unit}"
