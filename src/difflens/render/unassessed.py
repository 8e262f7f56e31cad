"""What was not checked, and what would have to be handed in to check it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..records import Envelope, Report
from .numbers import UNKNOWN, plural


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
