"""The norms of one layer in numbers, the finite ones; what was not finite is counted first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..gradient_results import GradientStatistics
from ..records import Missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .signals import LayerSignal


def broken(signal: LayerSignal) -> NDArray[np.bool_]:
    """Tell the records in which the norm, or any element of the gradient, was not finite."""
    odd: NDArray[np.bool_] = ~np.isfinite(signal.norms)
    if signal.nonfinite is not None:
        odd |= ~(signal.nonfinite == 0) & ~np.isnan(signal.nonfinite)
    return odd


def nonfinite_records(signal: LayerSignal) -> int:
    """Count them; a long run that was thinned out has kept the count beside its points."""
    return max(int(broken(signal).sum()), signal.nonfinite_records or 0)


def statistics(signal: LayerSignal) -> GradientStatistics:
    """Give moments and quantiles of the finite norms.

    >>> from .signals import signals_of_histories
    >>> layer = signals_of_histories({"fc": [1.0, 2.0, 3.0, 4.0]}).layers[0]
    >>> found = statistics(layer)
    >>> found.percentile_5, found.median, found.percentile_95
    (1.15, 2.5, 3.8499999999999996)
    """
    finite = signal.norms[np.isfinite(signal.norms)]
    steps = signal.steps
    told: dict[str, Any] = {
        "samples": len(finite),
        "nonfinite": nonfinite_records(signal),
        "zeros": int((finite == 0).sum()),
        "first_step": int(steps[0]) if len(steps) else None,
        "last_step": int(steps[-1]) if len(steps) else None,
    }
    if not len(finite):
        return _explained(GradientStatistics(**told), "no finite norm was recorded")
    low, centre, high = quantiles(finite, (0.05, 0.5, 0.95))
    told |= {
        "median": centre,
        "percentile_5": low,
        "percentile_95": high,
        "minimum": float(finite.min()),
        "maximum": float(finite.max()),
        **_moments(finite),
    }
    why = "one finite norm" if len(finite) == 1 else "the norms do not vary"
    return _explained(GradientStatistics(**told), why)


def quantiles(finite: NDArray[np.float64], levels: tuple[float, ...]) -> list[float]:
    """Give quantiles of type 7; halved on the way, for the sum of two norms may be too large."""
    halves = np.quantile(finite / 2, levels)
    return [min(2 * float(each), float(finite.max())) for each in halves]


def _moments(finite: NDArray[np.float64]) -> dict[str, float | None]:
    """Give mean, deviation and shape; scaled by the largest, so that squares stay in range."""
    n, scale = len(finite), float(finite.max())
    if scale == 0:
        return {"mean": 0.0, "std": 0.0, "variance": 0.0} if n > 1 else {"mean": 0.0}
    values = finite / scale
    mean = float(values.mean())
    rest = values - mean
    second = float((rest**2).mean())
    told: dict[str, float | None] = {"mean": mean * scale}
    if n == 1:
        return told
    std = (second * n / (n - 1)) ** 0.5 * scale
    told |= {"std": std, "variance": _finite(std * std)}
    if second > (4 * np.finfo(float).eps) ** 2:
        told |= {
            "skewness": float((rest**3).mean()) / second**1.5,
            "kurtosis": float((rest**4).mean()) / second**2 - 3,
        }
    return told


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _explained(found: GradientStatistics, why: str) -> GradientStatistics:
    import msgspec

    reasons = tuple(Missing(field, "more finite norms", why) for field in found.unexplained())
    return msgspec.structs.replace(found, missing=reasons)
