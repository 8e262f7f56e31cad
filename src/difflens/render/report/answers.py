"""One analysis as one line of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from difflens.core.escape import for_terminal
from difflens.core.findings import Envelope, Finding

from ..document.numbers import UNKNOWN, short
from ..document.text import Paint
from .findings import Gap, shown_evidence

LONGEST_SENTENCE = 1000
_LONGEST_LIST = 5
_LONGEST_WORD = 120
_MANY = 3
_KEY_FIGURES = 4
_ELSEWHERE = {"sentence", "severity"}  # shown on top, and as the mark of the line


def answer(envelope: Envelope, paint: Paint) -> str:
    """Write `+ NAME: field=value, …`; a severity that is known starts the line and is no figure.

    An analysis names its fields in the order in which they matter: the first few are shown.
    """
    severity = envelope.fields.get("severity")
    start = _marked(severity, paint) if isinstance(severity, str) else "+"
    shown = dict(islice(_fields(envelope), _KEY_FIGURES))
    said = ", ".join(shown.values()) or envelope.status.replace("_", " ")
    rest = sum(
        value is not None and name not in shown and name not in _ELSEWHERE
        for name, value in envelope.fields.items()
    )
    more = f" ({rest} more field{'' if rest == 1 else 's'} with -o json)" if rest else ""
    return f"{start} {for_terminal(envelope.name)}: {said}{more}"


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
    """Return the sentence that tells the whole change, where the summary was asked for."""
    for envelope in envelopes:
        said = envelope.fields.get("sentence")
        if isinstance(said, str):
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


def _fields(envelope: Envelope) -> Iterator[tuple[str, str]]:
    """Write each field that fits into few words; of many that wait for the same, the first."""
    needs = {each.field: each.needs or each.why for each in envelope.missing}
    waiting = Counter(needs.values())
    said: set[str] = set()
    for name in dict.fromkeys((*envelope.fields, *needs)):
        value, reason = envelope.fields.get(name), needs.get(name, "")
        if name in _ELSEWHERE and value is not None:
            continue
        if value is not None:
            text = _written(value)
            if text is not None:
                yield name, f"{for_terminal(name)}={text}"
        elif reason not in said or waiting[reason] < _MANY:
            said.add(reason)
            yield name, f"{for_terminal(name)}={UNKNOWN}{_why(reason, waiting[reason])}"


def _why(reason: str, fields: int) -> str:
    """Return what would fill a field; of many that wait for the same, the first speaks for all."""
    more = f"; so do {fields - 1} more" if fields >= _MANY else ""
    return f" (needs {for_terminal(reason)}{more})" if reason else ""


def _written(value: Any) -> str | None:
    """Write a value in few words, two sides as `left -> right`; None if it takes more."""
    if is_scalar(value):
        return scalar(value)
    if isinstance(value, dict) and set(value) == {"left", "right"}:
        sides = value["left"], value["right"]
        return " -> ".join(map(scalar, sides)) if all(map(is_scalar, sides)) else None
    if isinstance(value, dict) and set(value) == {"count", "names"}:
        return f"{value['count']} layer{'' if value['count'] == 1 else 's'}"
    if len(value) <= _LONGEST_LIST:
        if isinstance(value, dict) and all(map(is_scalar, value.values())):
            parts = [f"{for_terminal(str(key))}: {scalar(each)}" for key, each in value.items()]
            return f"{{{', '.join(parts[:_MANY])}{', ...' if len(parts) > _MANY else ''}}}"
        if isinstance(value, list | tuple) and all(map(is_scalar, value)):
            return f"[{', '.join(map(scalar, value))}]"
    return None
