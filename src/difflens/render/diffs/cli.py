"""Text for the terminal: findings, a line per difference, analyses, totals, the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from difflens.core.escape import for_terminal
from difflens.core.findings import Finding
from difflens.core.records import MetadataChange, Pair, Report, Row, Totals, View

from ..document.numbers import plural
from ..document.text import Paint, painter
from ..report.answers import LONGEST_SENTENCE, answer, finding_line, gap_line, opening
from ..report.counts import counts
from ..report.findings import MOST_FINDINGS, broken, findings, ranked, unassessed
from ..report.lines import Differences, Found, Text
from ..report.state import shown_metadata, shown_state, state_line
from . import renderer

_LONGEST_VALUE = 60
_MINOR = ("low", "info")  # severities that are counted, not listed


class Follower:
    """Takes the rows of a report one after the other, and writes its text without them."""

    def __init__(self, view: View, pairs: Iterable[Pair | Row]) -> None:
        """Begin without a row; `pairs` are those of all rows to come."""
        self._view = view
        self._found = Found(view, pairs)
        self._broken: list[Finding] = []

    def add(self, row: Row) -> None:
        """Take the next row."""
        self._found.add(row)
        finding = broken(row)
        if finding:
            self._broken.append(finding)

    def text(self, report: Report) -> str:
        """Write the report of these rows."""
        paint = painter(self._view.color)
        every = ranked(report, self._broken)
        tensors = _differences(self._found.texts(), report, self._view, paint)
        return _text(
            report, _blocks(report, list(_findings(every, paint)), list(tensors), paint), paint
        )


@renderer(suffix=".txt", follower=Follower)
def cli(report: Report, view: View) -> str:
    """One line a tensor that differs; folds by block above 40 lines."""
    if view.review:
        paint = painter(view.color)
        return _text(report, _review(report, paint), paint)
    follower = Follower(view, report.tensors)
    for row in report.tensors:
        follower.add(row)
    return follower.text(report)


def _text(report: Report, body: Iterable[str], paint: Paint) -> str:
    """Write the body between the sentence that tells the change and the verdict."""
    texts = [
        *filter(None, [paint(opening(report.analyses), "verdict")]),
        *body,
        *_commits(report),
        paint(counts(report), "totals"),
        paint(for_terminal(report.verdict.sentence, LONGEST_SENTENCE), "verdict"),
    ]
    return "\n".join(texts) + "\n"


def _commits(report: Report) -> Iterator[str]:
    """Say which commit of a hub was compared: the user named a branch, and branches move."""
    for side, model in (("left", report.left), ("right", report.right)):
        if model.path.startswith("hf://"):
            yield f"{side}: {for_terminal(model.path)}"


def _blocks(report: Report, found: list[str], tensors: list[str], paint: Paint) -> list[str]:
    """Put findings, tensors and answers under their headings; tensors alone need none."""
    blocks = [
        ("Findings", found),
        ("Tensors", tensors),
        ("Analyses", [answer(envelope, paint) for envelope in report.analyses]),
    ]
    if not any(lines for title, lines in blocks if title != "Tensors"):
        return tensors
    texts = []
    for title, lines in blocks:
        if lines:
            texts += ["", paint(f"{title}:", "totals"), *lines]
    return [*(texts if opening(report.analyses) else texts[1:]), ""]


def _findings(every: list[Finding], paint: Paint) -> Iterator[str]:
    """Yield the worst finding of each tensor, and how many there are beside them."""
    worst: dict[str, Finding] = {}
    for place, each in enumerate(every):
        if each.severity not in _MINOR:
            worst.setdefault(each.subject or str(place), each)
    shown = list(worst.values())[:MOST_FINDINGS]
    if not shown:
        return
    yield from (finding_line(each, paint) for each in shown)
    if len(every) > len(shown):
        yield f"{plural(len(every) - len(shown), 'further finding')}: -o json"


def _differences(texts: Differences, report: Report, view: View, paint: Paint) -> Iterator[str]:
    yield from (_painted(text, paint) for text in texts.differing)
    for part in shown_state(report, view):
        kind, text = state_line(part).split(": ", 1)
        yield f"{paint(f'* state {kind}', '*')}: {text}"
    yield from _metadata(shown_metadata(report, view), paint)
    yield from (_painted(text, paint) for text in texts.uncompared)
    yield from _unseen(report.totals, paint)


def _review(report: Report, paint: Paint) -> Iterator[str]:
    """Yield the findings that matter most, then what was not checked."""
    every = findings(report)
    yield f"findings: {len(every) or 'none'}"
    yield from (finding_line(each, paint) for each in every[:MOST_FINDINGS])
    if len(every) > MOST_FINDINGS:
        yield f"{plural(len(every) - MOST_FINDINGS, 'further finding')}: -o json"
    gaps = unassessed(report)
    yield f"not checked: {len(gaps) or 'nothing that was asked for'}"
    yield from (gap_line(each, paint) for each in gaps)


def _painted(text: Text, paint: Paint) -> str:
    joint = " " if text.sign == ">" else ": "
    who = paint(f"{text.sign} {text.subject}", text.sign)
    return f"{who}{joint}{text.detail}{paint(text.alarm, 'alarm')}"


def _metadata(changes: Iterable[MetadataChange], paint: Paint) -> Iterator[str]:
    for change in changes:
        if change.kind != "metadata":
            who = paint(f"* {change.kind}", "alarm")
            yield f"{who} {for_terminal(change.text, LONGEST_SENTENCE)}"
            continue
        who = paint(f"* metadata {for_terminal(change.key)}", "*")
        yield f"{who}: {_value(change.left)} -> {_value(change.right)}"


def _value(value: str | None) -> str:
    return "absent" if value is None else f'"{for_terminal(value, _LONGEST_VALUE)}"'


def _unseen(totals: Totals, paint: Paint) -> Iterator[str]:
    if totals.paired:
        who = paint(f"? {plural(totals.paired, 'tensor')}", "?")
        yield f"{who}: values not compared: only names, shapes and dtypes were read"
