"""Where a series of gradient norms jumps up and stays there, judged against its own history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .series import Points

_LEAST = 8  # points below which there is no history to judge against
_TO_SIGMA = 0.6745  # MAD of a normal law


class Burst(NamedTuple):
    """A jump: the step, how many times the norm before, and how unusual a step it was."""

    step: float
    ratio: float
    z: float


def bursts(points: Points, limits: Mapping[str, float]) -> list[Burst]:
    """Find one-step rises of ln‖g‖ with a robust z above `z` after which the norm stays up.

    It stays up where the median of the next `hold` points is `ratio` times the median of the
    `window` points before (Iglewicz & Hoaglin 1993 for the robust z).
    """
    import numpy as np

    known = [(step, norm) for step, norm in points if norm > 0]
    if len(known) < _LEAST:
        return []
    norms = np.array([norm for _, norm in known])
    rises = np.diff(np.log(norms))
    middle = float(np.median(rises))
    spread = float(np.median(np.abs(rises - middle)))
    found: list[Burst] = []
    for at in np.flatnonzero(_TO_SIGMA * (rises - middle) > limits["z"] * spread):
        before = norms[max(0, at + 1 - int(limits["window"])) : at + 1]
        after = norms[at + 1 : at + 1 + int(limits["hold"])]
        ratio = float(np.median(after) / np.median(before))
        if len(after) == limits["hold"] and ratio >= limits["ratio"]:
            z = _TO_SIGMA * (float(rises[at]) - middle) / spread if spread else float("inf")
            found.append(Burst(known[at + 1][0], ratio, z))
    return found
