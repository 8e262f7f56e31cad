"""Watching a metric as it comes in: cumulative sums, with the price in false alarms said."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from .samples import sample, variance

LEAST = 20  # baseline points below which mean and deviation are too rough to watch by
WHITEN = 0.3  # autocorrelation of the baseline from which residuals are taken


class Cusum(NamedTuple):
    """Both sums after each value, where they passed h, and how rarely noise would do so."""

    up: tuple[float, ...]
    down: tuple[float, ...]
    alarms: tuple[int, ...]
    in_control_run_length: float


class Baseline(NamedTuple):
    """What a metric does when all is well."""

    mean: float
    deviation: float
    phi: float
    n: int


def baseline(values: Sequence[float]) -> Baseline | None:
    """Learn mean, deviation and lag-1 correlation of a quiet period.

    phi is (n r + 1)/(n - 3), zero where it is at most 0.3. None below 20 points or where they do
    not vary.
    """
    n = len(values)
    if n < LEAST:
        return None
    quiet = sample(values, "baseline")
    spread = variance(quiet)
    if spread == 0:
        return None
    centred = quiet - quiet.mean()
    r = float(centred[1:] @ centred[:-1]) / float(centred @ centred)
    phi = max(-0.98, min(0.98, (n * r + 1) / (n - 3)))
    return Baseline(float(quiet.mean()), spread**0.5, phi if abs(phi) > WHITEN else 0.0, n)


def cusum(
    values: Sequence[float],
    mean: float,
    deviation: float,
    k: float = 0.5,
    h: float = 5.0,
    *,
    phi: float = 0.0,
) -> Cusum:
    """Sum what exceeds the mean by more than k deviations; alarm above h (Page 1954).

    up = max(0, up + z - k), down = max(0, down - z - k), z = (x - mean)/deviation; both start anew
    after an alarm. With phi, z is the residual (z_t - phi z_(t-1))/sqrt(1 - phi^2).
    """
    if deviation <= 0:
        raise ValueError(f"deviation {deviation}: a baseline that does not vary cannot be watched")
    series = (
        [(float(x) - mean) / deviation for x in sample(values, "values")] if len(values) else []
    )
    whitened = [(z - phi * before) / (1 - phi * phi) ** 0.5 for before, z in pairwise(series)]
    up: list[float] = []
    down: list[float] = []
    alarms: list[int] = []
    high = low = 0.0
    for index, z in enumerate(series[:1] + whitened):
        high, low = max(0.0, high + z - k), max(0.0, low - z - k)
        up.append(high)
        down.append(low)
        if max(high, low) > h:
            alarms.append(index)
            high = low = 0.0
    return Cusum(tuple(up), tuple(down), tuple(alarms), run_length(k, h))


@lru_cache(maxsize=64)
def run_length(k: float, h: float, shift: float = 0.0) -> float:
    """Give how many values pass on average before either sum passes h, when z has mean `shift`.

    1/L = 1/L_up + 1/L_down, each the solution of Page's integral equation
    L(s) = 1 + L(0) Phi(k - s) + integral of L(x) phi(x - s + k) over (0, h), by Gauss-Legendre.

    >>> round(run_length(0.5, 5.0)), round(run_length(0.5, 5.0, shift=1.0), 1)
    (465, 10.4)
    """
    return 1 / (1 / _one_sided(k - shift, h) + 1 / _one_sided(k + shift, h))


def _one_sided(k: float, h: float, nodes: int = 40) -> float:
    import numpy as np
    from scipy.special import ndtr

    points, weights = np.polynomial.legendre.leggauss(nodes)
    at = np.concatenate(([0.0], (points + 1) * h / 2))
    gap = at[None, 1:] - at[:, None] + k
    step = np.exp(-(gap**2) / 2) / (2 * np.pi) ** 0.5 * (weights * h / 2)
    system = np.eye(nodes + 1)
    system[:, 0] -= ndtr(k - at)
    system[:, 1:] -= step
    return float(np.linalg.solve(system, np.ones(nodes + 1))[0])
