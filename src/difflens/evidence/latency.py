"""Measured latencies: one number a line, or a table with a column ms and perhaps run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..evidences import Latency
from .documents import Limits, broken, number, text
from .tables import rows

_BEGINS_A_NUMBER = re.compile(r"\s*[-+.0-9]|\s*(nan|inf)", re.IGNORECASE)


def latency(path: str | Path, limits: Limits = None) -> tuple[Latency, ...]:
    """Read milliseconds, none below zero."""
    whole = text(path, limits)
    listed = _BEGINS_A_NUMBER.match(whole)
    return tuple(_lines(str(path), whole) if listed else _table(path, limits))


def _lines(path: str, whole: str) -> Iterator[Latency]:
    for line, written in enumerate(whole.splitlines(), 1):
        if written.strip():
            where = f"line {line}"
            yield Latency(_positive(number(written, path, where, written=True), path, where))


def _table(path: str | Path, limits: Limits) -> Iterator[Latency]:
    for row in rows(path, limits, required=("ms",), optional=("run",)):
        yield Latency(
            _positive(row.number("ms"), row.path, row.where("ms")), row.label_or_none("run")
        )


def _positive(ms: float, path: str, where: str) -> float:
    if ms < 0:
        raise broken(path, f"{where}: {ms} ms, a latency is not negative")
    return ms
