"""Many lines as few: names that are equal up to their integers become one line.

Folding is by name alone, not by a parsed layer structure: it needs no list of
architectures, and what it did can be read off the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite
from typing import NamedTuple

from ..escape import for_terminal
from .lines import Line, joined
from .numbers import scientific

# Longer runs of digits are hashes, not indices; and int() refuses very long ones.
_INTEGER = re.compile(r"(?<![0-9])([0-9]{1,9})(?![0-9])")
_MOST_SPANS = 8


class Text(NamedTuple):
    """A line ready to be painted: who, what, and what must stand out."""

    sign: str
    subject: str
    detail: str
    alarm: str = ""


def plain(line: Line) -> Text:
    """Write one line as it is."""
    subject = " -> ".join(map(for_terminal, line.names))
    return Text(line.sign, subject, joined(line.head, line.figures, line.tail), line.alarm)


def folded(lines: Iterable[Line]) -> list[Text]:
    """Put lines of one family together, each family where its first member stood."""
    families: dict[object, list[Line]] = {}
    for number, line in enumerate(lines):
        pattern = tuple("\0".join(_INTEGER.split(name)[::2]) for name in line.names)
        family = (line.sign, line.head, line.tail, bool(line.figures), pattern)
        families.setdefault(number if line.alarm else family, []).append(line)
    return [_together(each) if len(each) > 1 else plain(each[0]) for each in families.values()]


def _together(lines: list[Line]) -> Text:
    first = lines[0]
    names = [_pattern([line.names[slot] for line in lines]) for slot in range(len(first.names))]
    subject = f"{' -> '.join(map(for_terminal, names))} ({len(lines)})"
    between = _range([line.relative_l2 for line in lines]) if first.figures else ""
    return Text(first.sign, subject, joined(first.head, between, first.tail))


def _pattern(names: list[str]) -> str:
    columns = zip(*map(_INTEGER.split, names), strict=True)
    return "".join(
        _indices(set(column)) if place % 2 else column[0] for place, column in enumerate(columns)
    )


def _indices(found: set[str]) -> str:
    if len(found) == 1:
        return next(iter(found))
    spans: list[list[str]] = []
    for text in sorted(found, key=lambda text: (int(text), text)):
        if spans and int(text) == int(spans[-1][-1]) + 1:
            spans[-1].append(text)
        else:
            spans.append([text])
    written = [f"{span[0]}..{span[-1]}" if len(span) > 2 else ",".join(span) for span in spans]
    if len(written) > _MOST_SPANS:
        written = [*written[: _MOST_SPANS // 2], "...", written[-1]]
    return f"{{{','.join(written)}}}"


def _range(values: list[float | None]) -> str:
    known = [value for value in values if value is not None and isfinite(value)]
    ends = [scientific(end) for end in (min(known), max(known))] if known else ["unknown"]
    text = f"relative_l2 {'..'.join(dict.fromkeys(ends))}"
    missing = len(values) - len(known)
    return f"{text} ({missing} unknown)" if known and missing else text
