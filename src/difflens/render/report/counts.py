"""The totals of a report in one line."""

from __future__ import annotations

from difflens.core.records import Report, Totals

from ..document.numbers import count, plural, scientific

_KINDS = tuple(
    """
    changed recast reshaped added removed tied uncompared within_epsilon identical paired
""".split()
)
_WORDS = {"uncompared": "not compared", "within_epsilon": "within epsilon"}


def counts(report: Report) -> str:
    """Say how many tensors came out as what, how large the models are, how far they moved."""
    totals = report.totals
    kinds = [
        f"{getattr(totals, kind)} {_WORDS.get(kind, kind)}"
        for kind in _KINDS
        if getattr(totals, kind)
    ]
    parts = [": ".join(filter(None, (plural(totals.tensors, "tensor"), ", ".join(kinds))))]
    if totals.renamed:
        parts.append(f"{totals.renamed} renamed")
    shown = _parameters(report)
    parts.append(f"{shown} parameter{'' if shown == '1' else 's'}")
    if totals.relative_l2 is not None and (totals.changed or totals.recast):
        mark = "" if totals.estimated_error is None else "~"
        parts.append(f"relative_l2 {mark}{_distance(totals)}")
    if report.warnings:
        parts.append(plural(len(report.warnings), "warning"))
    return "; ".join(parts)


def _distance(totals: Totals) -> str:
    """Write how far the tensors moved, and over which of them that is."""
    median, whole = totals.median_relative_l2, totals.whole_relative_l2
    beside = "" if median is None or totals.moved == 1 else f" (median {scientific(median)})"
    if totals.moved >= totals.compared:
        return f"{scientific(totals.relative_l2)}{beside}"
    which = f"{plural(totals.moved, 'tensor')} that moved"
    further = "" if whole is None else f", {scientific(whole)} over all {totals.compared:,}"
    return f"{scientific(totals.relative_l2)} over the {which}{beside}{further}"


def _parameters(report: Report) -> str:
    sides = [report.left.parameter_count, report.right.parameter_count]
    return " -> ".join(dict.fromkeys(map(count, sides)))
