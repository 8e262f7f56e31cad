"""`WeightAnalyzer`: examines weights and gradients, and how far weights moved between models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, sqrt
from statistics import fmean, median
from typing import Any

from difflens.core.findings import Missing
from difflens.core.records import Delta, Pair, TensorInfo
from difflens.engines.threads import Threads
from difflens.measure.histogram import Histogram
from difflens.measure.pairs import deltas
from difflens.measure.scan import Scan
from difflens.stats.moments import l2_norm
from difflens.stats.samples import robust_deviation

from .layers import Progress, analyse_weights
from .records import (
    GradientExplosionAnalysis,
    TensorDrift,
    WeightConfig,
    WeightDistributionAnalysis,
    WeightDriftAnalysis,
    WeightDriftSeverity,
)
from .streaming import Tensors, open_tensors


class WeightAnalyzer:
    """Examines weights and gradients: arrays by name, a list of arrays, or a model.

    Files are read piece by piece. `config` holds every threshold.

    >>> found = WeightAnalyzer().analyze_weight_distribution({"w": [[1.0, 2.0], [3.0, 4.0]]})
    >>> found.overall_statistics.mean, found.distribution_health.status.value
    (2.5, 'Excellent')
    """

    def __init__(self, config: WeightConfig | Mapping[str, Any] | None = None) -> None:
        """Set the thresholds; those that are not set keep their defaults."""
        if isinstance(config, WeightConfig):
            self.config = config
        else:
            self.config = WeightConfig(**_checked(config or {}))

    def detect_gradient_explosion(
        self,
        gradients: Any,
        threshold: float,
        *,
        weights: Any = None,
        history: Sequence[float] = (),
    ) -> GradientExplosionAnalysis:
        """Find the layers whose gradient norm is above the threshold, or is not finite.

        With `weights` (of the same names) the ratio of gradient to weight is measured; with
        `history`, the global norms of past steps, a value for clipping is computed.
        """
        from .explosion import find_explosion

        return find_explosion(gradients, threshold, self.config, weights=weights, history=history)

    def analyze_weight_distribution(
        self,
        weights: Any,
        *,
        activations: Mapping[str, Any] | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> WeightDistributionAnalysis:
        """Describe each tensor and all tensors together, and list what is wrong.

        With `activations` by layer, units whose weights are zero can be identified as dead.
        """
        with open_tensors(weights) as tensors:
            return analyse_weights(
                tensors, self.config, activations or {}, threads=threads, progress=progress
            )

    def analyze_weight_drift(
        self, left: Any, right: Any, *, threads: int | None = None
    ) -> WeightDriftAnalysis:
        """Measure how far the weights moved from left to right, for tensors of the same name."""
        with open_tensors(left) as before, open_tensors(right) as after:
            return measure_drift(before, after, self.config, threads=threads)

    def compute_l2_norm(self, array: Any) -> float:
        """Compute √Σx² in float64 without overflow; NaN and infinities are preserved.

        >>> WeightAnalyzer().compute_l2_norm([3.0, 4.0])
        5.0
        """
        if hasattr(array, "detach"):
            array = array.detach().cpu().double().numpy()
        return l2_norm(array)


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse a setting that does not exist, so that a misspelt threshold is not ignored."""
    from difflens.core.errors import UnknownName

    for name in settings:
        if name not in WeightConfig.__struct_fields__:
            raise UnknownName("setting", str(name), WeightConfig.__struct_fields__)
    return dict(settings)


# The drift of a tensor is compared with the median of all tensors, so that a tensor which moved
# more than the others is found in small and large updates alike. A limit at twice the mean would
# not find it: in a small model that tensor makes the mean.

# Relative L2 of rounding a normal tensor to a fraction of b bits: about 0.42 · 2^-b.
STORAGE_FLOORS = {"BF16": 1.66e-3, "F16": 2.08e-4, "F32": 2.5e-8, "F64": 4.7e-17}
_BANDS = (WeightDriftSeverity.LOW, WeightDriftSeverity.MEDIUM, WeightDriftSeverity.HIGH)
_ORDER = (WeightDriftSeverity.NONE, WeightDriftSeverity.MINIMAL, *_BANDS)
_FIGURES = ("relative_l2", "symmetric_l2", "mean_abs", "max_abs", "cosine", "pearson")
_DISTANCES = ("ks", "wasserstein", "relative_wasserstein", "rank_error")


def measure_drift(
    left: Tensors, right: Tensors, config: WeightConfig, *, threads: int | None = None
) -> WeightDriftAnalysis:
    """Measure each pair of tensors, and find those that moved more than the others."""
    before = {info.name: info for info in left.infos}
    after = {info.name: info for info in right.infos}
    shared = [name for name in before if name in after]
    reshaped = tuple(name for name in shared if before[name].shape != after[name].shape)
    pairs = [Pair(before[name], after[name]) for name in shared if name not in reshaped]
    engine = Threads(threads)
    try:
        measured = list(deltas(pairs, left.source, right.source, engine, always=True))
        tensors = tuple(
            engine.map(lambda each: _tensor_drift(*each, left, right, config), enumerate(measured))
        )
    finally:
        engine.close()
    return WeightDriftAnalysis(
        **_summary(tensors, config),
        tensors=tensors,
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        reshaped=reshaped,
        skipped={**left.skipped, **right.skipped},
        storage_floor=_storage_floor(pairs),
        config=config,
    )


