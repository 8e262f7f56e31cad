"""Puts what was read of a tensor into its statistics, and all tensors' into those of the model."""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

from ..records import Missing
from ..weight_results import WeightConfig, WeightStatistics
from .entropy import entropy
from .moments import Moments, corrected_kurtosis, corrected_skewness
from .outliers import Scale, scale_of
from .spread import Spread
from .streaming import Counts

SHARES = (0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)
NORMAL_TAILS = 4.5814  # (q99.9 - q0.1) / (q75 - q25) of a normal law
_NEEDS = "values that are not all equal"


class Described(NamedTuple):
    """Statistics, and the scale that outliers are measured by; None where all values are equal."""

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
    """Describe finite values; counts of the others stand beside."""
    low, high = ends
    facts: dict[str, Any] = {
        "count": counts.total, "nan": counts.nan, "zeros": counts.zeros,
        "positive_infinite": counts.positive_infinite,
        "negative_infinite": counts.negative_infinite,
        "zero_fraction": counts.zeros / counts.total if counts.total else None,
    }  # fmt: skip
    if spread is None or low is None or high is None:
        return Described(WeightStatistics(**facts), None, constant=False)
    largest = max(abs(low), abs(high))
    # Halves: the whole range of 64-bit numbers may overflow.
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
        "min": low, "max": high, "median": middle, "mad": mad,
        "quantiles": {f"{100 * share:g}": each for share, each in quantiles.items()},
        "quantile_error": spread.error,
        "near_zero_fraction": spread.within(config.zero_tolerance * rms) / counts.total,
        "tail_ratio": _tails(quantiles),
    }  # fmt: skip
    statistics = WeightStatistics(**facts, missing=_missing(facts, constant=constant))
    return Described(statistics, scale, constant)


def _moments(moments: Moments, *, constant: bool) -> dict[str, Any]:
    skewness = None if constant or moments.n < 3 else moments.skewness
    kurtosis = None if constant or moments.n < 4 else moments.kurtosis
    return {
        "mean": moments.true_mean, "std_dev": moments.std, "rms": moments.rms, "l2": moments.l2,
        "skewness": skewness, "kurtosis": kurtosis,
        "skewness_corrected": corrected_skewness(skewness, moments.n),
        "kurtosis_corrected": corrected_kurtosis(kurtosis, moments.n),
    }  # fmt: skip


def _entropy(
    spread: Spread, low: float, high: float, quantiles: dict[float, float]
) -> dict[str, Any]:
    found = entropy(spread, low, high, (quantiles[0.25], quantiles[0.75]))
    return {
        "entropy": found.bits, "entropy_bins": found.bins, "entropy_bin_width": found.width,
        "entropy_correction": found.correction, "normalised_entropy": found.normalised,
        "entropy_method": found.method,
    }  # fmt: skip


def _tails(quantiles: dict[float, float]) -> float | None:
    middle = quantiles[0.75] / 2 - quantiles[0.25] / 2
    ratio = (quantiles[0.999] / 2 - quantiles[0.001] / 2) / middle if middle > 0 else None
    return ratio if ratio is not None and isfinite(ratio) else None


def _missing(facts: dict[str, Any], *, constant: bool) -> tuple[Missing, ...]:
    reasons = {
        "l2": ("a smaller norm", "it is larger than any number of 64 bits"),
        "tail_ratio": ("quartiles that are apart", "half of all values are equal"),
        "entropy_bin_width": ("values that are not levels", "each level is a bin of its own"),
        "normalised_entropy": ("two bins at least", "there is one"),
    }
    for field, least in (("skewness", 3), ("kurtosis", 4)):
        few = (f"{least} finite values", "there are fewer")
        told = (_NEEDS, "all values are equal") if constant else few
        reasons |= {field: told, f"{field}_corrected": told}
    return tuple(
        Missing(field, *reason) for field, reason in reasons.items() if facts[field] is None
    )
