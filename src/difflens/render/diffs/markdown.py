"""Markdown for a pull request: the most important first, and never more than it takes."""

from __future__ import annotations

from collections.abc import Iterator

from difflens.core.escape import for_terminal
from difflens.core.findings import Envelope, Finding
from difflens.core.records import ModelInfo, Report, View

from ..document.cutting import Part, fitted
from ..document.inert import code, prose, row, table
from ..document.numbers import count, plural, size
from ..report.answers import LONGEST_SENTENCE, opening
from ..report.counts import counts
from ..report.fields import Grid, fields
from ..report.findings import MOST_FINDINGS, Gap, findings, shown_evidence, unassessed
from ..report.lines import Text, differences
from . import renderer

MOST_BYTES = 65_000  # GitHub takes 65,536 characters
_OPEN_LINES = 15
_LONGEST_VALUE = 120
_KINDS = {
    "~": "changed",
    "!": "structure",
    "+": "added",
    "-": "removed",
    ">": "renamed",
    "=": "tied",
    "?": "not compared",
}


@renderer(suffix=".md")
def markdown(report: Report, view: View) -> str:
    """For a pull request: verdict, findings, what changed; below 64 KB whatever the model."""
    parts = [_head(report), _findings(report, view)]
    if not view.review:
        parts += [*_changes(report, view), _state(report), *_analyses(report)]
    parts.append(_unchecked(report))
    if not view.review:
        parts.append(_metadata(report))
    parts += [_listed("Warnings", report.warnings), _evidence(report), _foot(report)]
    return fitted([part for part in parts if part.head or part.lines], MOST_BYTES)


def _head(report: Report) -> Part:
    sentence = for_terminal(report.verdict.sentence, LONGEST_SENTENCE)
    said = opening(report.analyses)
    sides = [("left", report.left), ("right", report.right)]
    return Part(
        [
            f"### difflens: {report.verdict.word.replace('_', ' ')}",
            "",
            f"**Verdict:** {prose(sentence, len(sentence))}",
            *(["", f"**Change:** {prose(said, len(said))}"] if said else []),
            "",
            *table(("", "model", "format", "tensors", "parameters", "size")),
            *(_side(which, model) for which, model in sides),
            "",
            f"**Totals:** {prose(counts(report))}",
        ]
    )


def _side(which: str, model: ModelInfo) -> str:
    sizes = (f"{model.tensor_count:,}", count(model.parameter_count), size(model.size_bytes))
    return row((which, code(model.path), code(model.format), *sizes))


def _findings(report: Report, view: View) -> Part:
    found = findings(report)
    shown = found[:MOST_FINDINGS] if view.review else found
    if not shown:
        asked = "of the analyses that were asked for" if report.analyses else ": no analysis ran"
        return Part(["#### Findings", "", f"None{' ' if report.analyses else ''}{asked}."])
    more = len(found) - len(shown)
    head = [f"#### Findings ({len(found)})", "", *table(_FINDING_HEADS)]
    tail = ["", f"{plural(more, 'further finding')}: `-o json`."] if more else []
    return Part(head, [_finding(each) for each in shown], tail, share=16_000)


_FINDING_HEADS = ("severity", "tensor", "finding", "evidence", "analysis")


def _finding(finding: Finding) -> str:
    subject = code(finding.subject) if finding.subject else "the whole model"
    shown = shown_evidence(finding)
    severity = finding.severity
    return row(
        (
            f"**{severity}**" if severity in {"critical", "high"} else severity,
            subject,
            prose(finding.text, 400),
            prose(shown, 400),
            code(finding.name) if finding.name else "",
        )
    )


def _changes(report: Report, view: View) -> Iterator[Part]:
    """Yield the first lines open and the others folded away."""
    texts = [each for group in differences(report, view) for each in group]
    if not texts:
        settings = any(change.kind != "metadata" for change in report.metadata)
        yield Part(["#### What changed", "", "No tensor." if settings else "Nothing."])
        return
    first, rest = texts[:_OPEN_LINES], texts[_OPEN_LINES:]
    head = ["#### What changed", "", *table(("", "tensor", ""))]
    yield Part(head, [_change(each) for each in first], share=8_000)
    if rest:
        opened = _opened(f"{len(rest):,} more lines", ("", "tensor", ""))
        yield Part(opened, [_change(each) for each in rest], _CLOSED, share=12_000)