def _tensor_drift(
    index: int, delta: Delta, left: Tensors, right: Tensors, config: WeightConfig
) -> TensorDrift:
    before, after = delta.pair.left, delta.pair.right
    scan = delta.measured(Scan)
    if before is None or after is None or scan is None:
        reason = Missing("relative_l2", "a tensor that is not empty", "it is empty")
        return TensorDrift(layer_index=index, name=delta.name, missing=(reason,))
    figures, deviation = scan.figures(), scan.side("left").std
    rms = sqrt(scan.square_sum / scan.pairs) if scan.pairs and isfinite(scan.square_sum) else None
    in_range = deviation is not None and scan.side("right").std is not None
    distances: dict[str, Any] = {}
    if scan.changed and in_range:
        histogram = Histogram.of(left.values(before), right.values(after))
        distances = {name: getattr(histogram, name) for name in _DISTANCES} if histogram else {}
    elif scan.pairs and not scan.changed:
        distances = dict.fromkeys(_DISTANCES, 0.0)
    return TensorDrift(
        layer_index=index,
        name=delta.name,
        **{name: figures[name] for name in (*_FIGURES, "within_storage_rounding")},
        **distances,
        rms_in_deviations=rms / deviation if rms is not None and deviation else None,
        left_nonfinite=scan.left_nonfinite,
        right_nonfinite=scan.right_nonfinite,
        severity=_severity(scan, figures["relative_l2"], config),
        missing=_missing(scan, before),
    )


def _severity(scan: Scan, relative: float | None, config: WeightConfig) -> WeightDriftSeverity:
    if scan.right_nonfinite > scan.left_nonfinite:
        return WeightDriftSeverity.HIGH
    if not scan.pairs:
        return WeightDriftSeverity.UNKNOWN
    if relative is None:  # from a tensor of zeros, or too large for 64 bits
        return WeightDriftSeverity.HIGH if scan.square_sum else WeightDriftSeverity.NONE
    return band_of(relative, config)


def band_of(relative: float, config: WeightConfig) -> WeightDriftSeverity:
    """Return the severity of a relative change."""
    severity = WeightDriftSeverity.MINIMAL if relative else WeightDriftSeverity.NONE
    for word, least in zip(_BANDS, config.drift_bands, strict=True):
        if relative > least:
            severity = word
    return severity


def _summary(tensors: tuple[TensorDrift, ...], config: WeightConfig) -> dict[str, Any]:
    known = [each.relative_l2 for each in tensors if each.relative_l2 is not None]
    if not known:
        words = [each.severity for each in tensors if each.severity in _ORDER]
        return {"severity": max(words, key=_ORDER.index, default=WeightDriftSeverity.UNKNOWN)}
    middle, mean = median(known), fmean(known)
    bound = middle + config.affected_deviations * float(robust_deviation(known, middle))
    affected = [
        each
        for each in tensors
        if (each.relative_l2 is None and each.severity == WeightDriftSeverity.HIGH)
        or (each.relative_l2 is not None and each.relative_l2 > bound)
    ]
    # A mean over all tensors hides a tensor that has NaN now, or that was all zeros before.
    has_hidden = any(
        each.severity == WeightDriftSeverity.HIGH
        and (each.relative_l2 is None or each.right_nonfinite > each.left_nonfinite)
        for each in tensors
    )
    return {
        "mean_drift": mean,
        "max_drift": max(known),
        "median_drift": middle,
        "severity": WeightDriftSeverity.HIGH if has_hidden else band_of(mean, config),
        "affected_above": bound,
        "affected_layers": tuple(each.layer_index for each in affected),
        "affected_names": tuple(each.name for each in affected),
    }


def _storage_floor(pairs: list[Pair]) -> float | None:
    """Return the relative L2 of rounding to the coarsest dtype; None for other dtypes."""
    dtypes = {info.dtype for pair in pairs for info in (pair.left, pair.right) if info}
    if not dtypes or not dtypes <= set(STORAGE_FLOORS):
        return None
    return max(STORAGE_FLOORS[dtype] for dtype in dtypes)


def _missing(scan: Scan, before: TensorInfo) -> tuple[Missing, ...]:
    if not before.count or not scan.pairs:
        return ()
    varied, constant = "values that are not all equal", "all values of the left tensor are equal"
    reasons = {
        "relative_l2": ("a left tensor that is not all zeros", "it is all zeros"),
        "cosine": ("two tensors that are not all zeros", "one of them is all zeros"),
        "pearson": (varied, "all values of one tensor are equal"),
        "rms_in_deviations": (varied, constant),
        "relative_wasserstein": (varied, constant),
    }
    if not isfinite(scan.square_sum):
        fields = (*reasons, "symmetric_l2", "ks", "wasserstein", "rank_error")
        reasons = dict.fromkeys(fields, ("smaller values", "their squares exceed 64 bits"))
    return tuple(Missing(field, *reason) for field, reason in reasons.items())
