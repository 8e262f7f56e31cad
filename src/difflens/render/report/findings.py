"""The findings of a report, worst first, and what was not checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import NamedTuple

from difflens.core.escape import for_terminal
from difflens.core.findings import Envelope, Finding
from difflens.core.records import MetadataChange, Report, Row

from ..document.numbers import UNKNOWN, plural, short
from .rows import became_zero, nonfinite_appeared

MOST_FINDINGS = 10  # in a review
_SEVERITIES = ("critical", "high", "medium", "low", "info")
SERIOUS = _SEVERITIES[:2]
_TESTED = ("q", "p_adjusted", "p_value", "p")
_LONGEST_WORD = 60


def findings(report: Report) -> list[Finding]:
    """List them by severity, then by the strength of what shows them, then by subject."""
    return ranked(report, filter(None, map(broken, report.tensors)))


def ranked(report: Report, wrecks: Iterable[Finding]) -> list[Finding]:
    """List the same where the tensors that are `broken` are known already."""
    found = [each for envelope in report.analyses for each in envelope.findings]
    settings = [change for change in report.metadata if change.kind != "metadata"]
    known = {each.subject for each in found if each.severity in SERIOUS}
    new = (each for each in wrecks if each.subject not in known)
    return sorted([*found, *new, *map(_setting, settings)], key=_key)


def broken(row: Row) -> Finding | None:
    """Report a tensor that cannot work any more, whether or not an analysis looked at it."""
    grown = nonfinite_appeared(row)
    if grown:
        text = f"{plural(grown[1], 'NaN or infinite value')}, {grown[0]:,} before"
        return Finding("", row.name, text, {}, "critical")
    if became_zero(row):
        return Finding("", row.name, "all values are zero now", {}, "high")
    return None


def _setting(change: MetadataChange) -> Finding:
    """Tell of a setting that changes the function, under the file it is in."""
    file = change.key.partition(": ")[0]
    return Finding(change.kind, file, change.text.removeprefix(f"{file} "), {}, "high")


def _key(finding: Finding) -> tuple[int, int, float, str, str, str]:
    """Rank the evidence: numbers that were measured, then tests by their p, then bare words."""
    known = _known(finding)
    tested = [known[name] for name in _TESTED if name in known]
    strength, within = (1, tested[0]) if tested else (0, -len(known)) if known else (2, 0)
    severity = _SEVERITIES.index(finding.severity)
    return severity, strength, within, finding.subject, finding.name, finding.text


def shown_evidence(finding: Finding) -> str:
    """Write the numbers that show it.

    >>> shown_evidence(Finding("f", "w", "moved", {"relative_l2": 0.0312, "p": None}))
    'relative_l2=0.0312, p=unknown'
    """
    known = _known(finding)
    return ", ".join(
        f"{for_terminal(name, _LONGEST_WORD)}={short(known[name]) if name in known else UNKNOWN}"
        for name in finding.evidence
    )


def _known(finding: Finding) -> dict[str, float]:
    return {
        name: value
        for name, value in finding.evidence.items()
        if value is not None and isfinite(value)
    }


class Gap(NamedTuple):
    """Something nobody looked at: whose, which of its fields (all if none are named), and why."""

    subject: str
    fields: tuple[str, ...]
    needs: str
    why: str


def unassessed(report: Report) -> list[Gap]:
    """List tensors that were not compared, then fields that are null, one line a reason."""
    return [*_uncompared(report), *(gap for each in report.analyses for gap in gaps(each))]


def gaps(envelope: Envelope) -> Iterator[Gap]:
    """Yield what one analysis could not say; one gap where it could say nothing for one reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in envelope.missing:
        reasons.setdefault((each.needs, each.why), []).append(each.field)
    silent = all(value is None for value in envelope.fields.values())
    for (needs, why), fields in reasons.items():
        whole = silent and len(reasons) == 1
        yield Gap(envelope.name, () if whole else tuple(fields), needs, why)
    if not reasons and envelope.status not in {"ok", "partial"}:
        yield Gap(envelope.name, (), "", envelope.status.replace("_", " "))


def _uncompared(report: Report) -> Iterator[Gap]:
    reasons: dict[str, list[str]] = {}
    for row in report.tensors:
        if row.kind == "uncompared":
            reasons.setdefault(row.skipped or UNKNOWN, []).append(row.name)
    for why, names in reasons.items():
        yield Gap(names[0], (), "", f"{why} ({plural(len(names), 'tensor')})")
    if report.totals.paired:
        who = f"the values of {plural(report.totals.paired, 'tensor')}"
        yield Gap(who, (), "", "only names, shapes and dtypes were read")
