"""Slow drift taken out of series, so that what is left can be asked whether it swings.

A straight line would leave the bend of every learning curve behind, and the bend looks like strong
autocorrelation. So a line and the lowest cosines go: all that makes fewer than five full swings
over the series, and never more than a tenth of the points. A running median would do as well
against outliers, but its own correlation cannot be written down.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

SWINGS = 5  # full cycles over the series below which a swing counts as drift
_CUTS = 8  # times at most: each brings what a spike adds to the drift down several times
_FADED = 0.2  # part of the series over which each end fades in or out


def without_drift(values: NDArray[Any], cut: float | None = None) -> NDArray[Any]:
    """Take the drift out of every column; times run down the rows, evenly spaced.

    With `cut` what is left is cut off at so many robust deviations, and the drift fitted anew to
    the rest (Huber 1964): a spike that all series share would else ring through all of them.
    """
    import numpy as np

    basis = drift_basis(len(values))
    rest = values - basis @ (basis.T @ values)
    if cut is None:
        return rest  # type: ignore[no-any-return]
    weights = basis.T @ values
    for _ in range(_CUTS):
        bound = cut * 1.4826 * np.median(np.abs(rest), axis=0)
        if not (np.abs(rest) > bound).any():
            break
        weights += basis.T @ np.clip(rest, -bound, bound)
        rest = values - basis @ weights
    return np.clip(rest, -bound, bound)  # type: ignore[no-any-return]


def faded(values: NDArray[Any]) -> NDArray[Any]:
    """Fade the ends out, and take the drift of what is left.

    A curve that falls steeply at its start cannot be fitted by smooth columns: the fit rings over
    the whole series, and rings like an oscillation. Faded, the start has no weight in the fit.
    """
    weight, basis = _fading(len(values))
    shown = values * weight[:, None]
    return shown - basis @ (basis.T @ shown)  # type: ignore[no-any-return]


@lru_cache(maxsize=8)
def drift_basis(n: int) -> NDArray[Any]:
    """Give orthonormal columns that span a constant, a line and the lowest cosines."""
    import numpy as np

    return np.linalg.qr(_columns(n))[0]


@lru_cache(maxsize=8)
def _fading(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    time = (np.arange(n) + 0.5) / n
    weight = np.sin(np.pi / 2 * np.minimum(np.minimum(time, 1 - time) / _FADED, 1)) ** 2
    return weight, np.linalg.qr(_columns(n) * weight[:, None])[0]


def _columns(n: int) -> NDArray[Any]:
    import numpy as np

    cosines = max(0, min(2 * SWINGS - 1, n // 10 - 2))
    time = (np.arange(n) + 0.5) / n
    columns = [np.ones(n), time - 0.5]
    columns += [np.cos(np.pi * half * time) for half in range(2, cosines + 2)]
    return np.stack(columns[: max(1, n - 1)], axis=1)
