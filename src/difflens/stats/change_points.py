"""Where a history jumps, and when a metric that is watched has drifted.

Jumps are E-divisive change points with a permutation test of the largest jump. Road not taken:
Hunter (now Apache Otava) puts a t-test at the split it has just selected. That is fast, but its p
is a score: on 100 values of pure noise it finds a change in 68 of 100 series at 0.05. Here the
null repeats the selection, so p keeps its word. The paper also lets the right half of a split end
early; a jump there and back is found without, one split at a time.

Drift is watched by cumulative sums, as values come in; the price in false alarms is stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from .samples import sample, variance

if TYPE_CHECKING:
    from numpy.typing import NDArray


LEAST = 2  # points on each side of a split: one alone is an outlier, not a regime


class ChangePoint(NamedTuple):
    """A jump: the first index of the new regime, and the means of the regimes beside it."""

    index: int  # type: ignore[assignment]  # the tuple's method of that name is no loss
    p: float
    before: float
    after: float


class _Null(NamedTuple):
    """How the largest statistic behaves where nothing changed."""

    series: int
    seed: int
    phi: float


def change_points(
    values: Sequence[float],
    *,
    alpha: float = 0.05,
    permutations: int = 999,
    seed: int = 0,
    window: int | None = None,
    least_magnitude: float = 0.0,
    phi: float = 0.0,
) -> tuple[ChangePoint, ...]:
    """Find the indices at which the distribution changes (Matteson and James 2014).

    Each split maximises m n/(m + n) times the energy distance of its sides; it stands if
    p = (1 + #{null >= it})/(1 + permutations) is at most alpha, the null being all segments
    shuffled, or AR(1) series where `phi` names the noise's autocorrelation. With `window`, half
    overlapping windows only propose; each proposal is tested between its neighbours, and the
    least certain is dropped until all stand. Jumps of less than `least_magnitude` of the mean
    before are merged away, smallest first.
    """
    if len(values) < 2 * LEAST:
        return ()
    series = sample(values, "history")
    null = _Null(permutations, seed, phi)
    if window is None or window >= len(series):
        found = _divide(series, alpha, null)
    else:
        found = _in_windows(series, max(window, 2 * LEAST), alpha, null)
    kept = _large_enough(series, found, least_magnitude)
    means = _means(series, list(kept))
    return tuple(
        ChangePoint(index, kept[index], before, after)
        for index, (before, after) in zip(sorted(kept), pairwise(means), strict=True)
    )


def _divide(series: NDArray[Any], alpha: float, null: _Null) -> dict[int, float]:
    """Split again and again where the statistic is largest, until a split may be chance."""
    import numpy as np

    found: dict[int, float] = {}
    splits: dict[tuple[int, int], tuple[float, int]] = {}
    nulls: dict[tuple[int, int], NDArray[Any]] = {}
    while True:
        segments = list(pairwise([0, *sorted(found), len(series)]))
        for start, stop in segments:
            if (start, stop) not in splits:
                splits[start, stop] = _best(series[start:stop])
                nulls[start, stop] = _largest(_without_change(series[start:stop], null, start))
        start, stop = max(segments, key=lambda segment: splits[segment][0])
        value, index = splits[start, stop]
        largest = np.max([nulls[segment] for segment in segments], axis=0)
        p = _p(largest, value)
        if p > alpha:
            return found
        found[start + index] = p


def _in_windows(series: NDArray[Any], window: int, alpha: float, null: _Null) -> dict[int, float]:
    """Search half-overlapping windows, then keep what stands between its neighbours."""
    starts = list(range(0, len(series) - window // 2, window // 2))
    seen: set[int] = set()
    for start in starts:
        part = series[start : start + window]
        seen |= {start + index for index in _divide(part, alpha, null)}
    while True:
        bounds = [0, *sorted(seen), len(series)]
        tested = {
            index: _tested(series[before:after], null, before)
            for before, index, after in zip(bounds, bounds[1:], bounds[2:], strict=False)
        }
        worst = max(tested, key=lambda index: tested[index][1], default=None)
        if worst is None or tested[worst][1] <= alpha:
            return dict(tested.values())
        seen.remove(worst)


def _tested(segment: NDArray[Any], null: _Null, offset: int) -> tuple[int, float]:
    """Return the best split of a segment, counted from the series' start, and its p."""
    value, index = _best(segment)
    return offset + index, _p(_largest(_without_change(segment, null, offset)), value)


def _p(largest: NDArray[Any], value: float) -> float:
    """Count the null at least as large; sums in another order differ by rounding."""
    return float((1 + int((largest >= value * (1 - 1e-9)).sum())) / (1 + len(largest)))


def _best(segment: NDArray[Any]) -> tuple[float, int]:
    """Return the largest statistic of all splits and where it is; zero if nothing varies."""
    import numpy as np

    if len(segment) < 2 * LEAST or segment.min() == segment.max():
        return 0.0, 0
    statistics = _statistics(segment[:, None])[:, 0]
    place = int(np.argmax(statistics))
    return float(statistics[place]), place + LEAST


def _largest(null: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    if len(null) < 2 * LEAST:
        return np.zeros(null.shape[1])
    return np.asarray(_statistics(null).max(axis=0))


def _statistics(series: NDArray[Any]) -> NDArray[Any]:
    """Return the statistic of every split (rows) of every series (columns).

    With sooner_j and later_j the sums of |x_j - x_i| over i < j and i > j, the distances within
    the left side are a running sum of `sooner`, those that touch it a running sum of `later`.
    """
    import numpy as np

    n = len(series)
    sooner, later = np.zeros(series.shape), np.zeros(series.shape)
    for j in range(1, n):
        gaps = np.abs(series[:j] - series[j])
        sooner[j] = gaps.sum(axis=0)
        later[:j] += gaps
    m = np.arange(LEAST, n - LEAST + 1)[:, None]
    left = np.cumsum(sooner, axis=0)[LEAST - 1 : n - LEAST]
    touching = np.cumsum(later, axis=0)
    right = touching[-1] - touching[LEAST - 1 : n - LEAST]
    between = touching[-1] - left - right
    energy = 2 * between / (m * (n - m)) - 2 * left / (m * (m - 1))
    energy -= 2 * right / ((n - m) * (n - m - 1))
    return np.asarray(m * (n - m) / n * energy)


def _without_change(segment: NDArray[Any], null: _Null, offset: int) -> NDArray[Any]:
    """Make series as the segment would be without a change, one a column."""
    import numpy as np

    random = np.random.default_rng([null.seed, offset, len(segment)])
    shape = (len(segment), null.series)
    if null.phi == 0:
        return random.permuted(np.broadcast_to(segment[:, None], shape), axis=0)
    noise = random.standard_normal(shape)
    noise[1:] *= (1 - null.phi**2) ** 0.5
    for step in range(1, len(noise)):
        noise[step] += null.phi * noise[step - 1]
    return np.asarray(noise * segment.std())


def _large_enough(series: NDArray[Any], found: dict[int, float], least: float) -> dict[int, float]:
    """Merge regimes whose means differ by less than a share of the mean before."""
    kept = dict(found)
    while kept:
        means = _means(series, list(kept))
        sizes = {
            index: abs(after - before) - least * abs(before)
            for index, (before, after) in zip(sorted(kept), pairwise(means), strict=True)
        }
        smallest = min(sizes, key=lambda index: sizes[index])
        if least <= 0 or sizes[smallest] >= 0:
            break
        del kept[smallest]
    return kept


def _means(series: NDArray[Any], found: list[int]) -> list[float]:
    bounds = pairwise([0, *sorted(found), len(series)])
    return [float(series[start:stop].mean()) for start, stop in bounds]


BASELINE = 20  # baseline points below which mean and deviation are too rough to watch by
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

    phi is (n r + 1)/(n - 3), zero if it is at most 0.3. None below 20 points or where they do
    not vary.
    """
    n = len(values)
    if n < BASELINE:
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
    """Return how many values pass on average before either sum passes h, when z has mean `shift`.

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
