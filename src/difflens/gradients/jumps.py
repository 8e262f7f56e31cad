"""Norms that jump: a change far beyond the layer's own changes, to far above its own past."""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .flow import LogNorms
    from .thresholds import GradientThresholds

MOST = 20  # jumps looked at, the largest
_LEAST_BEFORE = 5  # records that make a past
_LEAST_AFTER = 3  # records that show whether it lasts


class Jump(NamedTuple):
    """One jump of a norm: when, how far above the records before it, and what came after."""

    step: int
    ratio: float
    z: float
    lasts: bool  # the records after it stay up
    holds: bool  # and so do the latest


def jumps(series: LogNorms, limits: GradientThresholds) -> list[Jump]:
    """Find the jumps, in the order of steps: z of one change, and the ratio to the past."""
    changes = np.diff(series.values)
    if len(changes) < _LEAST_BEFORE:
        return []
    usual = changes - np.median(changes)
    z = usual / _scale(usual)
    places = np.flatnonzero(z > limits.jump_z)
    if len(places) > MOST:
        places = np.sort(places[np.argsort(-changes[places], kind="stable")[:MOST]])
    found = (_jump(series, int(place) + 1, float(z[place]), limits) for place in places)
    return [each for each in found if each is not None]


def _scale(usual: NDArray[np.float64]) -> float:
    """Give the robust deviation of the changes; their mean size where half of them are zero."""
    apart = np.abs(usual)
    spread = 1.4826 * float(np.median(apart)) or 1.2533 * float(apart.mean())
    return max(spread, 1e-6)


def _jump(series: LogNorms, at: int, z: float, limits: GradientThresholds) -> Jump | None:
    values, up = series.values, log(limits.jump_ratio)
    before = values[max(0, at - limits.trailing) : at]
    if len(before) < _LEAST_BEFORE:
        return None
    level = float(np.median(before))
    ratio = float(values[at]) - level
    if ratio < up:
        return None
    after = values[at : at + limits.trailing]
    lasts = len(after) >= _LEAST_AFTER and float(np.median(after)) - level >= up
    holds = lasts and float(np.median(values[-_LEAST_BEFORE:])) - level >= up
    return Jump(int(series.steps[at]), exp(min(ratio, 700.0)), z, lasts, holds)
