"""The findings of a report in the order a reviewer needs them."""

from __future__ import annotations

from math import isfinite

from ..escape import for_terminal
from ..records import Finding, Report
from .numbers import UNKNOWN, short

MOST_FINDINGS = 10  # in a review
_SEVERITIES = ("critical", "high", "medium", "low", "info")
_TESTED = ("q", "p_adjusted", "p_value", "p")
_LONGEST_WORD = 60


def findings(report: Report) -> list[Finding]:
    """List them by severity, then by the strength of what shows them, then by subject."""
    found = [each for envelope in report.analyses for each in envelope.findings]
    return sorted(found, key=_key)


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
