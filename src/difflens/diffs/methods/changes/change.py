"""A diff looked through once, for whoever wants to say what kind of change it is."""

from __future__ import annotations

from typing import Any, NamedTuple

from difflens.core.records import MOVED, SAME, Delta
from difflens.measure.scan import Scan

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from .energy import KEPT, Moved, is_float

Numbers = dict[str, float]


class Change(NamedTuple):
    """What differs, what of it was measured, and the thresholds in force."""

    deltas: tuple[Delta, ...]
    differing: list[Delta]
    measured: list[Moved]  # of those, what has one shape on both sides and was scanned
    scans: dict[str, Scan]  # the same, by name
    moved_parameters: int
    parameters: int  # float parameters that both sides have in one shape
    diff: Diff
    evidence: Evidence
    answer: Answer  # holds the thresholds in force
    likely: dict[str, str]  # the format that most of the right model's values have

    def values(self, delta: Delta) -> tuple[Any, Any]:
        """Return both sides' numbers on demand."""
        left, right = delta.pair.left, delta.pair.right
        if left is None or right is None:
            raise ValueError(f"{delta.name} is on one side only")
        before = self.diff.values("left", left.name, delta.pair)
        return before, self.diff.values("right", right.name, delta.pair)

    @property
    def is_measured(self) -> bool:
        """Is there a difference, and none that is a matter of structure?"""
        return 0 < len(self.differing) == len(self.measured)

    @property
    def new_zero(self) -> list[str]:
        """The tensors that are all zeros now, and were not before."""
        return [
            name
            for name, scan in self.scans.items()
            if 0 < scan.count == scan.right_zeros and scan.left_zeros < scan.count
        ]

    @property
    def new_nonfinite(self) -> dict[str, int]:
        """How many NaN and infinities each tensor has more than before."""
        more = {
            name: scan.right_nonfinite - scan.left_nonfinite for name, scan in self.scans.items()
        }
        return {name: number for name, number in more.items() if number > 0}


def take_in(diff: Diff, evidence: Evidence, answer: Answer, moved: list[Moved]) -> Change:
    """Look the diff through; `moved` are its parameters whose bytes differ."""
    differing = [delta for delta in diff.deltas if delta.kind not in SAME]
    scanned = [(delta, delta.measured(Scan)) for delta in differing if delta.kind in MOVED]
    measured = [Moved(delta, scan) for delta, scan in scanned if scan is not None]
    return Change(
        diff.deltas,
        differing,
        measured,
        {each.name: each.scan for each in measured},
        sum(each.delta.kind not in SAME for each in moved),
        sum(delta.kind in KEPT and is_float(delta) for delta in diff.deltas),
        diff,
        evidence,
        answer,
        {},
    )
