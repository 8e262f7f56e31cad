"""What a loss suffers: it is stuck, rose, rests too high, or is no number any more.

A symptom alone says little: healthy runs have small gradients, idle units and swings as well. So
most diagnoses ask here first whether the loss suffers. Only ratios of the loss to itself are used:
a loss in other units is judged alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .degrees import LITTLE, PART, RECENT
from .losses import Losses, levels, standstill


class Harm(NamedTuple):
    """What the loss suffers, since when, and the figure that shows it."""

    kind: str  # stuck, stood, rests, crawls, swings, above, broken
    since: int
    figure: float
    said: str


def stood(loss: Losses, least: float) -> Harm | None:
    """Did the loss stand still for a good part of the run before it began to fall?"""
    still = standstill(loss)
    if loss.start <= 0 or still < least:
        return None
    said = f"the loss did not leave {loss.reference:.4g} for {still} of {loss.n} points"
    return Harm("stood", int(loss.steps[0]), still / loss.n, said)


def stuck(loss: Losses, least: int, fall: float = 0.1) -> Harm | None:
    """Is the loss still about where it started, or flat not far below it?

    Still there: it is below its reference (its start, or guessing) by less than `fall`. Flat:
    over the latter half of the run it fell by less than a fiftieth of its start, and it is below
    its reference by less than three tenths. A run that begins where others end may stay there.
    """
    if loss.n < least or loss.is_learned:
        return None
    near = loss.fall < fall
    flat = loss.n >= 2 * least and loss.late_fall < 0.02 and loss.fall < PART
    if loss.start <= 0 or not (near or flat) or rose(loss, 1.5) or _had_learned(loss):
        return None
    since = int(loss.steps[0])
    said = f"the loss went from {loss.start:.4g} to {loss.now:.4g} in {loss.n} points"
    return Harm("stuck", since, loss.fall, said)


def _had_learned(loss: Losses) -> bool:
    """Was the loss down at half its reference once? Then it lost that, and was never stuck."""
    course = levels(loss.values, RECENT)
    return len(course) > 0 and float(course.min()) < 0.5 * loss.reference


def rose(loss: Losses, times: float) -> Harm | None:
    """Did the loss go above where it started, and stay there for some points?"""
    if loss.n < 5 or loss.start <= 0:
        return None
    course = levels(loss.values, 5)
    over = np.flatnonzero(course > times * loss.start)
    if not len(over):
        return None
    peak = float(course.max())
    said = f"the loss went from {loss.start:.4g} up to {peak:.4g}"
    at = int(over[0]) + int(np.argmax(loss.values[over[0] :] > times * loss.start))
    return Harm("above", int(loss.steps[at]), peak / loss.start, said)


def lost(loss: Losses, times: float) -> Harm | None:
    """Did the loss go above where it started, and has the run not learned since?

    First steps often throw a loss up that comes down by itself, and far. The mean is asked, not
    the median: a run that still leaps has not come back.
    """
    told = rose(loss, times)
    if told is None:
        return None
    level = min(loss.reference, float(loss.values[0]))
    fell = (level - loss.mean_now) / max(abs(level), 1e-300)
    return None if fell > PART else _dated_behind(loss, times, level, told)


def _dated_behind(loss: Losses, times: float, level: float, told: Harm) -> Harm:
    """Date a rise behind the last stretch in which the run had learned: that one stands.

    First steps threw many a loss up that came down, and was lost hundreds of steps later.
    """
    learned = np.flatnonzero(levels(loss.values, RECENT) < (1 - PART) * level)
    if not len(learned) or level <= 0:
        return told
    last = int(learned[-1])
    behind = last + int(np.argmax(loss.values[last:] > times * loss.start))
    return told._replace(since=max(told.since, int(loss.steps[behind])))


def rests(loss: Losses, least: int, low: float = PART) -> Harm | None:
    """Does the loss stand still, though it fell, at a good part of where it started?

    A symptom of the start must stand beside it: a run that is done rests as well.
    """
    if loss.n < least or loss.start <= 0 or loss.is_learned or loss.is_signed:
        return None
    if loss.now < low * loss.start:
        return None
    if loss.late_fall > LITTLE:
        return None
    said = f"the loss rests at {loss.now:.4g} (it started at {loss.start:.4g})"
    return Harm("rests", int(loss.steps[0]), loss.fall, said)


def crawls(loss: Losses, least: int) -> Harm | None:
    """Is the loss, though it falls, still at a good part of its start, or of guessing?

    As with one that rests, a symptom must stand beside it.
    """
    level = loss.start if loss.chance is None else min(loss.start, loss.chance)
    if loss.n < least or loss.start <= 0 or loss.is_learned or loss.is_signed:
        return None
    if loss.now < PART * level:
        return None
    said = f"the loss is at {loss.now:.4g} after {loss.n} points (it started at {loss.start:.4g})"
    return Harm("crawls", int(loss.steps[0]), loss.fall, said)


def worsened(loss: Losses, share: float = 0.2) -> Harm | None:
    """Did the loss lose most of what it had won, for good: a share of its start at least?"""
    if loss.n < 60 or loss.start <= 0:
        return None
    course = levels(loss.values, 20)
    lowest = int(np.argmin(course))
    low, late = float(course[lowest]), float(course[-1])
    if not (low > 0 and late > 2 * low and late - low > share * loss.start):
        return None
    said = f"the loss is back at {late:.4g} after {low:.4g} at step {int(loss.steps[lowest + 19])}"
    return Harm("above", int(loss.steps[lowest + 19]), late / low, said)


def broke(loss: Losses) -> Harm | None:
    """Did the loss cease to be a number?"""
    if loss.broken is None:
        return None
    return Harm("broken", loss.broken, 1.0, f"the loss is not a number since step {loss.broken}")


def harm(loss: Losses, least: int = 20, times: float = 1.5) -> Harm | None:
    """Return the worst that can be said of the loss, or None if it does well."""
    return broke(loss) or lost(loss, times) or stuck(loss, least) or worsened(loss)
