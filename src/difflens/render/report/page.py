"""What the HTML page shows, as text and widths: the template only places it."""

from __future__ import annotations

from math import isfinite, log10
from typing import Any, NamedTuple

from difflens.core.escape import for_terminal
from difflens.core.findings import Envelope, Finding
from difflens.core.records import MetadataChange, ModelInfo, Report, Row, Totals, View

from ..document.numbers import UNKNOWN, brackets, count, percent, plural, scientific, size
from .answers import LONGEST_SENTENCE, opening
from .drawings import pictures
from .fields import fields
from .findings import MOST_FINDINGS, SERIOUS, Gap, findings, gaps, shown_evidence
from .order import by_magnitude
from .rows import (
    became_zero,
    figures,
    is_different,
    is_from_zero,
    is_renamed,
    mark,
    nonfinite_appeared,
    shown_kind,
)

MOST_ROWS = 5000
_LONGEST_VALUE = 400
_LONGEST_DTYPE = 24
_MOST_NAMES = 8
_MOST_FINDINGS = 200
# Bars run over six decades, the same in every report, so that two pages can be laid side by side.
_DECADES = 6
_WORDS = {"recast": "dtype", "reshaped": "shape", "uncompared": "not compared"}
_TILES = tuple(
    """
    changed recast reshaped added removed renamed tied uncompared within_epsilon identical
    paired
""".split()
)


class Cell(NamedTuple):
    """What a figure reads like, and what it sorts by."""

    text: str
    value: str = ""


def page(report: Report, view: View) -> dict[str, Any]:
    """Gather all the template needs."""
    told = sorted(by_magnitude(filter(is_different, report.tensors)), key=_severity)
    shown = told[:MOST_ROWS]
    found = findings(report)
    return {
        "review": view.review,
        "title": f"{_last(report.left.path)} → {_last(report.right.path)}",
        "verdict": report.verdict,
        "sentence": for_terminal(report.verdict.sentence, LONGEST_SENTENCE),
        "summary": opening(report.analyses),
        "sides": [("left", _side(report.left)), ("right", _side(report.right))],
        "tiles": _tiles(report.totals),
        "measured": _measured(report.totals),
        "worst": _finding(found[0]) if found and found[0].severity in SERIOUS else None,
        "findings": [
            _finding(each) for each in found[: MOST_FINDINGS if view.review else _MOST_FINDINGS]
        ],
        "found": len(found),
        "rows": [_row(row) for row in shown],
        "told": len(told),
        "profile": _profile(shown),
        "silent": _silent(report.totals),
        "state": [(each.kind, for_terminal(each.name), _prose(each.text)) for each in report.state],
        "metadata": [_metadata(change) for change in report.metadata],
        "analyses": [_analysis(envelope) for envelope in report.analyses],
        "gaps": [_gap(gap) for envelope in report.analyses for gap in gaps(envelope)],
        "evidence": [(_prose(what), _prose(where)) for what, where in report.evidence.items()],
        "warnings": [_prose(warning) for warning in report.warnings],
        "uncompared": _uncompared(report),
        "footer": _footer(report),
    } | pictures(report)


def _severity(row: Row) -> int:
    """Put what is broken first; the others stay in the order of their change."""
    return 0 if nonfinite_appeared(row) else 1 if became_zero(row) else 2


def _prose(text: str) -> str:
    return for_terminal(text, _LONGEST_VALUE)


def _last(path: str) -> str:
    return for_terminal(path.rstrip("/").rpartition("/")[2] or path)


def _side(model: ModelInfo) -> dict[str, Any]:
    dtypes = sorted(model.dtypes.items(), key=lambda each: (-each[1], each[0]))
    return {
        "path": _prose(model.path),
        "facts": [
            ("format", _prose(model.format)),
            ("tensors", f"{model.tensor_count:,}"),
            ("parameters", f"{count(model.parameter_count)}"),
            ("size", size(model.size_bytes)),
            ("dtypes", _prose(", ".join(f"{name} ({number:,})" for name, number in dtypes))),
        ],
    }


def _tiles(totals: Totals) -> list[tuple[str, str, str]]:
    found = [(kind, f"{getattr(totals, kind):,}") for kind in _TILES if getattr(totals, kind)]
    return [(kind, number, _word(kind)) for kind, number in found]


def _word(kind: str) -> str:
    return _WORDS.get(kind, kind.replace("_", " "))


def _measured(totals: Totals) -> list[tuple[str, str]]:
    is_part = totals.moved < totals.compared
    values = [
        ("relative L2 of what moved" if is_part else "relative L2", totals.relative_l2),
        ("relative L2 of the model", totals.whole_relative_l2 if is_part else None),
        ("median L2", totals.median_relative_l2),
    ]
    before = "" if totals.estimated_error is None else "~"
    return [(word, f"{before}{scientific(value)}") for word, value in values if value is not None]


