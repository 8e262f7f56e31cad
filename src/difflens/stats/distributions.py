"""The shape of samples: how far two distributions are apart, and whether one has several humps.

Distances only: a test of "are they equal" says yes to nothing once there are a million weights.
Histograms are counts over shared bins; samples are plain values in any order.

Humps are counted by Hartigan's dip test, the distance to the nearest distribution with one hump.
Kurtosis cannot tell: it is -2 for any two numbers and -1.5 for any three, and a uniform sample has
-1.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from .samples import sample

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Histograms(NamedTuple):
    """Two samples counted over the same bins."""

    edges: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]


def histograms(
    left: Sequence[float] | NDArray[Any], right: Sequence[float] | NDArray[Any], bins: int = 256
) -> Histograms:
    """Count both over `bins` equal bins from their common least to their common largest value."""
    import numpy as np

    one, other = sample(left, "left"), sample(right, "right")
    low, high = min(one.min(), other.min()), max(one.max(), other.max())
    edges = np.histogram_bin_edges([low, high], bins)
    return Histograms(edges, np.histogram(one, edges)[0], np.histogram(other, edges)[0])


def jensen_shannon(
    left: Sequence[float] | NDArray[Any], right: Sequence[float] | NDArray[Any]
) -> float:
    """Return (KL(p|m) + KL(q|m))/2 in nats, m the mean of both: 0 for the same, at most ln 2.

    The divergence itself, not its root as `scipy.spatial.distance.jensenshannon` gives.

    >>> round(jensen_shannon([1, 0], [0, 1]), 6)
    0.693147
    """
    return float(jensen_shannon_rows(*_shares(left, right, 0.0)))


def jensen_shannon_rows(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the divergence of each pair of distributions along the last axis."""
    import numpy as np
    from scipy.special import rel_entr

    middle = (np.asarray(left) + np.asarray(right)) / 2
    both = rel_entr(left, middle).sum(axis=-1) + rel_entr(right, middle).sum(axis=-1)
    return np.asarray(np.clip(both / 2, 0, np.log(2)))


def wasserstein(
    left: Sequence[float] | NDArray[Any], right: Sequence[float] | NDArray[Any]
) -> float:
    """Return the integral of |F^-1 - G^-1| of two samples, in their own unit; a shift gives itself.

    Equal numbers of values or of quantiles at equal levels are simply paired in order.
    """
    import numpy as np
    from scipy.stats import wasserstein_distance

    one, other = np.sort(sample(left, "left")), np.sort(sample(right, "right"))
    if len(one) == len(other):
        return float(np.abs(one - other).mean())
    return float(wasserstein_distance(one, other))


