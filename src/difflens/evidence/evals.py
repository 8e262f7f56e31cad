"""Per-example results of an evaluation: a table of id, score and perhaps cluster and metric."""

from __future__ import annotations

from pathlib import Path

from ..errors import EvidenceError
from ..escape import for_terminal
from ..evidences import Example
from .documents import Limits, broken
from .tables import Row, rows


def evals(path: str | Path, limits: Limits = None) -> tuple[Example, ...]:
    """Read one example a row; an id stands once a metric."""
    seen: dict[tuple[str, str], str] = {}
    found = []
    for row in rows(path, limits, required=("id", "score"), optional=("cluster", "metric")):
        example = Example(
            row.label("id"),
            row.number("score"),
            row.label_or_none("metric") or "score",
            row.label_or_none("cluster"),
        )
        key = (example.id, example.metric)
        if key in seen:
            raise _twice(row, example, seen[key])
        seen[key] = row.place
        found.append(example)
    return tuple(found)


def _twice(row: Row, example: Example, before: str) -> EvidenceError:
    said = f"{row.place}: the id '{for_terminal(example.id, 80)}' of metric"
    reason = f"{said} '{for_terminal(example.metric, 80)}' stands in {before} already"
    return broken(row.path, reason, "average several samples of one example before")
