"""One analysis as one line of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..escape import for_terminal
from ..records import Envelope
from .colors import Paint
from .numbers import UNKNOWN, short

LONGEST_SENTENCE = 1000
_LONGEST_LIST = 5


def answer(envelope: Envelope, paint: Paint) -> str:
    """Write `+ NAME: field=value, …`; where a severity is known the line starts with it."""
    severity = envelope.fields.get("severity")
    if isinstance(severity, str) and severity not in {"", "none"}:
        start = paint(f"[{for_terminal(severity).upper()}]", "alarm")
    else:
        start = "+"
    said = ", ".join(_fields(envelope)) or envelope.status.replace("_", " ")
    return f"{start} {for_terminal(envelope.name)}: {said}"


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
    return for_terminal(value) if isinstance(value, str) else short(value)


def _fields(envelope: Envelope) -> Iterator[str]:
    needs = {each.field: each.needs or each.why for each in envelope.missing}
    for name in dict.fromkeys((*envelope.fields, *needs)):
        value = envelope.fields.get(name)
        if value is None:
            reason = needs.get(name)
            text = f"{UNKNOWN} (needs {for_terminal(reason)})" if reason else UNKNOWN
        elif is_scalar(value) and name != "sentence":
            text = scalar(value)
        elif isinstance(value, list | tuple) and len(value) <= _LONGEST_LIST:
            if not all(map(is_scalar, value)):
                continue
            text = f"[{', '.join(map(scalar, value))}]"
        else:
            continue
        yield f"{for_terminal(name)}={text}"