def _shares(
    left: Sequence[float] | NDArray[Any], right: Sequence[float] | NDArray[Any], pseudo: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    p, q = sample(left, "left"), sample(right, "right")
    if len(p) != len(q):
        raise ValueError(f"{len(p)} bins against {len(q)}: both must be counted over the same")
    if min(p.min(), q.min()) < 0 or not (p.sum() and q.sum()):
        raise ValueError("a histogram holds counts: none negative, and not all of them zero")
    p, q = p + pseudo, q + pseudo
    return p / p.sum(), q / q.sum()


FEWEST = 20  # values below which humps are accidents
_SIMULATED = 500  # values at most: beyond, sqrt(n) dip has its limit to within two per cent
_SERIES = 999


class Dip(NamedTuple):
    """The dip of a sample, and how often a uniform sample has one as deep."""

    dip: float
    p: float
    n: int


def dip_test(values: Sequence[float] | NDArray[Any], seed: int = 0) -> Dip | None:
    """Test for one hump against more (Hartigan & Hartigan 1985); None below FEWEST values.

    p = (1 + #{dip* >= dip})/(1 + 999) over uniform samples, the worst case of one hump.
    """
    array = sample(values, "sample")
    n = len(array)
    if n < FEWEST:
        return None
    depth = dip(array)
    null = _null(min(n, _SIMULATED), seed)
    deeper = int((null >= depth * n**0.5 - 1e-12).sum())
    return Dip(depth, (1 + deeper) / (1 + _SERIES), n)


@lru_cache(maxsize=8)
def _null(n: int, seed: int) -> NDArray[Any]:
    import numpy as np

    draws = np.random.default_rng(seed).random((_SERIES, n))
    return np.array([dip(each) * n**0.5 for each in draws])


def dip(values: Sequence[float] | NDArray[Any]) -> float:
    """Return the least sup |F - G| over all G with one hump.

    Between the greatest convex minorant and the least concave majorant of F, the stretch of their
    largest gap holds the mode; narrowed down to it until the rest departs by more (Hartigan 1985,
    algorithm AS 217). Everything is counted in units of 1/(2n).
    """
    import numpy as np

    x = np.sort(np.asarray(values, np.float64)).tolist()
    n = len(x)
    if n < 2 or x[0] == x[-1]:
        return 0.5 / max(n, 1)
    below, above = _minorant(x), _majorant(x)
    low, high, deepest = 0, n - 1, 1.0
    while True:
        convex, concave = _chain(below, high, low), _chain(above, low, high)
        gap, at_convex, at_concave = _largest_gap(x, convex, concave)
        if gap < deepest:
            break
        deepest = max(deepest, _left_of(x, convex[at_convex:]), _right_of(x, concave[at_concave:]))
        if (low, high) == (convex[at_convex], concave[at_concave]):
            break
        low, high = convex[at_convex], concave[at_concave]
    return deepest / (2 * n)


def _minorant(x: list[float]) -> list[int]:
    """Return of every point the one before it on the convex minorant that ends there."""
    before = [0]
    for j in range(1, len(x)):
        i = j - 1
        while i and (x[j] - x[i]) * (i - before[i]) >= (x[i] - x[before[i]]) * (j - i):
            i = before[i]
        before.append(i)
    return before


def _majorant(x: list[float]) -> list[int]:
    """Return of every point the one after it on the concave majorant that begins there."""
    last = len(x) - 1
    after = [last] * len(x)
    for j in range(last - 1, -1, -1):
        i = j + 1
        while i != last and (x[i] - x[j]) * (after[i] - i) >= (x[after[i]] - x[i]) * (i - j):
            i = after[i]
        after[j] = i
    return after


def _chain(links: list[int], start: int, stop: int) -> list[int]:
    chain = [start]
    while chain[-1] != stop:
        chain.append(links[chain[-1]])
    return chain


def _largest_gap(x: list[float], convex: list[int], concave: list[int]) -> tuple[float, int, int]:
    """Walk both hulls from the left; give the widest gap and where on each hull it stands."""
    if len(convex) == len(concave) == 2:
        return 1.0, 1, 1
    gap, at_convex, at_concave = 0.0, len(convex) - 1, len(concave) - 1
    i, j = len(convex) - 2, 1  # convex runs from the right end to the left
    while True:
        low, high = convex[i], concave[j]
        if low > high:
            start = convex[i + 1]
            rise = (x[high] - x[start]) * (low - start) / (x[low] - x[start])
            here = (high - start + 1) - rise
            j += 1
            if here >= gap:
                gap, at_convex, at_concave = here, i + 1, j - 1
        else:
            start = concave[j - 1]
            rise = (x[low] - x[start]) * (high - start) / (x[high] - x[start])
            here = rise - (low - start - 1)
            i -= 1
            if here >= gap:
                gap, at_convex, at_concave = here, i + 1, j
        i, j = max(i, 0), min(j, len(concave) - 1)
        if convex[i] == concave[j]:
            return gap, at_convex, at_concave


def _left_of(x: list[float], convex: list[int]) -> float:
    """Return how far F rises above its convex minorant left of the modal stretch."""
    deepest = 0.0
    for end, start in pairwise(convex):
        if end - start > 1 and x[end] != x[start]:
            slope = (end - start) / (x[end] - x[start])
            spots = range(start, end + 1)
            deepest = max(deepest, *((k - start + 1) - (x[k] - x[start]) * slope for k in spots))
        deepest = max(deepest, 1.0)
    return deepest


def _right_of(x: list[float], concave: list[int]) -> float:
    """Return how far F falls below its concave majorant right of the modal stretch."""
    deepest = 0.0
    for start, end in pairwise(concave):
        if end - start > 1 and x[end] != x[start]:
            slope = (end - start) / (x[end] - x[start])
            spots = range(start, end + 1)
            deepest = max(deepest, *((x[k] - x[start]) * slope - (k - start - 1) for k in spots))
        deepest = max(deepest, 1.0)
    return deepest
