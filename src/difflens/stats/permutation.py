"""The permutation test of two means, studentised.

Not the plain difference: when the variances differ, relabelling makes them equal and the test
wrong. Divided by its own standard error the test is exact when both laws are the same, and
still right for large samples when only the means are (Janssen 1997; Chung & Romano 2013).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .comparison import Comparison
from .samples import sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AT_ONCE = 2_000_000  # values held in memory at a time
_ALL = 12_870  # splits of eight and eight: up to this many, every one is looked at
_TIE = 1 - 1e-9  # statistics that differ by rounding alone are ties


def permutation(
    left: Sequence[float], right: Sequence[float], resamples: int = 9999, seed: int = 0
) -> Comparison:
    """Test equal means by relabelling: p = (1 + #{|t*| >= |t|}) / (1 + B), or exact.

    All splits are looked at where there are no more than `resamples` or 12,870 of them.
    """
    import numpy as np

    before, after = sample(left, "left"), sample(right, "right")
    difference = float(after.mean() - before.mean())
    sizes = before.size, after.size
    if min(sizes) < 2:
        note = "fewer than two values on a side, so no spread is known"
        return Comparison(difference, None, None, 0.95, None, "permutation", *sizes, note=note)
    pool = np.concatenate([before, after])
    pool -= pool.mean()  # sums of squares about the mean keep their digits
    statistic = float(_studentised(pool[None, before.size :], pool)[0])
    exact = _splits(*sizes) <= max(resamples, _ALL)
    drawn = _every(pool, after.size) if exact else _random(pool, after.size, resamples, seed)
    count, far = 0, 0
    for chosen in drawn:
        count += len(chosen)
        far += int(np.count_nonzero(np.abs(_studentised(chosen, pool)) >= abs(statistic) * _TIE))
    p = far / count if exact else (1 + far) / (1 + count)
    return Comparison(
        difference,
        None,
        None,
        0.95,
        p,
        f"permutation, {'exact' if exact else f'{resamples} resamples, seed {seed}'}",
        *sizes,
        statistic=statistic if np.isfinite(statistic) else None,
        note="a test without an interval",
        p_error=0.0 if exact else (p * (1 - p) / count) ** 0.5,
    )


def _studentised(chosen: NDArray[np.float64], pool: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give Welch's t of each row against the rest of the pool, which sums to zero."""
    import numpy as np

    n, rest = chosen.shape[1], pool.size - chosen.shape[1]
    mean = chosen.mean(axis=1)
    inside = np.maximum(((chosen - mean[:, None]) ** 2).sum(axis=1), 0.0)
    other = -mean * n / rest
    outside = (pool**2).sum() - (chosen**2).sum(axis=1) - rest * other**2
    # What cancelling leaves of a spread or a gap of zero is zero.
    noise = 2.0**-44 * float((pool**2).sum())
    inside, outside = np.where(inside > noise, inside, 0), np.where(outside > noise, outside, 0)
    error = np.sqrt(inside / (n - 1) / n + outside / (rest - 1) / rest)
    gap = mean - other
    gap = np.where(np.abs(gap) > 2.0**-46 * np.abs(pool).max(), gap, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        t: NDArray[np.float64] = gap / error
    return np.where(gap == 0, 0.0, t)


def _splits(left: int, right: int) -> int:
    from math import comb

    return comb(left + right, right)


def _every(pool: NDArray[np.float64], size: int) -> Iterator[NDArray[np.float64]]:
    from itertools import combinations

    import numpy as np

    places = np.array(list(combinations(range(pool.size), size)))
    for part in np.array_split(places, -(-places.size // _AT_ONCE)):
        yield pool[part]


def _random(
    pool: NDArray[np.float64], size: int, resamples: int, seed: int
) -> Iterator[NDArray[np.float64]]:
    import numpy as np

    generator = np.random.default_rng(seed)
    step = max(1, _AT_ONCE // pool.size)
    for start in range(0, resamples, step):
        rows = np.tile(pool, (min(step, resamples - start), 1))
        yield generator.permuted(rows, axis=1)[:, :size]
