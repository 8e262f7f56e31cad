"""The array of one-key objects that JSON and YAML both write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from difflens.core.findings import Envelope
from difflens.core.records import Report, Row

from .rows import figures, finite, has_changed_values, is_renamed, spelled, statistics, tied_to

Change = dict[str, list[Any]]


def changes(report: Report) -> Iterator[Change]:
    """Yield every difference, the state beside the weights, the metadata, the analyses."""
    for row in report.tensors:
        if is_renamed(row) and row.left and row.right:
            yield {"TensorRenamed": [row.left.name, row.right.name, row.how]}
        if row.kind in _TOLD:
            yield from _TOLD[row.kind](row)
    for part in report.state:
        if part.moved:
            yield {"StateChanged": [part.name, finite(part.to_dict())]}
    for change in report.metadata:
        yield {"MetadataChanged": [change.key, change.left, change.right]}
    for envelope in report.analyses:
        variant = "".join(word.capitalize() for word in envelope.name.split("_"))
        yield {variant: [envelope.name, _answer(envelope)]}


def _answer(envelope: Envelope) -> dict[str, Any]:
    answer: dict[str, Any] = finite(envelope.to_dict())
    return answer | {"policy": spelled(envelope.policy)}


def _changed(row: Row) -> Iterator[Change]:
    left = finite(statistics(row.left, row.left_stats))
    right = finite(statistics(row.right, row.right_stats))
    yield {"TensorStatsChanged": [row.name, left, right, finite(figures(row))]}


def _recast(row: Row) -> Iterator[Change]:
    if row.left and row.right and row.left.dtype != row.right.dtype:
        yield {"TensorDtypeChanged": [row.name, row.left.dtype, row.right.dtype]}
    if has_changed_values(row):
        yield from _changed(row)


def _reshaped(row: Row) -> Iterator[Change]:
    if row.left and row.right:
        shapes = [list(row.left.shape), list(row.right.shape)]
        yield {"TensorShapeChanged": [row.name, *shapes]}
    yield from _recast(row)


def _added(row: Row) -> Iterator[Change]:
    yield {"TensorAdded": [row.name, finite(statistics(row.right, row.right_stats))]}


def _removed(row: Row) -> Iterator[Change]:
    yield {"TensorRemoved": [row.name, finite(statistics(row.left, row.left_stats))]}


def _tied(row: Row) -> Iterator[Change]:
    yield {"TensorTied": [row.name, tied_to(row)]}


def _uncompared(row: Row) -> Iterator[Change]:
    yield {"TensorNotCompared": [row.name, row.skipped or ""]}


_TOLD = {
    "changed": _changed,
    "recast": _recast,
    "reshaped": _reshaped,
    "added": _added,
    "removed": _removed,
    "tied": _tied,
    "uncompared": _uncompared,
}
