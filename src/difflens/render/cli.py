"""Text for the terminal: a line a difference, then the totals, then the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from ..escape import for_terminal
from ..records import Report, Totals, View
from . import renderer
from .answers import LONGEST_SENTENCE, answer, finding_line, gap_line, opening
from .colors import Paint, painter
from .counts import counts
from .findings import MOST_FINDINGS, findings
from .folding import Text
from .numbers import plural
from .told import told
from .unassessed import unassessed

_LONGEST_VALUE = 60


@renderer(suffix=".txt")
def cli(report: Report, view: View) -> str:
    """One line a tensor that differs; folds by block above 40 lines."""
    paint = painter(view.color)
    body = _review(report, paint) if view.review else _differences(report, view, paint)
    texts = [
        *filter(None, [paint(opening(report.analyses), "verdict")]),
        *body,
        paint(counts(report), "totals"),
        paint(for_terminal(report.verdict.sentence, LONGEST_SENTENCE), "verdict"),
    ]
    return "\n".join(texts) + "\n"


def _differences(report: Report, view: View, paint: Paint) -> Iterator[str]:
    texts = told(report, view)
    yield from (_painted(text, paint) for text in texts.differing)
    yield from _metadata(report, paint)
    yield from (answer(envelope, paint) for envelope in report.analyses)
    yield from (_painted(text, paint) for text in texts.uncompared)
    yield from _unseen(report.totals, paint)


def _review(report: Report, paint: Paint) -> Iterator[str]:
    """Yield the findings that matter most, then what was not checked."""
    found = findings(report)
    yield f"findings: {len(found) or 'none'}"
    yield from (finding_line(each, paint) for each in found[:MOST_FINDINGS])
    if len(found) > MOST_FINDINGS:
        yield f"{plural(len(found) - MOST_FINDINGS, 'further finding')}: -o json"
    gaps = unassessed(report)
    yield f"not checked: {len(gaps) or 'nothing that was asked for'}"
    yield from (gap_line(each, paint) for each in gaps)


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
