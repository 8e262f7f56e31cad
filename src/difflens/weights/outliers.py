"""Weights that stand out of their tensor, by a robust z and a cut-off that knows their number.

Mean and deviation would hold the outlier itself: among n values none is more than √(n - 1)
deviations off, so below eleven values nothing could ever be found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..measure.values import Values
from ..weight_results import OutlierSeverity, WeightConfig, WeightOutlier
from .streaming import Seen, beyond

NORMAL_MAD, NORMAL_MEAN_DEVIATION = 0.6745, 0.7979  # of a normal law, in deviations
_LARGEST = float(np.finfo(np.float64).max)
_SLACK = 1e-6  # of the bound: what float32 may round away is looked at again in float64


class Scale(NamedTuple):
    """The middle of a tensor, and how wide it is: z = factor · (x - middle) / width."""

    middle: float
    width: float
    factor: float
    method: str

    def z(self, values: Any) -> Any:
        """Give the robust z of values."""
        numbers = np.asarray(values, np.float64)
        with np.errstate(over="ignore"):  # halves, since a difference may overflow
            found = 2 * self.factor * ((numbers / 2 - self.middle / 2) / self.width)
        return np.clip(found, -_LARGEST, _LARGEST)


class Outliers(NamedTuple):
    """Those that stand out farthest, how many do, and from where on."""

    kept: tuple[WeightOutlier, ...]
    total: int
    cutoff: float
    farthest: float  # the largest |z| there is, whether it is beyond the cut-off or not


def scale_of(middle: float, mad: float, mean_deviation: float) -> Scale | None:
    """0.6745 (x - median) / MAD; 0.7979 (x - median) / mean |x - median| where MAD is zero.

    None where all values are equal. (Iglewicz & Hoaglin 1993.)
    """
    if mad > 0:
        return Scale(middle, mad, NORMAL_MAD, "mad")
    if mean_deviation > 0:
        return Scale(middle, mean_deviation, NORMAL_MEAN_DEVIATION, "mean deviation")
    return None


def cutoff(n: int, alpha: float, least: float) -> float:
    """Give Φ⁻¹(1 - alpha/2n), at least so much: a normal tensor reaches it with chance alpha.

    >>> round(cutoff(1_000_000, 0.05, 3.5), 3), cutoff(2, 0.05, 3.5)
    (5.451, 3.5)
    """
    from scipy.special import ndtri

    return max(least, -float(ndtri(alpha / (2 * max(1, n)))))


def outliers(
    values: Values, seen: Seen, scale: Scale, config: WeightConfig, place: int
) -> Outliers:
    """Find the weights beyond the cut-off: all are counted, the farthest are kept."""
    bound = cutoff(seen.counts.finite, config.outlier_alpha, config.outlier_cutoff)
    farthest = float(np.abs(scale.z([seen.low, seen.high])).max())
    if farthest <= bound:
        return Outliers((), 0, bound, farthest)
    reach = bound / scale.factor * scale.width * (1 - _SLACK)
    total, places, zs, found = 0, np.empty(0, np.int64), np.empty(0), np.empty(0)
    for at, some in beyond(values, seen.held, scale.middle - reach, scale.middle + reach):
        far = scale.z(some)
        out = np.abs(far) > bound
        total += int(out.sum())
        places, zs, found = (
            np.concatenate(both) for both in ((places, at[out]), (zs, far[out]), (found, some[out]))
        )
        first = np.argsort(-np.abs(zs), kind="stable")[: config.top_outliers]
        places, zs, found = places[first], zs[first], found[first]
    info = values.info
    high = bound * config.outlier_high_ratio
    kept = tuple(
        WeightOutlier(
            layer_index=place, weight_index=int(at), value=float(each), z_score=float(z),
            severity=OutlierSeverity.HIGH if abs(z) > high else OutlierSeverity.MEDIUM,
            name=info.name, index=tuple(int(i) for i in np.unravel_index(at, info.shape)),
        )
        for at, z, each in zip(places, zs, found, strict=True)
    )  # fmt: skip
    return Outliers(kept, total, bound, farthest)
