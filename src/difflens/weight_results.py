"""What is said of weights and gradients: the results of `WeightAnalyzer` and `show --health`.

The field names are those of the contract, then come ours. A null has its reason in `missing`.
"""

from __future__ import annotations

from enum import StrEnum
from math import inf
from typing import Any, ClassVar

import msgspec

from .errors import SnapshotError
from .kept import Kept, Settings, ascending, count, number
from .records import Missing, Severity

WEIGHT_SCHEMA = 1
_SHARES = ("outlier_alpha", "zero_fraction", "zero_rows", "clip_quantile")


class ExplosionSeverity(StrEnum):
    """How far a gradient is over its threshold: one scale for layers and for the whole."""

    NONE = "None"
    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"
    CRITICAL = "Critical"
    UNKNOWN = "Unknown"


class OutlierSeverity(StrEnum):
    """How far a weight stands out of its tensor."""

    MEDIUM = "Medium"
    HIGH = "High"


class DistributionHealthStatus(StrEnum):
    """The health of all weights in one word; Unknown where there was nothing to look at."""

    EXCELLENT = "Excellent"
    GOOD = "Good"
    FAIR = "Fair"
    POOR = "Poor"
    CRITICAL = "Critical"
    UNKNOWN = "Unknown"


class WeightDriftSeverity(StrEnum):
    """How far weights moved, by the relative change; None where no bit did."""

    NONE = "None"
    MINIMAL = "Minimal"
    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"
    UNKNOWN = "Unknown"


class IssueCode(StrEnum):
    """What can be found in a tensor of weights; each has its advice."""

    NON_FINITE = "non_finite"
    SATURATED = "saturated"
    ALL_ZERO = "all_zero"
    CONSTANT = "constant"
    DEAD_UNITS = "dead_units"
    ZERO_ROWS = "zero_rows"
    MOSTLY_ZERO = "mostly_zero"
    SCALE = "scale"
    EXTREME = "extreme"
    SKEWED = "skewed"
    HEAVY_TAILED = "heavy_tailed"


class WeightConfig(Settings, frozen=True, kw_only=True):
    """Every threshold of `WeightAnalyzer`: choices, not facts.

    Ratios are multiples, shares lie between 0 and 1. A threshold that is None is not judged by.
    """

    exact_elements: int = 10_000_000  # up to so many values of a tensor quantiles are exact
    top_outliers: int = 10  # kept of each tensor; all are counted
    listed_outliers: int = 100  # kept of the whole model
    outlier_alpha: float = 0.01  # chance that a normal tensor has one: two-sided, alpha/n
    outlier_cutoff: float = 3.5  # least robust z (Iglewicz & Hoaglin 1993)
    outlier_high_ratio: float = 5 / 3  # multiples of the cut-off from which one is High
    zero_tolerance: float = 1e-4  # of the rms: what is smaller counts as zero
    constant_tolerance: float = 1e-6  # of the largest magnitude: a smaller range is none
    zero_fraction: float = 0.5  # share of zeros above which a matrix is mostly zero
    zero_rows: tuple[float, float, float] = (0.01, 0.1, 0.5)  # shares: low, medium, high
    skewness: float = 2.0
    kurtosis: float = 10.0  # excess
    tail_ratio: float = 2.0  # times the normal law's (q99.9 - q0.1) / (q75 - q25)
    shape_values: int = 1000  # values below which skewness and tails are not judged
    extreme_z: float = 100.0  # robust z of a matrix's farthest weight
    extreme_z_vectors: float = 1000.0  # the same of biases and of gains of norms
    scale_ratio: float = 30.0  # of rms to He's deviation, or the inverse
    explosion_bands: tuple[float, float, float] = (2.0, 5.0, 10.0)  # multiples of the threshold
    peer_ratio: float = 10.0  # times the median of the other layers: counts like the threshold
    peer_z: float = 3.5  # robust z from which a layer stands out of the others
    peers: int = 3  # other layers below which there is nothing to stand out of
    rms_threshold: float | None = None
    weight_ratio_threshold: float | None = None
    global_norm_threshold: float | None = None
    clip_quantile: float = 0.95  # of past global norms: where to clip
    clip_history: int = 20  # past global norms below which no clip value is told
    drift_bands: tuple[float, float, float] = (1e-3, 1e-2, 1e-1)  # relative L2
    affected_deviations: float = 5.0  # robust ones above the median: 2 % alarms on 10 normal drifts

    def _checked(self) -> None:
        for each in msgspec.structs.fields(self):
            _setting(each.name, getattr(self, each.name), each.default)
        for name in ("explosion_bands", "zero_rows", "drift_bands"):
            ascending((name, band) for band in getattr(self, name))


