"""Examines every tensor of a model, several at a time, and combines the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from difflens.core.errors import ModelError
from difflens.core.findings import Missing
from difflens.core.records import TensorInfo
from difflens.engines.threads import Threads
from difflens.measure.chunks import STEP
from difflens.stats.moments import Moments

from ..anatomy.roles import Kind, kind_of
from .issues import Case, find_issues
from .records import (
    Deduction,
    DistributionHealth,
    DistributionHealthStatus,
    IssueCode,
    LayerWeightAnalysis,
    WeightConfig,
    WeightDistributionAnalysis,
    WeightHealth,
    WeightIssue,
    WeightStatistics,
)
from .spread import EXACT, Counted, Held, Spread, Tally
from .statistics import describe, find_outliers, gap_of
from .streaming import Counts, Tensors, read_tensor

MOST_THREADS = 4  # each may hold a tensor of `exact_elements`
Progress = Callable[[int], None]


class _Result(NamedTuple):
    """The analysis of one tensor, and what it adds to the statistics of the model."""

    layer: LayerWeightAnalysis
    counts: Counts
    moments: Moments
    ends: tuple[float | None, float | None]
    values: Any  # its finite values, if the complete model is in memory
    tally: tuple[Any, Any] | None


class _Work(NamedTuple):
    """The analysis of one tensor, with what it needs."""

    tensors: Tensors
    config: WeightConfig
    activations: Mapping[str, Any]
    in_memory: bool  # the complete model is small enough for memory
    step: int = STEP

    def run(self, numbered: tuple[int, TensorInfo]) -> _Result:
        """Read one tensor, describe it and find its issues."""
        index, info = numbered
        kind, values = kind_of(info.name, info.shape), self.tensors.values(info)
        contents = read_tensor(
            values, kind, self.config.exact_elements, tally=not self.in_memory, step=self.step
        )
        ends = contents.low, contents.high
        statistics, scale, constant = describe(
            contents.counts, contents.moments, ends, contents.spread, self.config
        )
        outliers = find_outliers(values, contents, scale, self.config, index) if scale else None
        rows, zero, dead = self._units(info, statistics, contents.units)
        he, xavier = _scales(kind, statistics)
        case = Case(
            info=info,
            kind=kind,
            statistics=statistics,
            constant=constant,
            farthest=outliers.farthest if outliers else None,
            gap=gap_of(outliers) if outliers else 0.0,
            zero_rows=zero,
            dead_units=dead,
            rows=rows,
            scale_to_he=he,
            config=self.config,
        )
        issues = find_issues(case, index)
        layer = LayerWeightAnalysis(
            layer_index=index,
            statistics=statistics,
            health_score=layer_score(info.count, issues),
            issues=issues,
            recommendations=advice(issues),
            name=info.name,
            kind=kind.word,
            shape=info.shape,
            dtype=info.stored or info.dtype,
            zero_rows=zero,
            rows=rows,
            scale_to_he=he,
            scale_to_xavier=xavier,
            outliers=outliers.farthest_weights if outliers else (),
            outlier_count=outliers.total if outliers else 0 if constant else None,
            outlier_cutoff=outliers.cutoff if outliers else None,
            missing=_missing(kind, constant=constant, scored=bool(info.count)),
        )
        spread = contents.spread
        finite = spread.values if self.in_memory and isinstance(spread, Held) else None
        return _Result(layer, contents.counts, contents.moments, ends, finite, contents.tally)

    def _units(
        self, info: TensorInfo, statistics: WeightStatistics, units: Any
    ) -> tuple[int | None, int | None, int | None]:
        """Count the output units, those whose weights are zero, and those of them that are dead."""
        if units is None or statistics.rms is None:
            return None, None, None
        zero = units.zero(self.config.zero_tolerance * statistics.rms)
        silent = _silent_units(self.activations, info.name, len(zero))
        dead = None if silent is None else int(np.count_nonzero(zero & silent))
        return len(zero), int(np.count_nonzero(zero)), dead


def analyse_weights(
    tensors: Tensors,
    config: WeightConfig,
    activations: Mapping[str, Any],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    step: int = STEP,
) -> WeightDistributionAnalysis:
    """Examine every tensor, and all tensors together."""
    total = sum(info.count for info in tensors.infos)
    work = _Work(tensors, config, activations, total <= config.exact_elements, step)
    engine = Threads(threads)
    engine.count = min(engine.count, MOST_THREADS)
    model, layers = _ModelStatistics(tensors, in_memory=work.in_memory), []
    try:
        results = engine.map(work.run, enumerate(tensors.infos))
        for info, result in zip(tensors.infos, results, strict=True):
            model.add(result)
            layers.append(result.layer)
            if progress:
                progress(info.size_bytes)
    finally:
        engine.close()
    health = score_health(layers)
    outliers = sorted(
        (outlier for each in layers for outlier in each.outliers),
        key=lambda outlier: (-abs(outlier.z_score), outlier.layer_index, outlier.weight_index),
    )
    return WeightDistributionAnalysis(
        layer_analyses=tuple(layers),
        overall_statistics=model.describe(config),
        distribution_health=health_status(health),
        outlier_detection=tuple(outliers[: config.listed_outliers]),
        outlier_count=sum(each.outlier_count or 0 for each in layers),
        health=health,
        parameters=total,
        skipped=tensors.skipped,
        source=tensors.name,
        config=config,
        warnings=tuple(tensors.source.warnings),
    )


class _ModelStatistics:
    """The statistics of all tensors together, collected tensor by tensor."""

    def __init__(self, tensors: Tensors, *, in_memory: bool) -> None:
        self._counts, self._moments = Counts(), Moments()
        self._lows: list[float] = []
        self._highs: list[float] = []
        self._values: list[Any] = []
        self._tally = None if in_memory else Tally()
        self._exact = all(info.dtype in EXACT for info in tensors.infos)

    def add(self, result: _Result) -> None:
        """Add one tensor."""
        self._counts = self._counts.plus(result.counts)
        self._moments = self._moments.plus(result.moments)
        low, high = result.ends
        if low is not None and high is not None:
            self._lows.append(low)
            self._highs.append(high)
        if result.values is not None:
            self._values.append(result.values)
        if self._tally is not None and result.tally is not None:
            codes, times = result.tally
            self._tally.counts[codes] += times

    def describe(self, config: WeightConfig) -> WeightStatistics:
        """Return the statistics of the model."""
        ends = (min(self._lows), max(self._highs)) if self._lows else (None, None)
        return describe(self._counts, self._moments, ends, self._spread(), config).statistics

    def _spread(self) -> Spread | None:
        if not self._counts.finite:
            return None
        if self._tally is not None:
            return Counted(*self._tally.occupied(), exact=self._exact)
        return Held(np.concatenate(self._values))


def _scales(kind: Kind, statistics: WeightStatistics) -> tuple[float | None, float | None]:
    """Return rms / √(2 / fan_in) (He 2015) and rms / √(2 / (fan_in + fan_out)) (Glorot 2010)."""
    if not kind.fan_in or not kind.fan_out or statistics.rms is None:
        return None, None
    he, xavier = sqrt(2 / kind.fan_in), sqrt(2 / (kind.fan_in + kind.fan_out))
    ratios = statistics.rms / he, statistics.rms / xavier
    return ratios if max(ratios) < float("inf") else (None, None)


def _missing(kind: Kind, *, constant: bool, scored: bool) -> tuple[Missing, ...]:
    reasons = []
    if kind.unit_axis is None:
        why = f"a {kind.word} has no output units"
        reasons += [(field, "two dimensions", why) for field in ("zero_rows", "rows")]
    if not kind.fan_in:
        why = f"a {kind.word} has no fan-in"
        reasons += [(field, "a fan-in", why) for field in ("scale_to_he", "scale_to_xavier")]
    if constant:
        reasons.append(("outlier_cutoff", "values that are not all equal", "they are equal"))
    if not scored:
        reasons.append(("health_score", "a weight", "the tensor is empty"))
    return tuple(Missing(*each) for each in reasons)


def _silent_units(activations: Mapping[str, Any], name: str, units: int) -> Any:
    """Find the units whose recorded activations are all zero; None if none were recorded.

    Activations have the name of the tensor or of its layer; the units are along the last axis.
    """
    layer = name.rpartition(".")[0]
    values = activations.get(name, activations.get(layer) if layer else None)
    if values is None:
        return None
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    array = np.asarray(values)
    if not array.ndim or array.shape[-1] != units or not array.size:
        reason = f"activations of shape {list(array.shape)} for {units} units"
        raise ModelError(name, reason, hint="put the units along the last axis")
    return ~array.reshape(-1, units).any(axis=0)


# Severities weigh as follows, so that a model of heavy-tailed matrices, as trained ones are, is
# well, and one with a matrix of zeros is not. Calibrated on shipped models (docs/weights.md).

_CODES = tuple(IssueCode)
_SEVERITIES = ("critical", "high", "medium", "low", "info")
_WEIGHTS = {"critical": 1.0, "high": 1.0, "medium": 0.2, "low": 0.05, "info": 0.0}
_AT_MOST = {"critical": 39.0, "high": 74.0}  # the score of a model with such an issue
_STATUSES = (
    (90.0, DistributionHealthStatus.EXCELLENT),
    (75.0, DistributionHealthStatus.GOOD),
    (60.0, DistributionHealthStatus.FAIR),
    (40.0, DistributionHealthStatus.POOR),
)


def _counting(issues: Iterable[WeightIssue]) -> tuple[WeightIssue, ...]:
    """List the issues that lower the score."""
    return tuple(each for each in issues if each.severity != "info")


def _weight(issues: Iterable[WeightIssue]) -> float:
    return max((_WEIGHTS[each.severity] for each in issues), default=0.0)


def layer_score(parameters: int, issues: Sequence[WeightIssue]) -> float | None:
    """Score one tensor by its worst issue."""
    return 100 * (1 - _weight(issues)) if parameters else None


def advice(issues: Iterable[WeightIssue]) -> tuple[str, ...]:
    """List the advice of the issues that lower the score, each once."""
    return tuple(dict.fromkeys(each.advice for each in _counting(issues)))


def score_health(layers: Sequence[LayerWeightAnalysis]) -> WeightHealth:
    """Score a model: its issues, the worst first, and the points that each tensor costs."""
    total = sum(each.statistics.count for each in layers)
    every = sorted(
        (issue for layer in layers for issue in layer.issues),
        key=lambda each: (_SEVERITIES.index(each.severity), _CODES.index(each.code)),
    )
    deductions = [
        Deduction(
            name=layer.name,
            codes=tuple(each.code for each in counting),
            parameters=layer.statistics.count,
            points=100 * layer.statistics.count / total * _weight(counting),
        )
        for layer in layers
        if (counting := _counting(layer.issues)) and total
    ]
    worst = every[0].severity if every else "info"
    score = min(max(0.0, 100 - sum(each.points for each in deductions)), _AT_MOST.get(worst, 100.0))
    return WeightHealth(
        score=score if total else None,
        issues=tuple(every),
        recommendations=advice(every),
        deductions=tuple(deductions),
    )


def health_status(health: WeightHealth) -> DistributionHealth:
    """Rate a score in one word, and say what decides it."""
    if health.score is None:
        reason = "there is no tensor of weights"
        return DistributionHealth(
            score=None, status=DistributionHealthStatus.UNKNOWN, reason=reason
        )
    score = health.score
    passed = (word for least, word in _STATUSES if score >= least)
    worst = health.issues[0].severity if health.issues else "info"
    count = sum(each.severity == worst for each in health.issues)
    reason = "the share of parameters in tensors with an issue, weighed by severity"
    if worst in _AT_MOST:
        reason = f"{count} {worst} {'issue' if count == 1 else 'issues'}"
    return DistributionHealth(
        score=score, status=next(passed, DistributionHealthStatus.CRITICAL), reason=reason
    )