def _row(row: Row) -> dict[str, Any]:
    found = figures(row)
    return {
        "kind": shown_kind(row),
        "word": _word(shown_kind(row)),
        "name": for_terminal(row.name),
        "note": _note(row),
        "alarm": _alarm(row),
        "shape": _sides(row, "shape"),
        "dtype": _sides(row, "dtype"),
        "bar": _width(found["relative_l2"]),
        "figures": [
            ("relative L2", _cell(found["relative_l2"], scientific, mark(row))),
            ("max abs", _cell(found["max_abs"], scientific)),
            ("changed", _cell(found["changed_fraction"], percent)),
            ("cosine", _cell(found["cosine"], _cosine, mark(row))),
        ],
    }


def _alarm(row: Row) -> str:
    grown = nonfinite_appeared(row)
    if grown:
        return f"non-finite {grown[0]:,} → {grown[1]:,}"
    return "all zero now" if became_zero(row) else ""


def _note(row: Row) -> str:
    if row.kind == "tied":
        return _prose(row.how)
    notes = []
    if is_renamed(row) and row.left:
        notes.append(f"was {for_terminal(row.left.name)} ({_prose(row.how)})")
    if row.skipped:
        notes.append(_prose(row.skipped))
    if is_from_zero(row):
        notes.append("from all zeros")
    if row.kind == "recast" and row.figures:
        found = figures(row)
        if found["changed_count"] == 0:
            notes.append("values equal")
        elif found["within_storage_rounding"]:
            notes.append("within storage rounding")
    return "; ".join(notes)


def _sides(row: Row, what: str) -> str:
    texts = [
        brackets(side.shape) if what == "shape" else for_terminal(side.dtype, _LONGEST_DTYPE)
        for side in (row.left, row.right)
        if side
    ]
    return " → ".join(dict.fromkeys(texts))


def _cell(value: Any, write: Any, before: str = "") -> Cell:
    if value is None or not isfinite(value):
        return Cell("")
    return Cell(f"{before}{write(value)}", repr(float(value)))


def _cosine(value: float) -> str:
    text = f"{value:.6f}"
    return ">0.999999" if text == "1.000000" and value < 1 else text


def _width(value: float | None) -> str:
    """Place a relative change between 1e-6 and 1 on a logarithmic scale, in percent."""
    if value is None or not isfinite(value) or value <= 0:
        return "0"
    return f"{min(max(100 + 100 * log10(value) / _DECADES, 1), 100):.1f}"


def _profile(rows: list[Row]) -> dict[str, Any] | None:
    """Draw every measured change as one thin bar, in the order of the table."""
    heights = [_width(figures(row)["relative_l2"]) for row in rows if row.figures]
    if len(heights) < 8:
        return None
    bars = "".join(f"M{x} 100V{100 - float(y):.1f}h.8V100z" for x, y in enumerate(heights))
    return {"path": bars, "count": len(heights)}


def _silent(totals: Totals) -> str:
    parts = [
        f"{getattr(totals, kind):,} {word}"
        for kind, word in (
            ("identical", "identical"),
            ("within_epsilon", "within epsilon"),
            ("paired", "with the same shape and dtype"),
        )
        if getattr(totals, kind)
    ]
    return f"Same on both sides: {', '.join(parts)}." if parts else ""


def _metadata(change: MetadataChange) -> tuple[str, str | None, str | None]:
    left, right = (None if side is None else _prose(side) for side in (change.left, change.right))
    return for_terminal(change.key), left, right


def _finding(finding: Finding) -> dict[str, str]:
    return {
        "severity": finding.severity,
        "subject": for_terminal(finding.subject),
        "text": _prose(finding.text),
        "analysis": for_terminal(finding.name).replace("_", " "),
        "evidence": _prose(shown_evidence(finding)),
    }


def _analysis(envelope: Envelope) -> dict[str, Any]:
    return {
        "name": for_terminal(envelope.name).replace("_", " "),
        "status": envelope.status.replace("_", " "),
        "fields": list(fields(envelope)),
        "assumptions": [_prose(each) for each in envelope.assumptions],
        "method": _prose(envelope.method),
    }


def _gap(gap: Gap) -> tuple[str, str, str]:
    names = _some(list(gap.fields))
    needs = f"not assessed (needs {gap.needs})" if gap.needs else "not assessed"
    why = _prose("; ".join(filter(None, (needs, gap.why))))
    return for_terminal(gap.subject).replace("_", " "), names, why


def _uncompared(report: Report) -> list[tuple[str, str]]:
    reasons: dict[str, list[str]] = {}
    for row in report.tensors:
        if row.kind == "uncompared":
            reasons.setdefault(row.skipped or UNKNOWN, []).append(row.name)
    listed = [(_some(names), _prose(reason)) for reason, names in reasons.items()]
    if report.totals.paired:
        who = f"the values of {plural(report.totals.paired, 'tensor')}"
        listed.append((who, "only names, shapes and dtypes were read"))
    return listed[:MOST_ROWS]


def _some(names: list[str]) -> str:
    shown = ", ".join(map(for_terminal, names[:_MOST_NAMES]))
    rest = len(names) - _MOST_NAMES
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def _footer(report: Report) -> str:
    epsilon = f"epsilon {report.epsilon:g}" if report.epsilon else "bit for bit"
    return f"difflens {report.difflens} · compared {epsilon} · schema {report.schema_version}"
