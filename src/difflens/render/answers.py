"""One analysis as one line of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ..escape import for_terminal
from ..records import Envelope, Finding
from .colors import Paint
from .findings import shown_evidence
from .numbers import UNKNOWN, short
from .unassessed import Gap

LONGEST_SENTENCE = 1000
_LONGEST_LIST = 5
_LONGEST_WORD = 120
_MANY = 3


def answer(envelope: Envelope, paint: Paint) -> str:
    """Write `+ NAME: field=value, …`; where a severity is known the line starts with it."""
    severity = envelope.fields.get("severity")
    start = _marked(severity, paint) if isinstance(severity, str) else "+"
    said = ", ".join(_fields(envelope)) or envelope.status.replace("_", " ")
    return f"{start} {for_terminal(envelope.name)}: {said}"


def finding_line(finding: Finding, paint: Paint) -> str:
    """Write `[SEVERITY] ANALYSIS: SUBJECT: text (evidence)`."""
    shown = shown_evidence(finding)
    parts = [for_terminal(finding.name), for_terminal(finding.subject)]
    told = for_terminal(finding.text, LONGEST_SENTENCE) + (f" ({shown})" if shown else "")
    return f"{_marked(finding.severity, paint)} {': '.join(filter(None, [*parts, told]))}"


def gap_line(gap: Gap, paint: Paint) -> str:
    """Write `? SUBJECT: field, field not assessed (needs …): why`."""
    who = paint(f"? {for_terminal(gap.subject)}", "?")
    fields = ", ".join(map(for_terminal, gap.fields))
    needs = f"not assessed (needs {for_terminal(gap.needs)})" if gap.needs else "not assessed"
    why = f": {for_terminal(gap.why, _LONGEST_WORD)}" if gap.why else ""
    return f"{who}: {' '.join(filter(None, (fields, needs)))}{why}"


def opening(envelopes: Iterable[Envelope]) -> str:
    """Give the sentence that tells the whole change, where the summary was asked for."""
    for envelope in envelopes:
        said = envelope.fields.get("sentence")
        if envelope.name == "change_summary" and isinstance(said, str):
            return for_terminal(said, LONGEST_SENTENCE)
    return ""


def is_scalar(value: Any) -> bool:
    """Can it be written as one word?"""
    return isinstance(value, str | int | float)


def scalar(value: Any) -> str:
    """Write one word, number or yes-or-no of an analysis."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return for_terminal(value, _LONGEST_WORD) if isinstance(value, str) else short(value)


def _marked(severity: str, paint: Paint) -> str:
    if severity in {"", "none"}:
        return "+"
    mark = f"[{for_terminal(severity).upper()}]"
    return mark if severity == "info" else paint(mark, "alarm")


def _fields(envelope: Envelope) -> Iterator[str]:
    needs = {each.field: each.needs or each.why for each in envelope.missing}
    waiting = Counter(needs.values())
    said: set[str] = set()
    for name in dict.fromkeys((*envelope.fields, *needs)):
        value, reason = envelope.fields.get(name), needs.get(name, "")
        if name == "sentence" and value is not None:
            continue
        if value is not None:
            yield f"{for_terminal(name)}={_written(value)}"
        elif reason not in said or waiting[reason] < _MANY:
            said.add(reason)
            yield f"{for_terminal(name)}={UNKNOWN}{_why(reason, waiting[reason])}"


def _why(reason: str, fields: int) -> str:
    """Give what would fill a field; of many that wait for the same, the first speaks for all."""
    more = f"; so do {fields - 1} more" if fields >= _MANY else ""
    return f" (needs {for_terminal(reason)}{more})" if reason else ""


def _written(value: Any) -> str:
    """Write a value in few words; what does not fit is counted, and is whole in -o json."""
    if is_scalar(value):
        return scalar(value)
    if isinstance(value, dict) and set(value) == {"count", "names"}:
        return f"{value['count']} layer{'' if value['count'] == 1 else 's'}"
    if len(value) <= _LONGEST_LIST:
        if isinstance(value, dict) and all(map(is_scalar, value.values())):
            inner = (f"{for_terminal(str(key))}: {scalar(each)}" for key, each in value.items())
            return f"{{{', '.join(inner)}}}"
        if isinstance(value, list | tuple) and all(map(is_scalar, value)):
            return f"[{', '.join(map(scalar, value))}]"
    return f"{len(value)} {'entry' if len(value) == 1 else 'entries'} (-o json)"
