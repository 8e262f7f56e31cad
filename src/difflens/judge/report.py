"""Puts a judged diff down as plain data, ready to be rendered or kept."""

from __future__ import annotations

from collections.abc import Iterable

from .. import __version__
from ..records import Delta, Diff, Envelope, Report, Row, Totals
from .verdict import verdict


def report(diff: Diff, totals: Totals, analyses: Iterable[Envelope] = ()) -> Report:
    """Judge the totals, and write every delta down."""
    return Report(
        left=diff.left,
        right=diff.right,
        totals=totals,
        verdict=verdict(totals, metadata_changes=len(diff.metadata), epsilon=diff.epsilon),
        tensors=tuple(map(_row, diff.deltas)),
        epsilon=diff.epsilon,
        metadata=diff.metadata,
        analyses=tuple(analyses),
        warnings=diff.warnings,
        difflens=__version__,
    )


def _row(delta: Delta) -> Row:
    pair = delta.pair
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
        figures=(delta.figures() or None) if pair.left and pair.right else None,
    )
