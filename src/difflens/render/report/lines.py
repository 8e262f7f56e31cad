"""What differs as lines of text: one per tensor, or one per family of tensors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from math import isfinite
from typing import NamedTuple

from difflens.core.escape import for_terminal
from difflens.core.records import Report, Row, View

from ..document.numbers import before_after, brackets, percent, scientific
from .rows import (
    became_zero,
    figures,
    has_changed_values,
    is_different,
    is_from_zero,
    is_renamed,
    nonfinite,
    nonfinite_appeared,
    statistics,
)

_ESTIMATED = "relative_l2=~"


class Line(NamedTuple):
    """`SIGN NAMES: HEAD, FIGURES, TAIL ALARM`; lines that share head and tail may fold."""

    sign: str
    names: tuple[str, ...]
    head: str = ""
    figures: str = ""
    tail: str = ""
    relative_l2: float | None = None
    alarm: str = ""


def joined(*parts: str) -> str:
    """Put the parts that say something behind each other."""
    return ", ".join(filter(None, parts))


def lines(row: Row, *, stats: bool, renames: bool) -> Iterator[Line]:
    """Yield what there is to say of a row; `renames` is off where one line tells them all."""
    if renames and is_renamed(row) and row.left and row.right:
        names = (row.left.name, row.right.name)
        yield Line(">", names, f"({for_terminal(row.how)})")
    if row.kind == "changed":
        yield _stats(row) if stats else _changed(row)
    elif row.kind == "recast":
        yield _recast(row)
        if stats and (has_changed_values(row) or row.estimated_error is not None):
            yield _stats(row)
    elif row.kind == "reshaped":
        yield _reshaped(row)
    elif row.kind in {"added", "removed"}:
        yield _one_sided(row)
    elif row.kind == "tied":
        yield Line("=", (row.name,), for_terminal(row.how))
    elif row.kind == "uncompared":
        yield Line("?", (row.name,), f"not compared: {for_terminal(row.skipped or 'unknown')}")


def _changed(row: Row) -> Line:
    if row.estimated_error is not None:
        return _estimated(row)
    found = figures(row)
    relative = found["relative_l2"]
    text = (
        f"relative_l2={scientific(relative)} max_abs={scientific(found['max_abs'])} "
        f"changed={percent(found['changed_fraction'])}"
    )
    tail = "from all zeros" if is_from_zero(row) else _left_out(row)
    return Line("~", (row.name,), "", text, tail, relative, _alarm(row))


def _estimated(row: Row, head: str = "") -> Line:
    """Write what fingerprints say: no element was looked at."""
    found = figures(row)
    relative = found["relative_l2"]
    sign, alarm = "!" if head else "~", _alarm(row)
    if relative is None:
        tail = "from all zeros" if is_from_zero(row) else "relative_l2 unknown"
        return Line(sign, (row.name,), head, tail=row.skipped or tail, alarm=alarm)
    text = f"{_ESTIMATED}{scientific(relative)}"
    return Line(sign, (row.name,), head, text, f"±{percent(_error(row))}", relative, alarm)


def _error(row: Row) -> float:
    """Return the error of an estimate, no smaller than people care about."""
    return max(row.estimated_error or 0.0, 0.001)


def _left_out(row: Row) -> str:
    """Say how many values have no distance, where no alarm says so: NaN and infinity went away."""
    left, right = nonfinite(row)
    return f"not finite: {left} -> {right}, in no distance" if left >= max(right, 1) else ""


def _stats(row: Row) -> Line:
    left = statistics(row.left, row.left_stats)
    right = statistics(row.right, row.right_stats)
    moves = [f"{name}={before_after(left[name], right[name])}" for name in ("mean", "std")]
    return Line("~", (row.name,), "", ", ".join(moves), alarm=_alarm(row))


def _recast(row: Row) -> Line:
    found = figures(row)
    head = _dtypes(row)
    if row.estimated_error is not None:
        return _estimated(row, head)
    if row.figures is None:
        return Line("!", (row.name,), head)
    if found["changed_count"] == 0:
        return Line("!", (row.name,), head, tail="values equal", alarm=_alarm(row))
    relative = found["relative_l2"]
    tail = "within storage rounding" if found["within_storage_rounding"] else ""
    text = f"relative_l2={scientific(relative)}"
    return Line("!", (row.name,), head, text, tail, relative, _alarm(row))


def _reshaped(row: Row) -> Line:
    shapes = [brackets(side.shape) for side in (row.left, row.right) if side]
    return Line("!", (row.name,), joined(f"shape={' -> '.join(shapes)}", _dtypes(row)))


def _one_sided(row: Row) -> Line:
    info = row.right or row.left
    text = f"{for_terminal(info.dtype)} {brackets(info.shape)}" if info else ""
    return Line("+" if row.kind == "added" else "-", (row.name,), text, alarm=_alarm(row))


def _dtypes(row: Row) -> str:
    dtypes = [for_terminal(side.dtype) for side in (row.left, row.right) if side]
    return f"dtype={' -> '.join(dtypes)}" if len(set(dtypes)) > 1 else ""


def _alarm(row: Row) -> str:
    grown = nonfinite_appeared(row)
    if grown:
        return f" NON-FINITE: {grown[0]} -> {grown[1]}"
    return " ALL ZERO NOW" if became_zero(row) else ""


# Longer runs of digits are hashes, not indices; and int() refuses very long ones.
_INTEGER = re.compile(r"(?<![0-9])([0-9]{1,9})(?![0-9])")
_MOST_SPANS = 8


class Text(NamedTuple):
    """A line ready to be painted: who, what, and what must stand out."""

    sign: str
    subject: str
    detail: str
    alarm: str = ""


def unfolded(line: Line) -> Text:
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
    return [_together(each) if len(each) > 1 else unfolded(each[0]) for each in families.values()]


def _together(lines: list[Line]) -> Text:
    first = lines[0]
    names = [_pattern([line.names[slot] for line in lines]) for slot in range(len(first.names))]
    subject = f"{' -> '.join(map(for_terminal, names))} ({len(lines)})"
    is_estimated = first.figures.startswith(_ESTIMATED)
    between = _range([line.relative_l2 for line in lines], "~" if is_estimated else "")
    between = between if first.figures else ""
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


def _range(values: list[float | None], before: str) -> str:
    known = [value for value in values if value is not None and isfinite(value)]
    ends = [scientific(end) for end in (min(known), max(known))] if known else ["unknown"]
    text = f"relative_l2 {before}{'..'.join(dict.fromkeys(ends))}"
    missing = len(values) - len(known)
    return f"{text} ({missing} unknown)" if known and missing else text


_MOST_LINES = 40
_MOST_RENAMES = 3


class Differences(NamedTuple):
    """Texts of what differs, and of what could not be compared."""

    differing: list[Text]
    uncompared: list[Text]


def differences(report: Report, view: View) -> Differences:
    """Write what differs; above 40 lines those that are alike up to a number are one."""
    every = list(_lines(report, view))
    return Differences(
        _written((line for line in every if line.sign != "?"), view),
        _written((line for line in every if line.sign == "?"), view),
    )


def _lines(report: Report, view: View) -> Iterator[Line]:
    rows = [row for row in report.tensors if is_different(row)]
    rules = Counter(row.how for row in rows if is_renamed(row) and row.how.startswith("prefix"))
    many = {how for how, number in rules.items() if number > _MOST_RENAMES and not view.verbose}
    said: set[str] = set()
    for row in rows:
        if row.how in many and row.how not in said and is_renamed(row):
            said.add(row.how)
            yield _rule(row, rules[row.how])
        yield from lines(row, stats=view.stats, renames=row.how not in many)


def _rule(row: Row, number: int) -> Line:
    names = tuple(side.name for side in (row.left, row.right) if side)
    return Line(">", names, f"and {number - 1} more ({for_terminal(row.how)})")


def _written(found: Iterable[Line], view: View) -> list[Text]:
    found = list(found)
    folds = len(found) > _MOST_LINES and not view.verbose and not view.stats
    return folded(found) if folds else list(map(unfolded, found))
