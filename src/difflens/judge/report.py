"""Puts a judged diff down as plain data, ready to be rendered or kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .. import __version__
from ..diffs import Diff
from ..records import Delta, Envelope, Figures, Report, Row, Totals
from .verdict import verdict


def report(
    diff: Diff,
    totals: Totals,
    rows: Iterable[Row],
    analyses: Iterable[Envelope] = (),
    evidence: Mapping[str, str] | None = None,
) -> Report:
    """Judge the totals, and put everything together."""
    return Report(
        left=diff.left,
        right=diff.right,
        totals=totals,
        verdict=verdict(totals, metadata_changes=len(diff.metadata), epsilon=diff.epsilon),
        tensors=tuple(rows),
        epsilon=diff.epsilon,
        metadata=diff.metadata,
        analyses=tuple(analyses),
        warnings=diff.warnings,
        evidence=dict(evidence or {}),
        difflens=__version__,
    )


def row(delta: Delta, further: Iterable[Any] = ()) -> Row:
    """Write one delta down as plain numbers, with those of measures taken beside the standard."""
    pair = delta.pair
    figures = delta.figures() if pair.left and pair.right else {}
    for measure in further:
        figures.update(measure.figures())
    known = {key: figures.pop(key) for key in Figures.__struct_fields__ if key in figures}
    return Row(
        name=delta.name,
        kind=delta.kind,
        left=pair.left,
        right=pair.right,
        how=pair.how,
        transform=pair.transform,
        skipped=delta.skipped,
        left_stats=delta.stats("left"),
        right_stats=delta.stats("right"),
        figures=Figures(**known) if known else None,
        further=dict(figures) or None,
    )
