"""The gradient-flow animator of the reference design: two fixed limits in each frame."""

from __future__ import annotations

import numpy as np

from ..verdicts import Alarm
from .seen import Seen


def alarms(run: Seen) -> list[Alarm]:
    """Flag mean |g| below 1e-7 and largest |g| above 1e3, at the first such frame."""
    found: list[Alarm] = []
    for name, flags in (
        ("vanishing", run.grad_mean_abs < 1e-7),
        ("exploding", run.grad_max_abs > 1e3),
    ):
        hit = np.flatnonzero(flags.any(axis=1))
        if len(hit):
            found.append(Alarm(frozenset({name}), int(hit[0]), layers=run.names(flags[hit[0]])))
    return found
