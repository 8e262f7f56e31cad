"""What an analysis answers: fields, findings, and what is missing."""

from __future__ import annotations

from typing import Any, Literal

from .record import Record

Severity = Literal["info", "low", "medium", "high", "critical"]


class Finding(Record, frozen=True):
    """An observation about one subject, with the numbers that show it."""

    name: str
    subject: str
    text: str
    evidence: dict[str, float | None]
    severity: Severity = "info"


class Interval(Record, frozen=True):
    """The confidence interval of a number: its level, its method and the sample size."""

    low: float | None
    high: float | None
    level: float = 0.95
    method: str = ""
    n: int | None = None


class Missing(Record, frozen=True):
    """A field that is unknown: what it needs, and why it is unknown."""

    field: str
    needs: str
    why: str


class Envelope(Record, frozen=True):
    """The answer of one analysis, with the source of each field."""

    name: str
    status: Literal["ok", "partial", "not_enough_information", "not_applicable", "error"]
    fields: dict[str, Any]
    basis: dict[str, str] = {}
    uncertainty: dict[str, Interval | str] = {}
    missing: tuple[Missing, ...] = ()
    assumptions: tuple[str, ...] = ()
    policy: dict[str, Any] = {}
    method: str = ""
    findings: tuple[Finding, ...] = ()
