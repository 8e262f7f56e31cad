"""An A/B test that may be looked at after every value: its interval holds at all looks at once.

No p of a fixed sample is given: looked at a hundred times at 5 % it would raise a false alarm in
37 of 100 cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..ab_results import SequentialResult
from ..stats.comparison import Comparison
from ..stats.repeats import average_repeats
from ..stats.sequential import START, Bounds, betting_sequence, confidence_sequence
from .arms import Sides

_LONGEST = 50_000  # values up to which betting against every mean is worth its time


class Peeked(NamedTuple):
    """The interval that counts, as a comparison of A minus B, and the looks behind it."""

    made: Comparison
    looks: SequentialResult


def peeked(sides: Sides, level: float) -> Peeked:
    """Follow the differences in the order they came; stop at the first interval without zero."""
    moves, note = _differences(sides)
    bounded = all(0 <= value <= 1 for side in (sides.left, sides.right) for value in side)
    if bounded and len(moves) <= _LONGEST:
        method = "betting confidence sequence"
        found = betting_sequence(moves, level=level, bounds=(-1.0, 1.0))
    else:
        method = "asymptotic confidence sequence"
        found = confidence_sequence(moves, level=level)
        if len(moves) < START:
            note = f"{note}; nothing can be said before {START} values".lstrip("; ")
    low, high = _ends(found)
    mean = sum(moves) / len(moves)
    n = len(moves)
    made = Comparison(mean, low, high, level, None, method, n, n, note=note)
    return Peeked(made, SequentialResult(
        method=method, low=low, high=high, level=level, looks=n, stopped_at=found.stopped,
        note=note,
    ))  # fmt: skip


def _ends(found: Bounds) -> tuple[float | None, float | None]:
    """Give the interval at the stop, where the question was decided, else the last one."""
    place = (found.stopped or len(found.low)) - 1
    return found.low[place], found.high[place]


def _differences(sides: Sides) -> tuple[list[float], str]:
    """Give A minus B, value by value; values of one cluster count as one, at its first."""
    left, right = (
        _in_order(values, clusters)
        for values, clusters in (
            (sides.left, sides.left_clusters),
            (sides.right, sides.right_clusters),
        )
    )
    count = min(len(left), len(right))
    notes = []
    if sides.left_clusters is not None:
        notes.append("clusters count as one value each")
    if not sides.is_paired:
        notes.append("arms are compared value by value in the order they came")
        if len(left) != len(right):
            notes.append(f"{abs(len(left) - len(right))} values of the longer arm wait")
    return [left[at] - right[at] for at in range(count)], "; ".join(notes)


def _in_order(values: Sequence[float], clusters: Sequence[str] | None) -> list[float]:
    return list(values) if clusters is None else list(average_repeats(clusters, values).means)
