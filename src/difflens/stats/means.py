"""Two means of independent samples: Welch's test, Yuen's trimmed means, a permutation test.

Not Student's test: with unequal sizes and variances its error rate is not what it says, and
where they are equal Welch's loses next to nothing (Delacre, Lakens & Leys 2017).

Yuen's is for samples with a few wild values.

The permutation test is studentised. When the variances differ, relabelling makes them equal, and
a test of the plain difference is wrong. Divided by its own standard error the test is exact when
both laws are the same, and still right for large samples when only the means are (Janssen 1997;
Chung & Romano 2013).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .comparison import Comparison, by_t
from .effect import hedges_g
from .samples import probability, sample, variance

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


METHOD = "welch"


def welch(left: Sequence[float], right: Sequence[float], level: float = 0.95) -> Comparison:
    """Compare two means: t = d / sqrt(s_l²/n_l + s_r²/n_r), df by Satterthwaite (Welch 1947).

    df = (s_l²/n_l + s_r²/n_r)² / Σ (s²/n)² / (n - 1). The effect is Hedges' g.

    >>> welch([1.0, 2.0, 3.0], [2.0, 3.0, 4.0]).difference
    1.0
    """
    probability(level, "level")
    before, after = sample(left, "left"), sample(right, "right")
    difference = float(after.mean() - before.mean())
    sizes = before.size, after.size
    if min(sizes) < 2:
        note = "fewer than two values on a side, so no spread is known"
        return Comparison(difference, None, None, level, None, METHOD, *sizes, note=note)
    parts = variance(before) / before.size, variance(after) / after.size
    total = sum(parts)
    if not total:
        note = "both sides are constant, so there is no spread to test against"
        return Comparison(difference, None, None, level, None, METHOD, *sizes, note=note)
    # As shares of the total: their squares neither overflow nor vanish, whatever the unit.
    df = 1 / sum((part / total) ** 2 / (n - 1) for part, n in zip(parts, sizes, strict=True))
    effect = hedges_g(left, right, level)
    found = by_t(difference, total**0.5, df, level, METHOD, sizes)
    return found._replace(effect=effect.g, effect_low=effect.low, effect_high=effect.high)


def yuen(
    left: Sequence[float], right: Sequence[float], trim: float = 0.2, level: float = 0.95
) -> Comparison:
    """Compare the means of what is left when `trim` of the values is cut off at each end.

    t = d / sqrt(q_l + q_r), q = (n - 1) s_w² / (h (h - 1)): s_w² is the winsorised variance, h
    the number of values kept; df = (q_l + q_r)² / Σ q² / (h - 1) (Yuen 1974).
    """
    probability(level, "level")
    if not 0 <= trim < 0.5:
        raise ValueError(f"trim is {trim!r}, it must be at least 0 and below 0.5")
    before, after = sample(left, "left"), sample(right, "right")
    left_mean, left_part, left_kept = _trimmed(before, trim)
    right_mean, right_part, right_kept = _trimmed(after, trim)
    difference, total = right_mean - left_mean, left_part + right_part
    method, sizes = f"yuen, {trim:g} trimmed", (before.size, after.size)
    if min(left_kept, right_kept) < 2 or not total:
        note = "what is left after trimming has no spread to test against"
        return Comparison(difference, None, None, level, None, method, *sizes, note=note)
    shares = left_part / total, right_part / total
    df = 1 / (shares[0] ** 2 / (left_kept - 1) + shares[1] ** 2 / (right_kept - 1))
    return by_t(difference, total**0.5, df, level, method, sizes)


def _trimmed(array: NDArray[np.float64], trim: float) -> tuple[float, float, int]:
    import numpy as np

    ordered = np.sort(array)
    cut = int(trim * array.size)
    kept = ordered[cut : array.size - cut]
    if kept.size < 2:
        return float(kept.mean()), 0.0, kept.size
    spread = variance(np.clip(array, kept[0], kept[-1]))
    part = (array.size - 1) * spread / (kept.size * (kept.size - 1))
    return float(kept.mean()), part, kept.size


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
    """Return Welch's t of each row against the rest of the pool, which sums to zero."""
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
