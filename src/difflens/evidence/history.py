"""What metrics were in earlier versions: a table of version, metric, value and perhaps time."""

from __future__ import annotations

from pathlib import Path

from ..escape import for_terminal
from ..evidences import Past
from .documents import Limits, broken
from .tables import rows


def history(path: str | Path, limits: Limits = None) -> tuple[Past, ...]:
    """Read one value a row, in the order of the file: oldest first."""
    seen: dict[tuple[str, str], str] = {}
    found = []
    for row in rows(path, limits, required=("version", "metric", "value"), optional=("time",)):
        past = Past(
            row.label("version"),
            row.label("metric"),
            row.number("value"),
            row.label_or_none("time"),
        )
        key = (past.version, past.metric)
        if key in seen:
            said = f"{row.place}: version '{for_terminal(past.version, 80)}' of metric"
            metric = for_terminal(past.metric, 80)
            raise broken(path, f"{said} '{metric}' stands in {seen[key]} already")
        seen[key] = row.place
        found.append(past)
    return tuple(found)
