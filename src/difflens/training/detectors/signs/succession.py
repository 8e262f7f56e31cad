"""Whether one batch's loss tells the next one's, or that of the batch a period later.

Of shuffled examples a batch says nothing of the next, beyond the level that held-back data shows
as well. Where neighbours cost alike, up and down, and the held-back loss does not go along, or
where all that repeats itself period after period, the batches come in an order. Steps that throw
the loss about throw the held-back loss as well, and keep no period.
"""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflens.stats.samples import robust_deviation

from .degrees import FAR, FEW, HALF, LASTING, PART, SEVERAL, SHORT, THRICE
from .losses import Losses

_LEAST_LOOKS = 4
_RARE = 95  # per cent
_TWICE = log(2)


class Succession(NamedTuple):
    """How much a loss is like the one before and the one a period before, and how far it goes."""

    memory: float  # autocorrelation of neighbours, about a running median
    repeats: float  # the same of points one period apart
    period: int  # the one at which it repeats itself most
    spread: float  # of ln(loss) about its running median
    swings: int  # turns by a factor of two at least, twice those of the calmer half


def succession(loss: Losses) -> Succession | None:
    """Measure it; None if losses are not positive or too few."""
    late = loss.n // SEVERAL  # the first fifth
    if loss.n < LASTING or loss.values.min() <= 0:
        return None
    if np.median(loss.values[late:]) > THRICE * loss.values[0] or _is_thrown(loss):
        return None  # what was thrown away swings too
    logs = np.log(loss.values[late:])
    rest = logs - _course(logs)
    usual = float(robust_deviation(rest, 0.0))
    rest = np.clip(rest, -THRICE * usual, THRICE * usual)  # lest one event be all that it remembers
    alike = _autocorrelation(rest)
    if alike is None:
        return None
    if _is_a_cycle(alike):
        return None
    period, repeats = _comes_back(alike)
    level = np.convolve(logs, np.full(SEVERAL, 1 / SEVERAL), "valid")
    # All along the run: one event makes turns as well, but in one place.
    halves = [_turns(level[: len(level) // 2]), _turns(level[len(level) // 2 :])]
    spread = float(rest.std())
    return Succession(float(alike[1]), repeats, period, spread, 2 * min(halves))


def goes_apart(loss: Losses, held_back: Losses) -> float:
    """Return the spread of ln(held-back / training loss) about its trend; 0 if too short."""
    looks = held_back.steps >= loss.steps[loss.n // SEVERAL]
    if int(looks.sum()) < _LEAST_LOOKS or held_back.values[looks].min() <= 0:
        return 0.0
    places = np.searchsorted(loss.steps, held_back.steps[looks], "right")
    levels = [np.mean(loss.values[max(at - SEVERAL, 0) : at]) for at in places]
    ratios = np.log(held_back.values[looks] / np.array(levels))
    along = np.arange(len(ratios))
    return float((ratios - np.polyval(np.polyfit(along, ratios, 1), along)).std())


def _is_thrown(loss: Losses) -> bool:
    """Does it cost more, again and again, than answers that are sure and wrong?

    What one stretch teaches and the next forgets is bounded by how sure the answers are: far
    beyond that, steps threw the weights. One event may be of another kind.
    """
    most = FAR * max(loss.size, loss.chance or 0.0)
    return float(np.percentile(loss.values, _RARE)) > most


def _course(values: NDArray[Any]) -> NDArray[Any]:
    """Return the running median, over as much as there is at both ends."""
    half = min(LASTING, len(values)) // 2
    padded = np.pad(values, half, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    return np.asarray(np.nanmedian(windows, axis=1))


def _autocorrelation(rest: NDArray[Any]) -> NDArray[Any] | None:
    """Return it for lags up to a third of the points, each by as many pairs as there are."""
    most = len(rest) // FEW
    power = float((rest**2).mean())
    if power <= 0 or most <= SHORT:
        return None
    padded = np.fft.rfft(rest, 2 * len(rest))
    sums = np.fft.irfft(np.abs(padded) ** 2)[: most + 1]
    return np.asarray(sums / (len(rest) - np.arange(most + 1)) / power)


def _comes_back(alike: NDArray[Any]) -> tuple[int, float]:
    """Return the lag at which the series repeats after it had stopped to: a trend only fades."""
    other = np.flatnonzero(alike < PART)
    since = max(SHORT, int(other[0])) if len(other) else len(alike)
    if since >= len(alike):
        return 0, 0.0
    at = since + int(np.argmax(alike[since:]))
    return at, float(alike[at])


def _is_a_cycle(alike: NDArray[Any]) -> bool:
    """Does it come back within a few steps already? That is a step that is too large, no epoch."""
    return any(alike[k] > HALF and alike[1:k].min() < PART for k in range(2, SHORT))


def lasting_turns(logs: NDArray[Any]) -> int:
    """Count the turns of ln(loss), a few points taken together, by a factor of two at least."""
    short = len(logs) < SEVERAL
    return 0 if short else _turns(np.convolve(logs, np.full(SEVERAL, 1 / SEVERAL), "valid"))


def _turns(level: NDArray[Any]) -> int:
    """Count how often it turns, by a factor of two at least each way."""
    turns, way, edge = 0, 0.0, float(level[0])
    for value in level.tolist():
        if way * (value - edge) > 0:
            edge = value
        elif abs(value - edge) > _TWICE:
            turns, way, edge = turns + 1, 1.0 if value > edge else -1.0, value
    return turns
