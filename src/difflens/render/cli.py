"""Text for the terminal: a line a difference, then the totals, then the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ..escape import for_terminal
from ..records import Report, Row, Totals, View
from . import renderer
from .answers import LONGEST_SENTENCE, answer, opening
from .colors import Paint, painter
from .folding import Text, folded, plain
from .lines import Line, lines
from .numbers import count, plural, scientific
from .rows import is_renamed, is_told

_MOST_LINES = 40
_MOST_RENAMES = 3
_LONGEST_VALUE = 60
_KINDS = ("changed", "recast", "reshaped", "added", "removed", "tied", "uncompared",
          "within_epsilon", "identical", "paired")  # fmt: skip
_WORDS = {"uncompared": "not compared", "within_epsilon": "within epsilon"}


@renderer(suffix=".txt")
def cli(report: Report, view: View) -> str:
    """One line a tensor that differs; folds by block above 40 lines."""
    paint = painter(view.color)
    told = list(_lines(report, view))
    texts = [
        *filter(None, [paint(opening(report.analyses), "verdict")]),
        *_written((line for line in told if line.sign != "?"), view, paint),
        *_metadata(report, paint),
        *(answer(envelope, paint) for envelope in report.analyses),
        *_written((line for line in told if line.sign == "?"), view, paint),
        *_unseen(report.totals, paint),
        paint(_totals(report), "totals"),
        paint(for_terminal(report.verdict.sentence, LONGEST_SENTENCE), "verdict"),
    ]
    return "\n".join(texts) + "\n"


def _lines(report: Report, view: View) -> Iterator[Line]:
    told = [row for row in report.tensors if is_told(row)]
    rules = Counter(row.how for row in told if is_renamed(row) and row.how.startswith("prefix"))
    many = {how for how, number in rules.items() if number > _MOST_RENAMES and not view.verbose}
    said: set[str] = set()
    for row in told:
        if row.how in many and row.how not in said and is_renamed(row):
            said.add(row.how)
            yield _rule(row, rules[row.how])
        yield from lines(row, stats=view.stats, renames=row.how not in many)


def _rule(row: Row, number: int) -> Line:
    names = tuple(side.name for side in (row.left, row.right) if side)
    return Line(">", names, f"and {number - 1} more ({for_terminal(row.how)})")


def _written(told: Iterable[Line], view: View, paint: Paint) -> list[str]:
    told = list(told)
    folds = len(told) > _MOST_LINES and not view.verbose and not view.stats
    return [_painted(text, paint) for text in (folded(told) if folds else map(plain, told))]


def _painted(text: Text, paint: Paint) -> str:
    joint = " " if text.sign == ">" else ": "
    who = paint(f"{text.sign} {text.subject}", text.sign)
    return f"{who}{joint}{text.detail}{paint(text.alarm, 'alarm')}"


def _metadata(report: Report, paint: Paint) -> Iterator[str]:
    for change in report.metadata:
        who = paint(f"* metadata {for_terminal(change.key)}", "*")
        yield f"{who}: {_value(change.left)} -> {_value(change.right)}"


def _value(value: str | None) -> str:
    return "absent" if value is None else f'"{for_terminal(value, _LONGEST_VALUE)}"'


def _unseen(totals: Totals, paint: Paint) -> Iterator[str]:
    if totals.paired:
        who = paint(f"? {plural(totals.paired, 'tensor')}", "?")
        yield f"{who}: values not compared: only names, shapes and dtypes were read"


def _totals(report: Report) -> str:
    totals = report.totals
    counts = [
        f"{getattr(totals, kind)} {_WORDS.get(kind, kind)}"
        for kind in _KINDS
        if getattr(totals, kind)
    ]
    parts = [": ".join(filter(None, (plural(totals.tensors, "tensor"), ", ".join(counts))))]
    if totals.renamed:
        parts.append(f"{totals.renamed} renamed")
    shown = _parameters(report)
    parts.append(f"{shown} parameter{'' if shown == '1' else 's'}")
    if totals.relative_l2 is not None and (totals.changed or totals.recast):
        median = totals.median_relative_l2
        beside = "" if median is None else f" (median {scientific(median)})"
        parts.append(f"relative_l2 {scientific(totals.relative_l2)}{beside}")
    if report.warnings:
        parts.append(plural(len(report.warnings), "warning"))
    return "; ".join(parts)


def _parameters(report: Report) -> str:
    sides = [report.left.parameter_count, report.right.parameter_count]
    return " -> ".join(dict.fromkeys(map(count, sides)))
