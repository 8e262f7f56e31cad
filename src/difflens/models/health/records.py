"""The results of `WeightAnalyzer` and `show --health`.

Each field that is null has its reason in `missing`.
"""

from __future__ import annotations

from enum import StrEnum
from math import inf
from typing import Any, ClassVar

import msgspec

from difflens.core.errors import SnapshotError
from difflens.core.findings import Missing, Severity
from difflens.core.kept import Kept, Settings, ascending, count, number

WEIGHT_SCHEMA = 1
_SHARES = ("outlier_alpha", "zero_fraction", "zero_rows", "clip_quantile")


class ExplosionSeverity(StrEnum):
    """How far a gradient exceeds its threshold: one scale for layers and for the model."""

    NONE = "None"
    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"
    CRITICAL = "Critical"
    UNKNOWN = "Unknown"


class OutlierSeverity(StrEnum):
    """How far an outlier is beyond the cut-off."""

    MEDIUM = "Medium"
    HIGH = "High"


class DistributionHealthStatus(StrEnum):
    """The health of all weights in one word; Unknown if there are no weights."""

    EXCELLENT = "Excellent"
    GOOD = "Good"
    FAIR = "Fair"
    POOR = "Poor"
    CRITICAL = "Critical"
    UNKNOWN = "Unknown"


class WeightDriftSeverity(StrEnum):
    """How far weights moved, by the relative change; None if no bit changed."""

    NONE = "None"
    MINIMAL = "Minimal"
    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"
    UNKNOWN = "Unknown"


class IssueCode(StrEnum):
    """What may be wrong with a tensor of weights; there is advice for each."""

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

    Ratios are multiples, shares lie between 0 and 1. A threshold that is None is not applied.
    """

    exact_elements: int = 10_000_000  # values of a tensor up to which quantiles are exact
    top_outliers: int = 10  # listed for each tensor; all are counted
    listed_outliers: int = 100  # listed for the model
    outlier_alpha: float = 0.01  # chance that a normal tensor has an outlier: two-sided, alpha/n
    outlier_cutoff: float = 3.5  # smallest robust z of an outlier (Iglewicz & Hoaglin 1993)
    outlier_high_ratio: float = 5 / 3  # multiples of the cut-off above which an outlier is High
    zero_tolerance: float = 1e-4  # of the rms: smaller values count as zero
    constant_tolerance: float = 1e-6  # of the largest magnitude: a smaller range is constant
    zero_fraction: float = 0.5  # share of zeros above which a matrix is mostly zero
    zero_rows: tuple[float, float, float] = (0.01, 0.1, 0.5)  # shares: low, medium, high
    skewness: float = 2.0
    kurtosis: float = 10.0  # excess
    tail_ratio: float = 2.0  # of (q99.9 - q0.1) / (q75 - q25), to that of a normal law
    shape_values: int = 1000  # values below which skewness and tails are not judged
    extreme_z: float = 100.0  # robust z of a matrix's farthest weight
    extreme_z_vectors: float = 1000.0  # the same for biases and gains of norms
    isolated_ratio: float = 1000.0  # times as far as the next one: an extreme weight is damage
    scale_ratio: float = 30.0  # of rms to the deviation of He, or the inverse
    scale_high_ratio: float = 10.0  # multiples of `scale_ratio` above which a scale is high
    explosion_bands: tuple[float, float, float] = (2.0, 5.0, 10.0)  # multiples of the threshold
    peer_ratio: float = 10.0  # times the median of the others: weighs like the threshold
    peer_z: float = 3.5  # robust z above which a layer stands out
    peers: int = 3  # other layers needed for a comparison
    rms_threshold: float | None = None
    weight_ratio_threshold: float | None = None
    global_norm_threshold: float | None = None
    clip_quantile: float = 0.95  # of past global norms: where to clip
    clip_history: int = 20  # past global norms needed for a clip value
    drift_bands: tuple[float, float, float] = (1e-3, 1e-2, 1e-1)  # relative L2
    affected_deviations: float = 5.0  # above the median: 2 % false alarms in 10 normal drifts

    def _checked(self) -> None:
        for each in msgspec.structs.fields(self):
            _check_setting(each.name, getattr(self, each.name), each.default)
        for name in ("explosion_bands", "zero_rows", "drift_bands"):
            ascending((name, band) for band in getattr(self, name))


def _check_setting(name: str, value: Any, default: Any) -> None:
    """Refuse a setting that is out of bounds, or not of the type of its default."""
    if isinstance(default, tuple):
        if not isinstance(value, tuple) or len(value) != len(default):
            raise SnapshotError(f"{name} is {value!r}; it needs {len(default)} numbers")
        for part in value:
            _check_setting(name, part, default[0])
        return
    if value is None and default is not None:
        raise SnapshotError(f"{name} is not set; it needs a number")
    if isinstance(default, int):
        count(name, value)
        return
    number(name, value, 1 if name.endswith("_ratio") else 0, 1 if name in _SHARES else inf)
    if value == 0 and (default is None or name == "outlier_alpha"):
        raise SnapshotError(f"{name} is 0; it must be above 0")


class _Explained(Kept, frozen=True, kw_only=True):
    """A record in which each null has a reason: its own, or the one stated here."""

    says_why: ClassVar[tuple[str, str] | None] = ("finite values", "there are none")


class LayerGradient(_Explained, frozen=True, kw_only=True):
    """The size of the gradient of one layer, and how it compares."""

    layer_index: int
    name: str
    gradient_norm: float | None = None
    rms: float | None = None
    max_abs: float | None = None
    count: int = 0
    nonfinite: int = 0
    threshold_ratio: float | None = None
    peer_ratio: float | None = None  # to the median norm of the other layers
    peer_z: float | None = None  # robust z of its logarithm among theirs
    weight_norm: float | None = None
    weight_ratio: float | None = None  # ‖gradient‖ / ‖weight‖
    severity: ExplosionSeverity = ExplosionSeverity.UNKNOWN
    missing: tuple[Missing, ...] = ()


class ExplodingLayer(_Explained, frozen=True, kw_only=True):
    """A layer whose gradient exceeds a threshold or is not finite, and what to do about it."""

    layer_index: int
    gradient_norm: float | None
    severity: ExplosionSeverity
    recommended_action: str
    name: str = ""
    nonfinite: int = 0
    over: tuple[str, ...] = ()  # what it exceeds: norm, rms, weight_ratio, finite
    missing: tuple[Missing, ...] = ()


class GradientExplosionAnalysis(_Explained, frozen=True, kw_only=True):
    """The gradients of one step: the layers above the threshold, and how far.

    `std_gradient_norm` is that of the population. `clip_value` is a quantile of past global norms.
    """

    table_field: ClassVar[str] = "layers"

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
    """Statistics of the values of one tensor, or of all tensors.

    Deviation, skewness and excess kurtosis are those of the population; the corrected ones are G1
    and G2 (Joanes & Gill 1998). Quantiles are of type 7; `quantile_error` is the largest relative
    error of one, 0 if they are exact. `entropy` is in bits, over `entropy_bins` bins.
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
    entropy_correction: float | None = None  # Miller & Madow: to be added
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
        """The number of values that are NaN or infinite."""
        return self.nan + self.positive_infinite + self.negative_infinite


