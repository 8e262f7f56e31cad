"""Straight lines through ln of the recent losses, gradient norms and update norms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflens.stats.samples import robust_deviation

from .sight import Sight


class Trend(NamedTuple):
    """Of what, its growth a step, its rise by the noise about it, and steps to the mark."""

    what: str
    per_step: float
    signal: float
    reach: float


def trends(seen: Sight, points: int, mark: float) -> Iterator[Trend]:
    """Yield the trend of each over the latest points; `mark` is how many times the present."""
    course, scalars = seen.history.course, seen.history.scalars
    for what, values, known in (
        ("loss", scalars.scalar("loss"), scalars.steps),
        ("gradient norm", course.global_norm(), seen.steps),
        ("update norm", course.global_norm("update_l2"), seen.steps),
    ):
        if values is None:
            continue
        late, steps = values[-points:], known[-points:].astype(float)
        if len(late) == points and np.isfinite(late).all() and (late > 0).all():
            yield _line(what, steps, np.log(late), mark)


def _line(what: str, steps: NDArray[Any], logs: NDArray[Any], mark: float) -> Trend:
    rise, run = logs[:, None] - logs, steps[:, None] - steps
    slope = float(np.median(rise[run > 0] / run[run > 0]))
    rest = logs - slope * steps
    noise = float(robust_deviation(rest))
    whole = slope * float(steps[-1] - steps[0])
    reach = np.log(mark) / slope if slope > 0 else -1.0
    return Trend(what, slope, whole / max(noise, 1e-9), float(reach))
