"""Steps in one direction: what a run took again after it went back to a checkpoint counts once.

A run that was resumed has the same steps twice, and slopes, windows and tables need time to go
forward. So a record whose step a later one reaches again is left out, as its work was. Where that
would leave less than half (steps that begin anew in every epoch, or stand still), records are
counted instead. Sorting by step was not taken: it would weave two attempts into one course.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .course import Course

_LEAST_SHARE = 0.5  # of the records that are never taken again, below which steps are no clock


class Forward(NamedTuple):
    """Which records count, and at which steps, each after the one before it."""

    kept: NDArray[np.bool_]
    steps: NDArray[np.int64]
    remark: str = ""


def forward(steps: NDArray[np.int64]) -> Forward:
    """Find the records that count.

    >>> forward(np.array([0, 1, 2, 3, 2, 3, 4])).steps.tolist()
    [0, 1, 2, 3, 4]
    >>> forward(np.array([7, 7, 7])).steps.tolist()
    [0, 1, 2]
    """
    n = len(steps)
    kept = np.ones(n, bool)
    if n < 2 or bool((steps[1:] > steps[:-1]).all()):
        return Forward(kept, steps)
    kept[:-1] = steps[:-1] < np.minimum.accumulate(steps[::-1])[::-1][1:]
    if kept.sum() >= _LEAST_SHARE * n:
        told = f"{n - int(kept.sum())} of {n} records are left out: their steps were taken again"
        return Forward(kept, steps[kept], told)
    back = int((steps[1:] <= steps[:-1]).sum())
    told = f"the step does not rise at {back} of {n} records, so records are counted for steps"
    return Forward(np.ones(n, bool), np.arange(n, dtype=np.int64), told)


def course_forward(course: Course) -> tuple[Course, str]:
    """Give a course whose steps rise, and what was done to it."""
    found = forward(course.steps)
    return (course.at(found.kept, found.steps), found.remark) if found.remark else (course, "")
