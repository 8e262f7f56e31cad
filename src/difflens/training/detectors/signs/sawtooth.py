"""A loss that falls, jumps up and falls again: what sorted examples make of it.

Noise of small batches jumps as well, but down as often as up, and forgets at once. A sawtooth has
rare large jumps up among many small steps down (skewed differences), and it remembers: one value
is like the one before it (autocorrelation). A loss that was thrown away swings too, above its
start; teeth begin below it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from difflens.stats.samples import robust_deviation

from .degrees import FEW, HALF, LONG, MOST, PART, SLIGHTLY
from .losses import Losses

_EVEN = 2  # gaps at least of teeth that begin midway, all of them one period


class Sawtooth(NamedTuple):
    """How many jumps, how skewed the steps are, how much a value is like the last, how often."""

    jumps: int
    skewness: float
    memory: float
    period: float
    since: int
    is_regular: bool  # do most jumps lie one period apart? Chance does not do that


def sawtooth(loss: Losses) -> Sawtooth | None:
    """Measure the teeth of a loss; None if it is short or has none.

    Teeth become smaller as all classes are learned, so the beginning is asked for itself as well.
    An order may also begin midway: the latter half is asked, and its jumps must keep a period.
    """
    parts = [
        _teeth(loss._replace(steps=loss.steps[:stop], values=loss.values[:stop]))
        for stop in (loss.n, loss.n // 2, loss.n // 4)
    ]
    parts.append(_teeth(loss, loss.n // 2))
    found = [each for each in parts if each is not None]
    return max(found, key=lambda each: (each.is_regular, each.skewness), default=None)


def _teeth(loss: Losses, since: int = 0) -> Sawtooth | None:
    """Measure the teeth from a point on, by where the run began."""
    steps, height = loss.steps[since:], loss.values[since:]
    if len(height) < LONG or loss.start <= 0:
        return None
    values = np.log(np.maximum(height, 1e-3 * loss.size))
    moves = np.diff(values)
    spread = float(moves.std())
    if spread <= 0:
        return None
    skewness = float(((moves - moves.mean()) ** 3).mean()) / spread**3
    centred = values - values.mean()
    memory = float((centred[1:] * centred[:-1]).sum() / max((centred**2).sum(), 1e-300))
    usual = float(robust_deviation(moves))
    large = moves > max(4 * usual, SLIGHTLY)  # a jump is at least threefold
    low = height[:-1] < min(loss.start, float(loss.values[0]))
    high = height[1:] > HALF * loss.start  # a jump goes up to about where it began
    jumps = np.flatnonzero(large & high & low)
    if not len(jumps) or memory < PART:
        return None
    gaps = np.diff(jumps)
    period = float(np.median(gaps)) if len(gaps) else float(len(height))
    if len(jumps) * period < HALF * len(height):  # teeth stand all along it
        return None
    even = float((np.abs(gaps - period) <= 1).mean()) if len(gaps) else 0.0
    if since and (len(gaps) < _EVEN or even < 1):
        return None
    regular = bool(since) or (len(gaps) >= FEW and even >= MOST)
    return Sawtooth(len(jumps), skewness, memory, period, int(steps[jumps[0] + 1]), regular)
