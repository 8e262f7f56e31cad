"""The whole report as one object: what is kept, and read back as the same report."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from json import dumps, loads
from typing import Any

import msgspec

from difflens.core.errors import DifflensError
from difflens.core.findings import Envelope
from difflens.core.records import SCHEMA_VERSION, Report, View

from ..report.rows import finite, spelled
from . import renderer

_FIRST = ("schema_version", "difflens")
_BEYOND_ASCII = re.compile("[\x7f-\U0010ffff]")


@renderer(suffix=".json")
def full_json(report: Report, view: View) -> str:  # noqa: ARG001  one signature for all
    """One object with everything: both sides, totals, verdict, every tensor, every analysis."""
    report = msgspec.structs.replace(report, analyses=tuple(map(_honest, report.analyses)))
    try:
        text = _object(report, _fast)
    except UnicodeEncodeError:  # msgspec writes UTF-8 only; a lone surrogate is none
        text = _object(report, _slow)
    return text if text.isascii() and "\x7f" not in text else _BEYOND_ASCII.sub(_escaped, text)


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


def _object(report: Report, encode: Callable[[Sequence[Any]], str]) -> str:
    """Write a field a line, and in lists a record a line: people page through it, git diffs it."""
    parts = []
    for name in dict.fromkeys((*_FIRST, *report.__struct_fields__)):
        value = getattr(report, name)
        many = isinstance(value, tuple) and value
        parts.append(f'"{name}": ' + (f"[\n{encode(value)}\n]" if many else encode([value])))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _fast(values: Sequence[Any]) -> str:
    return msgspec.json.Encoder().encode_lines(values)[:-1].replace(b"\n", b",\n").decode()


def _slow(values: Sequence[Any]) -> str:
    return ",\n".join(dumps(finite(msgspec.to_builtins(value))) for value in values)


def _escaped(match: re.Match[str]) -> str:
    return dumps(match.group())[1:-1] if match.group() != "\x7f" else "\\u007f"
