"""The statistics of one tensor, or of all tensors of a model, from what was read.

Entropy is in bits, over bins of the width of Freedman and Diaconis. Empty bins take no memory, so
one extreme value does not force all others into one bin. Values on few levels (a quantised tensor)
are counted level by level: bins across levels would describe the bins and not the tensor.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, inf, isfinite, log, log2
from typing import Any, NamedTuple

import numpy as np

from difflens.core.findings import Missing
from difflens.measure.values import Values
from difflens.stats.moments import Moments, corrected_kurtosis, corrected_skewness
from difflens.stats.samples import NORMAL_MAD, NORMAL_MEAN_DEVIATION

from .records import OutlierSeverity, WeightConfig, WeightOutlier, WeightStatistics
from .spread import Spread
from .streaming import Counts, TensorContents, beyond

SHARES = (0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)
NORMAL_TAILS = 4.5814  # (q99.9 - q0.1) / (q75 - q25) of a normal distribution
LEVELS = 256  # most distinct values that count as levels
MOST_BINS = 1 << 40  # so that the index of a bin is an exact integer
_ON_GRID = 1e-6  # of a step: tolerance for evenly spaced levels
_NEEDS = "values that are not all equal"


class Described(NamedTuple):
    """Statistics, and the scale for outliers; the scale is None if all values are equal."""

    statistics: WeightStatistics
    scale: Scale | None
    constant: bool


def describe(
    counts: Counts,
    moments: Moments,
    ends: tuple[float | None, float | None],
    spread: Spread | None,
    config: WeightConfig,
) -> Described:
    """Compute the statistics of the finite values; the others are only counted."""
    low, high = ends
    facts: dict[str, Any] = {
        "count": counts.total,
        "nan": counts.nan,
        "zeros": counts.zeros,
        "positive_infinite": counts.positive_infinite,
        "negative_infinite": counts.negative_infinite,
        "zero_fraction": counts.zeros / counts.total if counts.total else None,
    }
    if spread is None or low is None or high is None:
        return Described(WeightStatistics(**facts), None, constant=False)
    largest = max(abs(low), abs(high))
    # Halves: the range of 64-bit numbers may overflow.
    constant = high / 2 - low / 2 <= config.constant_tolerance * largest / 2
    quantiles = dict(zip(SHARES, spread.quantiles(SHARES), strict=True))
    middle = min(max(quantiles[0.5], low), high)
    mad = spread.median_deviation(middle)
    scale = (
        None if constant else scale_of(middle, mad, 0.0 if mad else spread.mean_deviation(middle))
    )
    facts |= _moments(moments, constant=constant) | _entropy(spread, low, high, quantiles)
    rms = facts["rms"]
    facts |= {
        "min": low,
        "max": high,
        "median": middle,
        "mad": mad,
        "quantiles": {f"{100 * share:g}": each for share, each in quantiles.items()},
        "quantile_error": spread.error,
        "near_zero_fraction": spread.within(config.zero_tolerance * rms) / counts.total,
        "tail_ratio": _tails(quantiles),
    }
    statistics = WeightStatistics(**facts, missing=_missing(facts, constant=constant))
    return Described(statistics, scale, constant)


def _moments(moments: Moments, *, constant: bool) -> dict[str, Any]:
    skewness = None if constant or moments.n < 3 else moments.skewness
    kurtosis = None if constant or moments.n < 4 else moments.kurtosis
    return {
        "mean": moments.true_mean,
        "std_dev": moments.std,
        "rms": moments.rms,
        "l2": moments.l2,
        "skewness": skewness,
        "kurtosis": kurtosis,
        "skewness_corrected": corrected_skewness(skewness, moments.n),
        "kurtosis_corrected": corrected_kurtosis(kurtosis, moments.n),
    }


def _entropy(
    spread: Spread, low: float, high: float, quantiles: dict[float, float]
) -> dict[str, Any]:
    result = entropy(spread, low, high, (quantiles[0.25], quantiles[0.75]))
    return {
        "entropy": result.bits,
        "entropy_bins": result.bins,
        "entropy_bin_width": result.width,
        "entropy_correction": result.correction,
        "normalised_entropy": result.normalised,
        "entropy_method": result.method,
    }


def _tails(quantiles: dict[float, float]) -> float | None:
    middle = quantiles[0.75] / 2 - quantiles[0.25] / 2
    ratio = (quantiles[0.999] / 2 - quantiles[0.001] / 2) / middle if middle > 0 else None
    return ratio if ratio is not None and isfinite(ratio) else None


def _missing(facts: dict[str, Any], *, constant: bool) -> tuple[Missing, ...]:
    reasons = {
        "l2": ("a smaller norm", "it is larger than any number of 64 bits"),
        "tail_ratio": ("quartiles that differ", "half of the values are equal"),
        "entropy_bin_width": ("values that are not on few levels", "each level is one bin"),
        "normalised_entropy": ("at least two bins", "there is one bin"),
    }
    for field, least in (("skewness", 3), ("kurtosis", 4)):
        few = (f"{least} finite values", "there are fewer")
        reason = (_NEEDS, "all values are equal") if constant else few
        reasons |= {field: reason, f"{field}_corrected": reason}
    return tuple(
        Missing(field, *reason) for field, reason in reasons.items() if facts[field] is None
    )


class Entropy(NamedTuple):
    """Entropy in bits, the bins it is computed over, and the correction for few values."""

    bits: float
    bins: int
    width: float | None  # None if the bins are levels
    correction: float
    method: str

    @property
    def normalised(self) -> float | None:
        """Entropy / log₂(bins), the largest entropy possible; None if there is one bin."""
        return self.bits / log2(self.bins) if self.bins > 1 else None


def shannon(counts: Any) -> float:
    """Compute -Σ p log₂ p over the bins (Shannon 1948).

    >>> shannon([5] * 8)
    3.0
    """
    filled = np.asarray(counts)[np.asarray(counts) > 0]
    shares = filled / filled.sum()
    return max(0.0, -float((shares * np.log2(shares)).sum()))


def miller_madow(counts: Any) -> float:
    """Compute the correction to add: (K - 1) / (2 n ln 2), K bins not empty (Miller 1955)."""
    filled = np.asarray(counts)[np.asarray(counts) > 0]
    return float((len(filled) - 1) / (2 * filled.sum() * log(2)))


def entropy(spread: Spread, low: float, high: float, quartiles: tuple[float, float]) -> Entropy:
    """Compute the entropy of a tensor with known extremes and quartiles."""
    levels = spread.levels(LEVELS)
    if levels is not None and _are_levels(levels[0], spread.n):
        counts = levels[1]
        bins, width, method = len(counts), None, "levels"
    else:
        width, bins, method = _width(low, high, quartiles, spread.n)
        counts = spread.binned(low, width, bins)
    return Entropy(shannon(counts), bins, width, miller_madow(counts), method)


def _are_levels(values: Any, n: int) -> bool:
    """Do the values repeat, or lie on a regular grid?"""
    if len(values) <= n / 2 or len(values) == 1:
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        places = (values - values[0]) / np.diff(values).min()
        even = np.abs(places - np.rint(places)).max() <= _ON_GRID
    return bool(len(values) > 2 and even and places[-1] < LEVELS)


def _width(
    low: float, high: float, quartiles: tuple[float, float], n: int
) -> tuple[float, int, str]:
    """Choose 2 IQR n^(-1/3) (Freedman & Diaconis 1981); log₂ n + 1 bins (Sturges) if IQR is 0."""
    half_range = high / 2 - low / 2
    width = 4 * ((quartiles[1] / 2 - quartiles[0] / 2) / n ** (1 / 3))
    if 0 < width < inf and half_range / width < MOST_BINS / 2:
        bins = max(1, ceil(2 * (half_range / width)))
        return width, bins, "freedman-diaconis"
    bins = ceil(log2(n)) + 1
    return max(2 * (half_range / bins), 5e-324), bins, "sturges"


# Mean and standard deviation include the outlier itself: no value is more than √(n - 1) deviations
# away, so among ten values or fewer none could ever be found.

_LARGEST = float(np.finfo(np.float64).max)
_SLACK = 1e-6  # of the bound: values this close to it in float32 are compared in float64


class Scale(NamedTuple):
    """The median and the width of a tensor: z = factor · (x - middle) / width."""

    middle: float
    width: float
    factor: float
    method: str

    def z(self, values: Any) -> Any:
        """Compute the robust z of values."""
        numbers = np.asarray(values, np.float64)
        with np.errstate(over="ignore"):  # halves, since a difference may overflow
            z = 2 * self.factor * ((numbers / 2 - self.middle / 2) / self.width)
        return np.clip(z, -_LARGEST, _LARGEST)


class Outliers(NamedTuple):
    """The farthest outliers, the number of all outliers, and the cut-off."""

    farthest_weights: tuple[WeightOutlier, ...]
    total: int
    cutoff: float
    farthest: float  # the largest |z| of the tensor, also if it is below the cut-off


def scale_of(middle: float, mad: float, mean_deviation: float) -> Scale | None:
    """Choose the robust z: 0.6745 (x - median) / MAD, or by the mean |x - median| if MAD is 0.

    Return None if all values are equal. (Iglewicz & Hoaglin 1993.)
    """
    if mad > 0:
        return Scale(middle, mad, NORMAL_MAD, "mad")
    if mean_deviation > 0:
        return Scale(middle, mean_deviation, NORMAL_MEAN_DEVIATION, "mean deviation")
    return None


def cutoff(n: int, alpha: float, least: float) -> float:
    """Compute Φ⁻¹(1 - alpha/2n), at least `least`: a normal tensor exceeds it with chance alpha.

    >>> round(cutoff(1_000_000, 0.05, 3.5), 3), cutoff(2, 0.05, 3.5)
    (5.451, 3.5)
    """
    from scipy.special import ndtri

    return max(least, -float(ndtri(alpha / (2 * max(1, n)))))


def gap_of(outliers: Outliers) -> float:
    """Return how many times farther one of the farthest is than the next, or than the cut-off."""
    far = [abs(each.z_score) for each in outliers.farthest_weights]
    if len(far) == 1:
        far.append(outliers.cutoff)
    return max((one / other for one, other in pairwise(far)), default=0.0)


def find_outliers(
    values: Values, contents: TensorContents, scale: Scale, config: WeightConfig, layer_index: int
) -> Outliers:
    """Count the weights beyond the cut-off, and list the farthest."""
    bound = cutoff(contents.counts.finite, config.outlier_alpha, config.outlier_cutoff)
    farthest = float(np.abs(scale.z([contents.low, contents.high])).max())
    if farthest <= bound:
        return Outliers((), 0, bound, farthest)
    reach = bound / scale.factor * scale.width * (1 - _SLACK)
    total, places, zs, weights = 0, np.empty(0, np.int64), np.empty(0), np.empty(0)
    for at, some in beyond(values, contents.array, scale.middle - reach, scale.middle + reach):
        z = scale.z(some)
        out = np.abs(z) > bound
        total += int(out.sum())
        places, zs, weights = (
            np.concatenate(both) for both in ((places, at[out]), (zs, z[out]), (weights, some[out]))
        )
        first = np.argsort(-np.abs(zs), kind="stable")[: config.top_outliers]
        places, zs, weights = places[first], zs[first], weights[first]
    info = values.info
    high = bound * config.outlier_high_ratio
    farthest_weights = tuple(
        WeightOutlier(
            layer_index=layer_index,
            weight_index=int(at),
            value=float(weight),
            z_score=float(z),
            severity=OutlierSeverity.HIGH if abs(z) > high else OutlierSeverity.MEDIUM,
            name=info.name,
            index=tuple(int(i) for i in np.unravel_index(at, info.shape)),
        )
        for at, z, weight in zip(places, zs, weights, strict=True)
    )
    return Outliers(farthest_weights, total, bound, farthest)
