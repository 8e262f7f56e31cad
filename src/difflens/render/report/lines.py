"""What differs as lines of text: one per tensor, or one per family of tensors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import inf, isfinite
from typing import NamedTuple

from difflens.core.escape import for_terminal
from difflens.core.records import Figures, Pair, Report, Row, View

from ..document.numbers import before_after, brackets, percent, scientific
from .rows import (
    became_zero,
    has_changed_values,
    is_different,
    is_from_zero,
    is_renamed,
    mark,
    nonfinite,
    nonfinite_appeared,
    statistics,
)


class Line(NamedTuple):
    """`SIGN NAMES: HEAD, FIGURES, TAIL ALARM`; lines that share head and tail may fold.

    A folded line has no figures of its own, so they are written only where they are shown.
    """

    sign: str
    names: tuple[str, ...]
    head: str = ""
    figures: Callable[[], str] | None = None
    tail: str = ""
    relative_l2: float | None = None
    alarm: str = ""
    mark: str = ""  # before figures that are estimates


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
    known = row.figures or Figures()
    tail = "from all zeros" if is_from_zero(row) else _left_out(row)
    figures = partial(_distances, known)
    return Line("~", (row.name,), "", figures, tail, known.relative_l2, _alarm(row))


def _distances(known: Figures) -> str:
    return (
        f"relative_l2={scientific(known.relative_l2)} max_abs={scientific(known.max_abs)} "
        f"changed={percent(known.changed_fraction)}"
    )


def _estimated(row: Row, head: str = "") -> Line:
    """Write what fingerprints say: no element was looked at."""
    relative = row.figures.relative_l2 if row.figures else None
    sign, alarm = "!" if head else "~", _alarm(row)
    if relative is None:
        tail = "from all zeros" if is_from_zero(row) else "relative_l2 unknown"
        return Line(sign, (row.name,), head, tail=row.skipped or tail, alarm=alarm)
    figures = partial(f"relative_l2={mark(row)}{{}}".format, scientific(relative))
    tail = f"±{percent(_error(row))}"
    return Line(sign, (row.name,), head, figures, tail, relative, alarm, mark(row))


def _error(row: Row) -> float:
    """Return the error of an estimate, no smaller than people care about."""
    return max(row.estimated_error or 0.0, 0.001)


def _left_out(row: Row) -> str:
    """Say how many values have no distance, where no alarm says so: NaN and infinity went away."""
    left, right = nonfinite(row)
    return f"not finite: {left} -> {right}, in no distance" if left >= max(right, 1) else ""


def _stats(row: Row) -> Line:
    return Line("~", (row.name,), "", partial(_moves, row), alarm=_alarm(row))


def _moves(row: Row) -> str:
    left = statistics(row.left, row.left_stats)
    right = statistics(row.right, row.right_stats)
    moves = [f"{name}={before_after(left[name], right[name])}" for name in ("mean", "std")]
    return ", ".join(moves)


def _recast(row: Row) -> Line:
    known = row.figures
    head = _dtypes(row)
    if row.estimated_error is not None:
        return _estimated(row, head)
    if known is None:
        return Line("!", (row.name,), head)
    if known.changed_count == 0:
        return Line("!", (row.name,), head, tail="values equal", alarm=_alarm(row))
    relative = known.relative_l2
    tail = "within storage rounding" if known.within_storage_rounding else ""
    figures = partial("relative_l2={}".format, scientific(relative))
    return Line("!", (row.name,), head, figures, tail, relative, _alarm(row))


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
    figures = line.figures() if line.figures else ""
    return Text(line.sign, subject, joined(line.head, figures, line.tail), line.alarm)


class _Family:
    """Lines that are alike up to numbers in their names; a million of them take no more room."""

    def __init__(self, first: Line) -> None:
        self._first = first
        self._count = self._unknown = 0
        self._nearest, self._farthest = inf, -inf
        numbers = (_INTEGER.findall(name) for name in first.names)
        self._columns = [[_Column() for _ in each] for each in numbers]

    def add(self, line: Line, parts: list[list[str]]) -> None:
        """Add a line of this family, whose names were split at their numbers."""
        self._count += 1
        for columns, name in zip(self._columns, parts, strict=True):
            for column, number in zip(columns, name[1::2], strict=True):
                column.add(number)
        distance = line.relative_l2
        if distance is None or not isfinite(distance):
            self._unknown += 1
        else:
            self._nearest = min(distance, self._nearest)
            self._farthest = max(distance, self._farthest)

    def text(self) -> Text:
        """Write the lines as one; a line alone is written as it is."""
        if self._count == 1:
            return unfolded(self._first)
        sign, names, head, figures, tail, *_ = self._first
        shown = " -> ".join(map(for_terminal, map(self._pattern, names, self._columns)))
        between = self._range() if figures else ""
        return Text(sign, f"{shown} ({self._count})", joined(head, between, tail))

    @staticmethod
    def _pattern(name: str, columns: list[_Column]) -> str:
        parts = _INTEGER.split(name)
        parts[1::2] = map(str, columns)
        return "".join(parts)

    def _range(self) -> str:
        is_known = self._unknown < self._count
        ends = map(scientific, (self._nearest, self._farthest)) if is_known else ["unknown"]
        text = f"relative_l2 {self._first.mark}{'..'.join(dict.fromkeys(ends))}"
        return f"{text} ({self._unknown} unknown)" if is_known and self._unknown else text


class _Column:
    """The numbers in one place of the names of a family, as runs: 0 to 999,999 is one run."""

    def __init__(self) -> None:
        self._runs: set[tuple[str, str]] = set()
        self._begin = self._last = self._next = ""

    def add(self, number: str) -> None:
        """Add a number as it is written."""
        if number == self._next:
            self._last = number
        elif number != self._last:
            self._close()
            self._begin = self._last = number
        else:
            return
        self._next = _after(number)

    def __str__(self) -> str:
        """Write the number, or all of them between braces."""
        self._close()
        if len(self._runs) == 1:
            spans = list(self._runs)
        else:  # runs that overlap, or that follow each other
            spans = _spans({each for run in self._runs for each in _members(run)})
        if len(spans) == 1 and spans[0][0] == spans[0][1]:
            return spans[0][0]
        written = [_written_span(*span) for span in spans]
        if len(written) > _MOST_SPANS:
            written = [*written[: _MOST_SPANS // 2], "...", written[-1]]
        return f"{{{','.join(written)}}}"

    def _close(self) -> None:
        if self._begin:
            self._runs.add((self._begin, self._last))


def _after(number: str) -> str:
    """Return the next number, as it is written behind this one."""
    return str(int(number) + 1).zfill(len(number))


def _members(run: tuple[str, str]) -> Iterator[str]:
    first, last = run
    return (str(each).zfill(len(first)) for each in range(int(first), int(last) + 1))


def _spans(numbers: set[str]) -> list[tuple[str, str]]:
    spans: list[tuple[str, str]] = []
    for text in sorted(numbers, key=lambda text: (int(text), text)):
        if spans and int(text) == int(spans[-1][1]) + 1:
            spans[-1] = spans[-1][0], text
        else:
            spans.append((text, text))
    return spans


def _written_span(first: str, last: str) -> str:
    if first == last:
        return first
    return f"{first}{',' if int(last) == int(first) + 1 else '..'}{last}"


_MOST_LINES = 40
_MOST_RENAMES = 3


class Differences(NamedTuple):
    """Texts of what differs, and of what could not be compared."""

    differing: list[Text]
    uncompared: list[Text]


def differences(report: Report, view: View) -> Differences:
    """Write what differs; above 40 lines those that are alike up to a number are one."""
    found = Found(view, report.tensors)
    for row in report.tensors:
        found.add(row)
    return found.texts()


class Found:
    """What differs, row after row: no row is kept that shares its line with others.

    `pairs` are those of all rows, or the rows: they say how many were renamed by one rule.
    """

    def __init__(self, view: View, pairs: Iterable[Pair | Row]) -> None:
        """Begin without a row."""
        self._view, self._pairs = view, pairs
        self._rules: Counter[str] = Counter()
        self._said: set[str] = set()
        self._differing, self._uncompared = _Texts(view), _Texts(view)

    def add(self, row: Row) -> None:
        """Add the next row."""
        if is_different(row):
            for line in self._lines(row):
                (self._uncompared if line.sign == "?" else self._differing).add(line)

    def texts(self) -> Differences:
        """Return what there is to say of all of them."""
        return Differences(self._differing.all(), self._uncompared.all())

    def _lines(self, row: Row) -> Iterator[Line]:
        rules, view = self._rules, self._view
        if not rules and _has_other_prefix(row):  # most models need no look at all pairs
            rules.update(each.how for each in self._pairs if _has_other_prefix(each))
        is_told = rules[row.how] > _MOST_RENAMES and not view.verbose
        if is_told and row.how not in self._said and is_renamed(row):
            self._said.add(row.how)
            yield _rule(row, rules[row.how])
        yield from lines(row, stats=view.stats, renames=not is_told)


def _has_other_prefix(each: Pair | Row) -> bool:
    if not (each.how.startswith("prefix") and each.left and each.right):
        return False
    return each.left.name != each.right.name


def _rule(row: Row, number: int) -> Line:
    names = tuple(side.name for side in (row.left, row.right) if side)
    return Line(">", names, f"and {number - 1} more ({for_terminal(row.how)})")


class _Texts:
    """Lines as they are while they are few; families of them once they are many."""

    def __init__(self, view: View) -> None:
        self._may_fold = not view.verbose and not view.stats
        self._few: list[Line] = []
        self._families: dict[object, _Family] = {}

    def add(self, line: Line) -> None:
        """Add a line."""
        if self._families:
            self._fold(line)
            return
        self._few.append(line)
        if self._may_fold and len(self._few) > _MOST_LINES:
            for each in self._few:
                self._fold(each)

    def all(self) -> list[Text]:
        """Return the texts, each family where its first member stood."""
        if self._families:
            return [family.text() for family in self._families.values()]
        return list(map(unfolded, self._few))

    def _fold(self, line: Line) -> None:
        parts = [_INTEGER.split(name) for name in line.names]
        pattern = tuple(["\0".join(name[::2]) for name in parts])
        key: object = (line.sign, line.head, line.tail, line.figures is None, pattern)
        if line.alarm:
            key = len(self._families)
        family = self._families.get(key) or self._families.setdefault(key, _Family(line))
        family.add(line, parts)