def _setting(name: str, given: Any, usual: Any) -> None:
    """Refuse a setting that is not of its default's kind, or out of bounds."""
    if isinstance(usual, tuple):
        if not isinstance(given, tuple) or len(given) != len(usual):
            raise SnapshotError(f"{name} is {given!r}; it needs {len(usual)} numbers")
        for part in given:
            _setting(name, part, usual[0])
        return
    if given is None and usual is not None:
        raise SnapshotError(f"{name} is not set; it needs a number")
    if isinstance(usual, int):
        count(name, given)
        return
    number(name, given, 1 if name.endswith("_ratio") else 0, 1 if name in _SHARES else inf)
    if given == 0 and (usual is None or name == "outlier_alpha"):
        raise SnapshotError(f"{name} is 0; it must be above")


class _Explained(Kept, frozen=True, kw_only=True):
    """A record whose nulls have their reasons; those that nothing else explains have this one."""

    says_why: ClassVar[tuple[str, str] | None] = ("finite values", "there are none")


class LayerGradient(_Explained, frozen=True, kw_only=True):
    """One layer's gradient: its size by several measures, whatever came of it."""

    layer_index: int
    name: str
    gradient_norm: float | None = None
    rms: float | None = None
    max_abs: float | None = None
    count: int = 0
    nonfinite: int = 0
    threshold_ratio: float | None = None
    peer_ratio: float | None = None  # to the median norm of the other layers
    peer_z: float | None = None  # robust z of the logarithm among theirs
    weight_norm: float | None = None
    weight_ratio: float | None = None  # ‖gradient‖ / ‖weight‖
    severity: ExplosionSeverity = ExplosionSeverity.UNKNOWN
    missing: tuple[Missing, ...] = ()


class ExplodingLayer(_Explained, frozen=True, kw_only=True):
    """A layer whose gradient is over a threshold or not finite, and what to do about it."""

    layer_index: int
    gradient_norm: float | None
    severity: ExplosionSeverity
    recommended_action: str
    name: str = ""
    nonfinite: int = 0
    over: tuple[str, ...] = ()  # which thresholds it is over: norm, rms, weight_ratio, finite
    missing: tuple[Missing, ...] = ()


class GradientExplosionAnalysis(_Explained, frozen=True, kw_only=True):
    """The gradients of one step: which layers are over the threshold, and how far.

    `std_gradient_norm` is of the population. `clip_value` is a quantile of past global norms.
    """

    exploding_layers: tuple[ExplodingLayer, ...] = ()
    max_gradient_norm: float | None = None
    mean_gradient_norm: float | None = None
    std_gradient_norm: float | None = None
    explosion_ratio: float | None = None
    overall_severity: ExplosionSeverity = ExplosionSeverity.UNKNOWN
    mitigation_recommendations: tuple[str, ...] = ()
    threshold: float = 0.0
    layer_count: int = 0
    median_gradient_norm: float | None = None
    global_norm: float | None = None
    rms: float | None = None
    nonfinite: int = 0
    clip_value: float | None = None
    layers: tuple[LayerGradient, ...] = ()
    skipped: dict[str, str] = msgspec.field(default_factory=dict)  # name to reason
    missing: tuple[Missing, ...] = ()
    schema_version: int = WEIGHT_SCHEMA


class WeightStatistics(_Explained, frozen=True, kw_only=True):
    """The values of one tensor, or of all of them, in numbers.

    Deviation, skewness and excess kurtosis are of the population; the corrected ones are G1 and
    G2 (Joanes & Gill 1998). Quantiles are of type 7; `quantile_error` is the largest relative
    error of one, 0 where they are exact. `entropy` is in bits, over `entropy_bins` bins.
    """

    mean: float | None = None
    std_dev: float | None = None
    skewness: float | None = None
    kurtosis: float | None = None
    entropy: float | None = None
    min: float | None = None
    max: float | None = None
    zero_fraction: float | None = None
    count: int = 0
    nan: int = 0
    positive_infinite: int = 0
    negative_infinite: int = 0
    zeros: int = 0
    near_zero_fraction: float | None = None  # within `zero_tolerance` of the rms
    rms: float | None = None
    l2: float | None = None
    skewness_corrected: float | None = None
    kurtosis_corrected: float | None = None
    median: float | None = None
    mad: float | None = None  # median of |w - median|
    quantiles: dict[str, float] = msgspec.field(default_factory=dict)  # by percent: "0.1" to "99.9"
    quantile_error: float | None = None
    tail_ratio: float | None = None  # (q99.9 - q0.1) / (q75 - q25), 4.58 for a normal law
    entropy_bins: int | None = None
    entropy_bin_width: float | None = None
    entropy_correction: float | None = None  # Miller & Madow's, to be added
    normalised_entropy: float | None = None  # entropy / log2(bins)
    entropy_method: str = ""
    missing: tuple[Missing, ...] = ()

    def __post_init__(self) -> None:
        """Refuse numbers that contradict each other."""
        super().__post_init__()
        ascending((name, getattr(self, name)) for name in ("min", "median", "max"))
        number("std_dev", self.std_dev, 0)
        number("zero_fraction", self.zero_fraction, 0, 1)

    @property
    def nonfinite(self) -> int:
        """How many values are NaN or infinite."""
        return self.nan + self.positive_infinite + self.negative_infinite


