"""Does a series scatter more in its second half than in its first?

The interquartile range of either half, and an interval of their ratio by resampling blocks of
neighbours: a plain bootstrap would break up what resembles its neighbours and be too sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .samples import sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST = 40
_MOST = 2000  # points: longer series are cut to their latest


class Scatter(NamedTuple):
    """The ratio of the ranges, second half by first, with its interval."""

    value: float
    low: float
    high: float
    level: float
    n: int


def scatter_ratio(
    values: Sequence[float] | NDArray[Any],
    level: float = 0.95,
    replicates: int = 399,
    seed: int = 0,
) -> Scatter | None:
    """Compare the halves by a moving-block bootstrap of ln IQR in each (Künsch 1989).

    Blocks have 2 n^(1/3) points of a half. The interval is that of a normal about the estimate,
    with the bootstrap's deviation: percentiles of so few blocks are too narrow. None below
    FEWEST points, or where a half does not scatter.
    """
    import numpy as np
    from scipy.special import stdtrit

    array = sample(values, "series")[-_MOST:]
    if len(array) < FEWEST:
        return None
    random, half = np.random.default_rng(seed), len(array) // 2
    parts = array[:half], array[-half:]
    ranges = [float(_range(each[None, :])[0]) for each in parts]
    if min(ranges) <= 1e-12 * float(np.abs(array).max()):
        return None
    errors = [_deviation(each, random, replicates) for each in parts]
    middle = float(np.log(ranges[1] / ranges[0]))
    blocks = 2 * half / _block(half)
    reach = (
        float(stdtrit(max(blocks - 2, 1), (1 + level) / 2))
        * (errors[0] ** 2 + errors[1] ** 2) ** 0.5
    )
    low, high = np.exp(middle - reach), np.exp(middle + reach)
    return Scatter(float(np.exp(middle)), float(low), float(high), level, len(array))


def _block(n: int) -> int:
    length: float = 2 * n ** (1 / 3)
    return max(1, round(length))


def _range(rows: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    low, high = np.quantile(rows, (0.25, 0.75), axis=1)
    return high - low  # type: ignore[no-any-return]


def _deviation(part: NDArray[Any], random: Any, replicates: int) -> float:
    import numpy as np

    n, block = len(part), _block(len(part))
    starts = random.integers(0, n - block + 1, (replicates, -(-n // block)))
    places = (starts[:, :, None] + np.arange(block)).reshape(replicates, -1)[:, :n]
    ranges = np.maximum(_range(part[places]), 1e-300)
    return float(np.log(ranges).std(ddof=1))
