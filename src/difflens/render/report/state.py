"""The state beside the weights, as lines: what every renderer shows of it."""

from __future__ import annotations

from difflens.core.escape import for_terminal
from difflens.core.records import MetadataChange, Report, View
from difflens.core.state import StatePart

_LONGEST = 300


def state_line(part: StatePart) -> str:
    """Write one part: its kind, its name where that is another, and its text."""
    named = "" if part.name.lower() == part.kind else f" {for_terminal(part.name)}"
    return f"{part.kind}{named}: {for_terminal(part.text, _LONGEST)}"


def shown_state(report: Report, view: View) -> tuple[StatePart, ...]:
    """Choose the parts to show beside differences: those that moved, all of them if verbose."""
    return tuple(each for each in report.state if view.verbose or each.moved)


def shown_metadata(report: Report, view: View) -> tuple[MetadataChange, ...]:
    """Choose the metadata to show: what a part of the state sums up only if verbose."""
    summed = tuple(f"{each.name}." for each in report.state)
    return tuple(
        each
        for each in report.metadata
        if view.verbose or each.kind != "metadata" or not each.key.startswith(summed)
    )