class WeightIssue(Kept, frozen=True, kw_only=True):
    """Something found in a tensor: the number that shows it, its threshold, what to do.

    A severity of `info` is told and does not count against the health.
    """

    code: IssueCode
    severity: Severity
    text: str
    evidence: dict[str, float]
    advice: str
    layer_index: int = 0
    name: str = ""


class WeightOutlier(Kept, frozen=True, kw_only=True):
    """A weight that stands out; `z_score` is robust and signed."""

    layer_index: int
    weight_index: int  # counted flat, row by row
    value: float
    z_score: float
    severity: OutlierSeverity
    name: str = ""
    index: tuple[int, ...] = ()


class LayerWeightAnalysis(_Explained, frozen=True, kw_only=True):
    """One tensor of weights; `health_score` is 0 where an issue counts and 100 where none does."""

    layer_index: int
    statistics: WeightStatistics
    health_score: float | None
    issues: tuple[WeightIssue, ...] = ()
    recommendations: tuple[str, ...] = ()
    name: str = ""
    kind: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    zero_rows: int | None = None  # output units all of whose weights count as zero
    rows: int | None = None
    scale_to_he: float | None = None  # rms / sqrt(2 / fan_in)
    scale_to_xavier: float | None = None  # rms / sqrt(2 / (fan_in + fan_out))
    outliers: tuple[WeightOutlier, ...] = ()
    outlier_count: int | None = None
    outlier_cutoff: float | None = None
    missing: tuple[Missing, ...] = ()


class Deduction(Kept, frozen=True, kw_only=True):
    """What a tensor takes off the health score: its share of all parameters, and for what."""

    name: str
    codes: tuple[IssueCode, ...]
    parameters: int
    points: float


class WeightHealth(_Explained, frozen=True, kw_only=True):
    """100·(1 - share of parameters in tensors with an issue), and every issue, worst first."""

    score: float | None
    issues: tuple[WeightIssue, ...] = ()
    recommendations: tuple[str, ...] = ()
    deductions: tuple[Deduction, ...] = ()
    missing: tuple[Missing, ...] = ()


class DistributionHealth(_Explained, frozen=True, kw_only=True):
    """The score in one word; a critical issue makes it Critical whatever the score."""

    score: float | None
    status: DistributionHealthStatus
    reason: str = ""
    missing: tuple[Missing, ...] = ()


class WeightDistributionAnalysis(Kept, frozen=True, kw_only=True):
    """All weights of a model: each tensor, all together, what stands out, and the health."""

    layer_analyses: tuple[LayerWeightAnalysis, ...]
    overall_statistics: WeightStatistics
    distribution_health: DistributionHealth
    outlier_detection: tuple[WeightOutlier, ...] = ()  # the farthest first
    outlier_count: int = 0
    health: WeightHealth
    parameters: int = 0
    skipped: dict[str, str] = msgspec.field(default_factory=dict)  # name to reason
    source: str = ""
    config: WeightConfig = WeightConfig()
    warnings: tuple[str, ...] = ()
    schema_version: int = WEIGHT_SCHEMA


class TensorDrift(_Explained, frozen=True, kw_only=True):
    """How far one tensor moved from left to right."""

    layer_index: int
    name: str
    relative_l2: float | None = None  # ‖right - left‖ / ‖left‖
    symmetric_l2: float | None = None  # ‖right - left‖ / (‖left‖ + ‖right‖)
    rms_in_deviations: float | None = None  # rms of the change in deviations of left
    mean_abs: float | None = None
    max_abs: float | None = None
    cosine: float | None = None
    pearson: float | None = None
    ks: float | None = None
    wasserstein: float | None = None
    relative_wasserstein: float | None = None  # in deviations of left
    rank_error: float | None = None  # of ks, where the tensor was sampled (95 %)
    within_storage_rounding: bool | None = None
    left_nonfinite: int = 0
    right_nonfinite: int = 0
    severity: WeightDriftSeverity = WeightDriftSeverity.UNKNOWN
    missing: tuple[Missing, ...] = ()


class WeightDriftAnalysis(_Explained, frozen=True, kw_only=True):
    """How far the weights of two models are apart: over tensors, the relative L2.

    `affected_layers` moved by more than `affected_above`: the median drift and so many robust
    deviations. Their places are those in `tensors`.
    """

    mean_drift: float | None = None
    max_drift: float | None = None
    severity: WeightDriftSeverity = WeightDriftSeverity.UNKNOWN
    affected_layers: tuple[int, ...] = ()
    affected_names: tuple[str, ...] = ()
    affected_above: float | None = None
    median_drift: float | None = None
    tensors: tuple[TensorDrift, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    reshaped: tuple[str, ...] = ()
    skipped: dict[str, str] = msgspec.field(default_factory=dict)  # name to reason
    storage_floor: float | None = None  # relative L2 that rounding to the coarsest dtype costs
    config: WeightConfig = WeightConfig()
    missing: tuple[Missing, ...] = ()
    schema_version: int = WEIGHT_SCHEMA
