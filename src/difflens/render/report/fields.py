"""An analysis field by field, as text and small tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from difflens.core.escape import for_terminal
from difflens.core.findings import Envelope, Interval

from ..document.numbers import UNKNOWN, plural, short
from .answers import is_scalar, scalar

_MOST_CELLS = 12
_MOST_PAIRS = 5
_MOST_ROWS = 60
_MOST_COLUMNS = 8
_LONGEST_TEXT = 400
_LONGEST_CELL = 80


class Grid(NamedTuple):
    """A structure as a table: its heads, its lines, and how much of it is not shown."""

    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    left_out: str


class Field(NamedTuple):
    """One field, or several that are null for one reason: value, how sure it is, why it is null."""

    names: tuple[str, ...]
    text: str
    grid: Grid | None
    sure: str
    reason: str


def fields(envelope: Envelope) -> Iterator[Field]:
    """Yield what an analysis answers, then what it cannot; its sentence stands on top already."""
    for name, value in envelope.fields.items():
        if value is not None and name != "sentence":
            table = None if _is_line(value) else grid(value)
            sure = written_uncertainty(envelope.uncertainty.get(name))
            yield Field((for_terminal(name),), "" if table else text(value), table, sure, "")
    missing = {each.field: _reason(each.needs, each.why) for each in envelope.missing}
    reasons: dict[str, list[str]] = {}
    for name in dict.fromkeys((*envelope.fields, *missing)):
        if envelope.fields.get(name) is None:
            reasons.setdefault(missing.get(name, ""), []).append(for_terminal(name))
    for reason, names in reasons.items():
        yield Field(tuple(names), UNKNOWN, None, "", reason)


def text(value: Any) -> str:
    """Write a value on one line; what is too large is counted."""
    if value is None:
        return UNKNOWN
    if is_scalar(value):
        return for_terminal(scalar(value), _LONGEST_TEXT)
    if not value:
        return "none"
    if isinstance(value, dict) and _is_line(value):
        return ", ".join(f"{for_terminal(str(key))}: {_cell(each)}" for key, each in value.items())
    if isinstance(value, list | tuple) and all(map(_is_cell, value)):
        shown = ", ".join(map(_cell, value[:_MOST_CELLS]))
        more = len(value) - _MOST_CELLS
        return f"{shown} and {more:,} more" if more > 0 else shown
    return plural(len(value), "entry").replace("entrys", "entries")


def grid(value: Any) -> Grid | None:
    """Lay out a list of records, or a map of numbers or records; None for anything else."""
    if isinstance(value, dict) and len(value) > 1:
        if all(map(_is_cell, value.values())):
            return _cut(("", "value"), [(str(key), each) for key, each in value.items()])
        if all(isinstance(each, dict) for each in value.values()):
            heads = _heads(list(value.values()))
            lines = [(str(key), *(each.get(head) for head in heads)) for key, each in value.items()]
            return _cut(("", *heads), lines)
    if isinstance(value, list | tuple) and value and all(isinstance(each, dict) for each in value):
        heads = _heads(list(value))
        return _cut(heads, [tuple(each.get(head) for head in heads) for each in value])
    return None


def written_uncertainty(sure: Interval | str | None) -> str:
    """Write how sure a number is.

    >>> written_uncertainty(Interval(0.1, 0.25, method="bootstrap", n=40))
    '95% [0.1, 0.25], bootstrap, n=40'
    """
    if sure is None or isinstance(sure, str):
        return for_terminal(sure or "")
    ends = ", ".join(UNKNOWN if end is None else short(end) for end in (sure.low, sure.high))
    parts = [
        f"{100 * sure.level:g}% [{ends}]",
        for_terminal(sure.method),
        "" if sure.n is None else f"n={sure.n}",
    ]
    return ", ".join(filter(None, parts))


def _heads(records: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(key) for record in records for key in record))


def _cut(heads: tuple[str, ...], lines: list[tuple[Any, ...]]) -> Grid:
    parts = []
    if len(lines) > _MOST_ROWS:
        parts.append(f"{len(lines) - _MOST_ROWS:,} more lines")
    if len(heads) > _MOST_COLUMNS:
        parts.append(f"{len(heads) - _MOST_COLUMNS:,} more columns")
    shown = [tuple(map(_cell, line[:_MOST_COLUMNS])) for line in lines[:_MOST_ROWS]]
    names = tuple(for_terminal(head, _LONGEST_CELL) for head in heads[:_MOST_COLUMNS])
    return Grid(names, shown, f"{' and '.join(parts)}: -o json" if parts else "")


def _is_line(value: Any) -> bool:
    short_map = isinstance(value, dict) and len(value) <= _MOST_PAIRS
    return is_scalar(value) or (short_map and all(map(_is_cell, value.values())))


def _is_cell(value: Any) -> bool:
    return value is None or is_scalar(value)


def _cell(value: Any) -> str:
    if value is None:
        return UNKNOWN
    return for_terminal(scalar(value) if is_scalar(value) else text(value), _LONGEST_CELL)


def _reason(needs: str, why: str) -> str:
    return for_terminal(
        "; ".join(filter(None, (needs and f"not assessed (needs {needs})", why))), _LONGEST_TEXT
    )
