"""Signs that a system nears a tipping point: it recovers more slowly, and swings more widely.

Exploratory for training: the noise of gradients changes with the learning rate. Windows that
overlap make even white noise "trend" in nine of ten series, so the whole procedure is run on
simulated AR(1) series and nothing else is taken for significance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .samples import sample
from .trend import STRONGEST, first_order, s_of_each

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST = 100
_MOST = 400  # points: longer series are cut to their latest


class Slowing(NamedTuple):
    """Kendall's tau of rolling lag-1 correlation and variance, with one-sided p of a rise."""

    autocorrelation_tau: float
    autocorrelation_p: float
    variance_tau: float
    variance_p: float
    n: int


def slowing(
    values: Sequence[float] | NDArray[Any], surrogates: int = 199, seed: int = 0
) -> Slowing | None:
    """Roll a window of half the series over what a Gaussian kernel leaves (Dakos 2012).

    The kernel's deviation is a tenth of the series. None below FEWEST points, or where nothing
    varies.
    """
    import numpy as np

    if len(values) < FEWEST:
        return None
    array = sample(values, "series")[-_MOST:]
    rest = _detrended(array[:, None])
    energy = float((rest**2).sum())
    if energy <= len(array) * (1e-10 * float(np.abs(array).max())) ** 2:
        return None
    phi = float((rest[1:] * rest[:-1]).sum()) / energy
    n = len(array)
    phi = float(np.clip((n * phi + 2) / (n - 4), -STRONGEST, STRONGEST))
    null = _detrended(first_order(phi, n, surrogates, seed).astype(np.float64))
    both = np.column_stack([rest, null])
    taus = [_tau(each) for each in _rolled(both)]
    ps = [(1 + int((each[1:] >= each[0]).sum())) / (1 + surrogates) for each in taus]
    return Slowing(float(taus[0][0]), ps[0], float(taus[1][0]), ps[1], n)


def _detrended(columns: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    n = len(columns)
    apart = np.arange(n)[:, None] - np.arange(n)
    kernel = np.exp(-0.5 * (apart / (0.1 * n)) ** 2)
    return columns - (kernel / kernel.sum(axis=1, keepdims=True)) @ columns  # type: ignore[no-any-return]


def _rolled(columns: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Give lag-1 correlation and variance over every window of half the rows."""
    import numpy as np

    width = len(columns) // 2

    def summed(values: NDArray[Any], length: int) -> NDArray[Any]:
        total = np.cumsum(np.vstack([np.zeros((1, values.shape[1])), values]), axis=0)
        return total[length:] - total[:-length]  # type: ignore[no-any-return]

    mean = summed(columns, width) / width
    variance = np.maximum(summed(columns**2, width) / width - mean**2, 1e-300)
    products = summed(columns[1:] * columns[:-1], width - 1)
    return (products / (width - 1) - mean**2) / variance, variance


def _tau(columns: NDArray[Any]) -> NDArray[Any]:
    n = len(columns)
    return s_of_each(columns) / (n * (n - 1) / 2)