class WeightIssue(Kept, frozen=True, kw_only=True):
    """A fault of a tensor: the number that shows it, its threshold, and what to do.

    An issue of severity `info` does not lower the health score.
    """

    code: IssueCode
    severity: Severity
    text: str
    evidence: dict[str, float]
    advice: str
    layer_index: int = 0
    name: str = ""


class WeightOutlier(Kept, frozen=True, kw_only=True):
    """An outlier; `z_score` is robust and signed."""

    layer_index: int
    weight_index: int  # in the flat tensor, row by row
    value: float
    z_score: float
    severity: OutlierSeverity
    name: str = ""
    index: tuple[int, ...] = ()


class LayerWeightAnalysis(_Explained, frozen=True, kw_only=True):
    """One tensor of weights; `health_score` is 100 less the weight of its worst issue."""

    layer_index: int
    statistics: WeightStatistics
    health_score: float | None
    issues: tuple[WeightIssue, ...] = ()
    recommendations: tuple[str, ...] = ()
    name: str = ""
    kind: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    zero_rows: int | None = None  # output units whose weights all count as zero
    rows: int | None = None
    scale_to_he: float | None = None  # rms / sqrt(2 / fan_in)
    scale_to_xavier: float | None = None  # rms / sqrt(2 / (fan_in + fan_out))
    outliers: tuple[WeightOutlier, ...] = ()
    outlier_count: int | None = None
    outlier_cutoff: float | None = None
    missing: tuple[Missing, ...] = ()


class Deduction(Kept, frozen=True, kw_only=True):
    """What a tensor costs: 100 · its share of all parameters · the weight of its worst issue."""

    name: str
    codes: tuple[IssueCode, ...]
    parameters: int
    points: float


class WeightHealth(_Explained, frozen=True, kw_only=True):
    """100 less all points, 74 at most with a high issue, 39 with a critical one; and the issues."""

    score: float | None
    issues: tuple[WeightIssue, ...] = ()
    recommendations: tuple[str, ...] = ()
    deductions: tuple[Deduction, ...] = ()
    missing: tuple[Missing, ...] = ()


class DistributionHealth(_Explained, frozen=True, kw_only=True):
    """The score in one word: with a critical issue Critical, with a high one Fair at best."""

    score: float | None
    status: DistributionHealthStatus
    reason: str = ""
    missing: tuple[Missing, ...] = ()


class WeightDistributionAnalysis(Kept, frozen=True, kw_only=True):
    """All weights of a model: each tensor, all together, the outliers, and the health."""

    table_field: ClassVar[str] = "layer_analyses"

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
    rms_in_deviations: float | None = None  # rms of the change, in deviations of left
    mean_abs: float | None = None
    max_abs: float | None = None
    cosine: float | None = None
    pearson: float | None = None
    ks: float | None = None
    wasserstein: float | None = None
    relative_wasserstein: float | None = None  # in deviations of left
    rank_error: float | None = None  # of ks, if the tensor was sampled (95 %)
    within_storage_rounding: bool | None = None
    left_nonfinite: int = 0
    right_nonfinite: int = 0
    severity: WeightDriftSeverity = WeightDriftSeverity.UNKNOWN
    missing: tuple[Missing, ...] = ()


class WeightDriftAnalysis(_Explained, frozen=True, kw_only=True):
    """How far the weights of two models are apart: the relative L2 over the tensors.

    `affected_layers` moved by more than `affected_above`, the median drift plus a number of robust
    deviations. They are indices into `tensors`.
    """

    table_field: ClassVar[str] = "tensors"

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
    storage_floor: float | None = None  # relative L2 of rounding to the coarsest dtype
    config: WeightConfig = WeightConfig()
    missing: tuple[Missing, ...] = ()
    schema_version: int = WEIGHT_SCHEMA
