"""The bootstrap: an interval for any statistic, by resampling what was seen.

BCa, bias-corrected and accelerated (Efron 1987): the plain percentile interval is off by the
skewness of the statistic. Where BCa is undefined the percentile interval is what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .samples import probability, sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AT_ONCE = 2_000_000  # values held in memory at a time


class Bootstrapped(NamedTuple):
    """A statistic with an interval; low and high are None if nothing can be resampled."""

    value: float
    low: float | None
    high: float | None
    level: float
    method: str
    resamples: int
    seed: int
    standard_error: float | None
    note: str = ""


def bootstrap(
    samples: Sequence[Sequence[float]],
    statistic: Callable[..., Any],
    *,
    level: float = 0.95,
    resamples: int = 9999,
    seed: int = 0,
    paired: bool = False,
    vectorised: bool = False,
) -> Bootstrapped:
    """Return `statistic(*samples)` with a BCa interval.

    With `paired`, all samples are resampled at the same places. A `vectorised` statistic takes
    a keyword `axis` and is called on many resamples at once.

    >>> bootstrap([[1.0, 2.0, 4.0, 8.0]], max, resamples=99).value
    8.0
    """
    import numpy as np

    probability(level, "level")
    arrays = [sample(each, f"sample {place}") for place, each in enumerate(samples, 1)]
    if paired and len({array.size for array in arrays}) > 1:
        raise ValueError("paired samples have as many values each")
    value = float(statistic(*arrays))
    if min(array.size for array in arrays) < 2:
        note = "fewer than two values in a sample, so nothing can be resampled"
        return Bootstrapped(value, None, None, level, "bootstrap", resamples, seed, None, note)
    with np.errstate(all="ignore"):  # a resample may be degenerate, and is then left out
        draws = _draws(arrays, resamples, seed, paired=paired)
        drawn = np.concatenate([_applied(statistic, rows, vectorised=vectorised) for rows in draws])
        left_out = _jackknifed(arrays, statistic, paired=paired)
    return interval(value, drawn, left_out, level, seed)


def interval(
    value: float,
    drawn: NDArray[np.float64],
    left_out: Sequence[NDArray[np.float64]],
    level: float,
    seed: int,
) -> Bootstrapped:
    """Read the interval off the resampled values, shifted by bias and acceleration.

    z0 = Φ⁻¹(#{θ* < θ}/B), ties by half; a = Σ_k Σ_i U³/n_k³ / (6 (Σ_k Σ_i U²/n_k²)^1.5) with
    U = (n_k - 1)(mean of θ_(i) - θ_(i)); the tails are Φ(z0 + (z0 + z) / (1 - a (z0 + z))).
    """
    import numpy as np
    from scipy.special import ndtr, ndtri

    kept = drawn[np.isfinite(drawn)]
    lost = f"{drawn.size - kept.size} resamples gave no number" if kept.size < drawn.size else ""
    if kept.size < 2:
        return Bootstrapped(value, None, None, level, "bootstrap", drawn.size, seed, None, lost)
    rank = (np.count_nonzero(kept < value) + np.count_nonzero(kept <= value)) / 2 / kept.size
    bias, acceleration = float(ndtri(rank)), _acceleration(left_out)
    z = bias + ndtri(np.array([1 - level, 1 + level]) / 2)
    method, tails = "bca", ndtr(bias + z / (1 - acceleration * z))
    if not (np.isfinite(tails).all() and (acceleration * z < 1).all()):
        method, tails = "percentile", np.array([1 - level, 1 + level]) / 2
        lost = lost or "bca is undefined: the resamples lie on one side, or nothing varies"
    low, high = np.quantile(kept, tails)
    error = float(kept.std(ddof=1))
    return Bootstrapped(
        value, float(low), float(high), level, method, drawn.size, seed, error, lost
    )


def _acceleration(left_out: Sequence[NDArray[np.float64]]) -> float:
    import numpy as np

    influences = [(each.size - 1) * (each.mean() - each) for each in left_out]
    squares = sum(float((u**2).sum()) / u.size**2 for u in influences)
    if not squares or not np.isfinite(squares):
        return float("nan")
    cubes = sum(float((u**3).sum()) / u.size**3 for u in influences)
    return float(cubes / (6 * squares**1.5))


def _applied(
    statistic: Callable[..., Any], rows: list[NDArray[np.float64]], *, vectorised: bool
) -> NDArray[np.float64]:
    import numpy as np

    if vectorised:
        return np.asarray(statistic(*rows, axis=-1), dtype=np.float64)
    return np.array([float(statistic(*each)) for each in zip(*rows, strict=True)])


def _draws(
    arrays: list[NDArray[np.float64]], resamples: int, seed: int, *, paired: bool
) -> Iterator[list[NDArray[np.float64]]]:
    import numpy as np

    generator = np.random.default_rng(seed)
    step = max(1, _AT_ONCE // sum(array.size for array in arrays))
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        if paired:
            places = generator.integers(0, arrays[0].size, (count, arrays[0].size))
            yield [array[places] for array in arrays]
        else:
            yield [
                array[generator.integers(0, array.size, (count, array.size))] for array in arrays
            ]


def _jackknifed(
    arrays: list[NDArray[np.float64]], statistic: Callable[..., Any], *, paired: bool
) -> list[NDArray[np.float64]]:
    import numpy as np

    if paired:
        places = range(arrays[0].size)
        return [np.array([float(statistic(*(np.delete(a, i) for a in arrays))) for i in places])]
    return [
        np.array(
            [
                float(statistic(*arrays[:k], np.delete(array, i), *arrays[k + 1 :]))
                for i in range(array.size)
            ]
        )
        for k, array in enumerate(arrays)
    ]
