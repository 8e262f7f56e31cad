"""What two bare numbers can tell: how far apart they are, and not whether that is noise."""

from __future__ import annotations

from typing import NamedTuple

from .samples import sample

NO_REPEATS = "no repeat measurements: cannot separate change from noise"


class Change(NamedTuple):
    """Right less left, and over the size of left (None where that is zero)."""

    difference: float
    relative: float | None
    note: str


def change(left: float, right: float) -> Change:
    """Compare two single measurements.

    >>> change(4.0, 5.0).relative
    0.25
    """
    before, after = sample([left, right], "measurements").tolist()
    relative = (after - before) / abs(before) if before else None
    return Change(after - before, relative, NO_REPEATS)
