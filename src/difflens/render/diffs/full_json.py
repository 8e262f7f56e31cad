"""The whole report as one object: what is kept, and read back as the same report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from json import dumps, loads
from typing import Any

import msgspec

from difflens.core.errors import DifflensError
from difflens.core.findings import Envelope
from difflens.core.records import SCHEMA_VERSION, Report, View

from ..report.rows import finite, spelled
from . import renderer

_AT_ONCE = 256  # records
_FIRST = ("schema_version", "difflens")
_BEYOND_ASCII = re.compile("[\x7f-\U0010ffff]")


def pieces(report: Report, view: View) -> Iterator[str]:  # noqa: ARG001  one signature for all
    """Yield the object, some records of a list at a time."""
    report = msgspec.structs.replace(report, analyses=tuple(map(_honest, report.analyses)))
    for text in _object(report):
        is_plain = text.isascii() and "\x7f" not in text
        yield text if is_plain else _BEYOND_ASCII.sub(_escaped, text)


@renderer(suffix=".json", pieces=pieces)
def full_json(report: Report, view: View) -> str:
    """One object with everything: both sides, totals, verdict, every tensor, every analysis."""
    return "".join(pieces(report, view))


def parse(text: str) -> Report:
    """Read a report back: `parse(full_json(report, view)) == report`.

    Numbers that are not finite come back as None.
    """
    try:
        data = loads(text)
        version = data.get("schema_version") if isinstance(data, dict) else None
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise DifflensError(
                f"the report has schema_version {version}, this difflens reads {SCHEMA_VERSION}",
                hint="update difflens",
            )
        return msgspec.convert(data, Report)
    except (ValueError, RecursionError) as error:  # msgspec.ValidationError is a ValueError
        raise DifflensError(f"not a full-json report: {error}") from error


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the object, as published in docs/full-report.schema.json."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"difflens full-json report, version {SCHEMA_VERSION}",
        **msgspec.json.schema(Report),
    }


def _honest(envelope: Envelope) -> Envelope:
    """Keep what plain null would lose: an infinity the user set."""
    return msgspec.structs.replace(envelope, policy=spelled(envelope.policy))


def _object(report: Report) -> Iterator[str]:
    """Write a field a line, and in lists a record a line: people page through it, git diffs it."""
    begin = "{"
    for name in dict.fromkeys((*_FIRST, *report.__struct_fields__)):
        value = getattr(report, name)
        yield f'{begin}\n"{name}": '
        begin = ","
        is_list = isinstance(value, Sequence) and not isinstance(value, str) and value
        yield from _list(value) if is_list else (_encode([value]),)
    yield "\n}\n"


def _list(value: Sequence[Any]) -> Iterator[str]:
    records, begin = iter(value), "[\n"
    while some := list(islice(records, _AT_ONCE)):
        yield f"{begin}{_encode(some)}"
        begin = ",\n"
    yield "\n]"


def _encode(values: list[Any]) -> str:
    """Write a value a line."""
    try:
        return msgspec.json.Encoder().encode_lines(values)[:-1].replace(b"\n", b",\n").decode()
    except UnicodeEncodeError:  # msgspec writes UTF-8 only; a lone surrogate is none
        return ",\n".join(dumps(finite(msgspec.to_builtins(value))) for value in values)


def _escaped(match: re.Match[str]) -> str:
    return dumps(match.group())[1:-1] if match.group() != "\x7f" else "\\u007f"
