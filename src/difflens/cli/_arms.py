"""The arms of an A/B test as files: a table of examples, or plain numbers, one a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import EvidenceError
from ..escape import for_terminal

Arm = dict[str, list[Any]]  # metric to numbers, or to examples where they have ids


def arm(path: str, side: str, metrics: Sequence[str], cluster: str | None, limits: Any) -> Arm:
    """Read one arm.

    A table names each metric in a column of its own, or has `score` and, for several metrics,
    `metric`; `id` pairs its rows with those of the other arm, `cluster` says which belong together.
    """
    from ..evidence.documents import text

    if _begins_a_number(text(path, limits)):
        return {_only(path, metrics): _numbers(path, limits)}
    from ..evidence.tables import rows

    table = list(rows(path, limits))
    columns = table[0].cells
    groups = cluster or ("cluster" if "cluster" in columns else None)
    if cluster and cluster not in columns:
        raise _no_column(path, cluster, columns)
    return {
        metric: _column(path, table, metric, side=side, groups=groups, metrics=metrics)
        for metric in metrics
    }


def _column(
    path: str, table: list[Any], metric: str, *, side: str, groups: str | None, metrics: Any
) -> list[Any]:
    from ..evidences import Example

    columns = table[0].cells
    if metric in columns:
        column, chosen = metric, table
    elif "score" in columns and "metric" in columns:
        column, chosen = "score", [row for row in table if row.cells.get("metric") == metric]
        if not chosen:
            raise EvidenceError(path, f"no row is of metric '{for_terminal(metric, 80)}'")
    elif "score" in columns:
        column, chosen = "score", table
        _only(path, metrics)
    else:
        raise _no_column(path, metric, columns)
    if "id" not in columns and groups is None:
        return [row.number(column) for row in chosen]
    # Rows without an id are known by their place in their own file: they are never paired.
    return [
        Example(
            row.label("id") if "id" in columns else f"{side} {place}",
            row.number(column),
            metric,
            row.label_or_none(groups) if groups else None,
        )
        for place, row in enumerate(chosen)
    ]


def _begins_a_number(whole: str) -> bool:
    first = whole.split(maxsplit=1)[0]
    try:
        float(first)
    except ValueError:
        return False
    return True


def _numbers(path: str, limits: Any) -> list[float]:
    from ..evidence.documents import number, text

    lines = enumerate(text(path, limits).splitlines(), 1)
    return [number(line, path, f"line {at}", written=True) for at, line in lines if line.strip()]


def _only(path: str, metrics: Sequence[str]) -> str:
    if len(metrics) > 1:
        raise EvidenceError(path, f"it holds one metric, {len(metrics)} are asked for")
    return metrics[0]


def _no_column(path: str, name: str, columns: Any) -> EvidenceError:
    known = ", ".join(for_terminal(each, 40) for each in list(columns)[:12])
    return EvidenceError(path, f"no column is called '{for_terminal(name, 80)}'",
                         hint=f"it has: {known}")  # fmt: skip