def _state(report: Report) -> Part:
    """List the state of the training run, which is not among the tensors."""
    lines = [row((each.kind, code(each.name), prose(each.text, 400))) for each in report.state]
    head = ["#### State beside the weights", "", *table(("kind", "name", ""))]
    return Part(head, lines, share=4_000) if lines else Part([])


def _change(text: Text) -> str:
    alarm = f" **{prose(text.alarm)}**" if text.alarm else ""
    who = code(text.subject, len(text.subject))
    return row((_KINDS[text.sign], who, f"{code(text.detail, len(text.detail))}{alarm}"))


def _analyses(report: Report) -> Iterator[Part]:
    if report.analyses:
        yield Part(["#### Analyses"])
    for envelope in report.analyses:
        yield _analysis(envelope, 16_000 // len(report.analyses))


def _analysis(envelope: Envelope, share: int) -> Part:
    title = f"{_word_characters(envelope.name)}: {envelope.status.replace('_', ' ')}"
    lines = []
    grids: list[tuple[str, Grid]] = []
    for field in fields(envelope):
        if field.grid:
            grids.append((field.names[0], field.grid))
            shown = f"{plural(len(field.grid.rows), 'line')} below"
        else:
            shown = prose(field.text)
        lines.append(
            row((", ".join(map(code, field.names)), shown, prose(field.sure or field.reason)))
        )
    for name, grid in grids:
        heads = [prose(head) for head in grid.heads]
        lines += ["", f"{code(name)}:", "", *table(heads)]
        lines += [row(map(prose, cells)) for cells in grid.rows]
        lines += ["", prose(grid.left_out)] if grid.left_out else []
    return Part(_opened(title, ("field", "value", "how sure, or why not")), lines, _CLOSED, share)


def _unchecked(report: Report) -> Part:
    gaps = unassessed(report)
    if not gaps:
        return Part(["#### Not checked", "", "Nothing that was asked for was left unchecked."])
    return Part(["#### Not checked", ""], [_gap(gap) for gap in gaps], share=6_000)


def _gap(gap: Gap) -> str:
    names = ", ".join(map(code, gap.fields))
    needs = f"not assessed (needs {prose(gap.needs, 200)})" if gap.needs else "not assessed"
    why = f": {prose(gap.why, _LONGEST_VALUE)}" if gap.why else ""
    return f"- {prose(gap.subject, 200)}: {' '.join(filter(None, (names, needs)))}{why}"


def _metadata(report: Report) -> Part:
    lines = [
        row((code(each.key), *map(_value, (each.left, each.right)))) for each in report.metadata
    ]
    heads = ("key", "left", "right")
    opened = _opened(f"Metadata: {plural(len(lines), 'key')} changed", heads)
    return Part(opened, lines, _CLOSED, share=4_000) if lines else Part([])


def _value(value: str | None) -> str:
    return "absent" if value is None else code(value, _LONGEST_VALUE)


def _listed(title: str, texts: tuple[str, ...]) -> Part:
    lines = [f"- {prose(text, 400)}" for text in texts]
    return Part([f"#### {title}", ""], lines, share=2_000) if lines else Part([])


def _evidence(report: Report) -> Part:
    lines = [f"- {code(what)}: {code(where)}" for what, where in report.evidence.items()]
    none = "None beside the two models."
    return Part(["#### Evidence used", "", *([] if lines else [none])], lines, share=2_000)


def _foot(report: Report) -> Part:
    epsilon = f"epsilon {report.epsilon:g}" if report.epsilon else "bit for bit"
    version = f"difflens {report.difflens}".strip()
    return Part([f"<sub>{code(version)}, compared {epsilon}</sub>"])


def _opened(title: str, heads: tuple[str, ...]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *table(heads)]


_CLOSED = ["", "</details>"]


def _word_characters(name: str) -> str:
    """Keep letters, digits and underscores: a summary is HTML, where no code span helps."""
    return "".join(each if each.isascii() and each.isalnum() else "_" for each in name[:80])
