"""How far weights moved between two models, tensor by tensor of one name.

Relative changes are compared with each other, so that a layer that moved more than its fellows is
found in a small update as in a large one; twice the mean, as the seeds have it, is never exceeded
where one layer makes the mean.
"""

from __future__ import annotations

from math import isfinite, sqrt
from statistics import fmean, median
from typing import Any

from ..measure.engine import Threads
from ..measure.histogram import Histogram
from ..measure.pairs import deltas
from ..measure.scan import Scan
from ..records import Delta, Missing, Pair, TensorInfo
from ..weight_results import TensorDrift, WeightConfig, WeightDriftAnalysis, WeightDriftSeverity
from .handed import Tensors
from .outliers import NORMAL_MAD

# Relative L2 that rounding costs a normal tensor: a fraction of b bits, about 0.42 · 2^-b.
STORAGE_FLOORS = {"BF16": 1.66e-3, "F16": 2.08e-4, "F32": 2.5e-8, "F64": 4.7e-17}
_BANDS = (WeightDriftSeverity.LOW, WeightDriftSeverity.MEDIUM, WeightDriftSeverity.HIGH)
_ORDER = (WeightDriftSeverity.NONE, WeightDriftSeverity.MINIMAL, *_BANDS)


def drift(
    left: Tensors, right: Tensors, config: WeightConfig, *, threads: int | None = None
) -> WeightDriftAnalysis:
    """Pair tensors by name, measure each pair, and say which moved more than the others."""
    before = {info.name: info for info in left.infos}
    after = {info.name: info for info in right.infos}
    shared = [name for name in before if name in after]
    reshaped = tuple(name for name in shared if before[name].shape != after[name].shape)
    pairs = [Pair(before[name], after[name]) for name in shared if name not in reshaped]
    engine = Threads(threads)
    try:
        measured = list(deltas(pairs, left.source, right.source, engine, always=True))
        tensors = tuple(
            engine.map(lambda each: _tensor(*each, left, right, config), enumerate(measured))
        )
    finally:
        engine.close()
    return WeightDriftAnalysis(
        **_facts(tensors, config),
        tensors=tensors,
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        reshaped=reshaped,
        skipped={**left.skipped, **right.skipped},
        storage_floor=_floor(pairs),
        config=config,
    )


def _tensor(
    place: int, delta: Delta, left: Tensors, right: Tensors, config: WeightConfig
) -> TensorDrift:
    before, after = delta.pair.left, delta.pair.right
    scan = delta.measured(Scan)
    if before is None or after is None or scan is None:
        why = Missing("relative_l2", "a tensor that is not empty", "it is")
        return TensorDrift(layer_index=place, name=delta.name, missing=(why,))
    told = scan.figures()
    in_reach = scan.side("left").std is not None and scan.side("right").std is not None
    spread = None
    if scan.changed and in_reach:
        spread = Histogram.of(left.values(before), right.values(after))
    same = None if scan.changed or not scan.pairs else 0.0
    deviation = scan.side("left").std
    rms = sqrt(scan.square_sum / scan.pairs) if scan.pairs and isfinite(scan.square_sum) else None
    facts = {name: told[name] for name in ("relative_l2", "symmetric_l2", "mean_abs", "max_abs",
                                           "cosine", "pearson")}  # fmt: skip
    return TensorDrift(
        layer_index=place, name=delta.name, **facts,
        rms_in_deviations=rms / deviation if rms is not None and deviation else None,
        ks=spread.ks if spread else same, wasserstein=spread.wasserstein if spread else same,
        relative_wasserstein=spread.relative_wasserstein if spread else same,
        rank_error=spread.rank_error if spread else same,
        within_storage_rounding=told["within_storage_rounding"],
        left_nonfinite=scan.left_nonfinite, right_nonfinite=scan.right_nonfinite,
        severity=_severity(scan, told["relative_l2"], config),
        missing=_reasons(scan, before),
    )  # fmt: skip


def _severity(scan: Scan, relative: float | None, config: WeightConfig) -> WeightDriftSeverity:
    if scan.right_nonfinite > scan.left_nonfinite:
        return WeightDriftSeverity.HIGH
    if not scan.pairs:
        return WeightDriftSeverity.UNKNOWN
    if relative is None:  # out of nothing, or beyond every number
        return WeightDriftSeverity.HIGH if scan.square_sum else WeightDriftSeverity.NONE
    return banded(relative, config)


def banded(relative: float, config: WeightConfig) -> WeightDriftSeverity:
    """Give the word for a relative change."""
    found = WeightDriftSeverity.MINIMAL if relative else WeightDriftSeverity.NONE
    for word, least in zip(_BANDS, config.drift_bands, strict=True):
        if relative > least:
            found = word
    return found


def _facts(tensors: tuple[TensorDrift, ...], config: WeightConfig) -> dict[str, Any]:
    known = [each.relative_l2 for each in tensors if each.relative_l2 is not None]
    words = [each.severity for each in tensors if each.severity in _ORDER]
    if not known:
        worst = max(words, key=_ORDER.index, default=WeightDriftSeverity.UNKNOWN)
        return {"severity": worst}
    middle = median(known)
    spread = median(abs(each - middle) for each in known) / NORMAL_MAD
    bound = middle + config.affected_deviations * spread
    affected = [
        each
        for each in tensors
        if (each.relative_l2 is None and each.severity == WeightDriftSeverity.HIGH)
        or (each.relative_l2 is not None and each.relative_l2 > bound)
    ]
    mean = fmean(known)
    # What a mean over all tensors hides: values that stopped being finite, or came out of nothing.
    beyond = any(each.severity == WeightDriftSeverity.HIGH and
                 (each.relative_l2 is None or each.right_nonfinite > each.left_nonfinite)
                 for each in tensors)  # fmt: skip
    return {
        "mean_drift": mean,
        "max_drift": max(known),
        "median_drift": middle,
        "severity": WeightDriftSeverity.HIGH if beyond else banded(mean, config),
        "affected_above": bound,
        "affected_layers": tuple(each.layer_index for each in affected),
        "affected_names": tuple(each.name for each in affected),
    }


def _floor(pairs: list[Pair]) -> float | None:
    """Give what rounding to the coarsest dtype costs; None where a dtype's is not known."""
    dtypes = {info.dtype for pair in pairs for info in (pair.left, pair.right) if info}
    if not dtypes or not dtypes <= set(STORAGE_FLOORS):
        return None
    return max(STORAGE_FLOORS[dtype] for dtype in dtypes)


def _reasons(scan: Scan, before: TensorInfo) -> tuple[Missing, ...]:
    if not before.count or not scan.pairs:
        return ()
    told = {
        "relative_l2": ("a left tensor that is not all zeros", "it is all zeros"),
        "cosine": ("two tensors that are not all zeros", "one is"),
        "pearson": ("values that are not all equal", "they are on one side"),
        "rms_in_deviations": ("values that are not all equal", "they are on the left"),
        "relative_wasserstein": ("values that are not all equal", "they are on the left"),
    }
    if not isfinite(scan.square_sum):
        fields = (*told, "symmetric_l2", "ks", "wasserstein", "rank_error")
        told = dict.fromkeys(fields, ("smaller numbers", "their squares are beyond 64 bits"))
    return tuple(Missing(field, *reason) for field, reason in told.items())
