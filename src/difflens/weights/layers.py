"""Looks at every tensor of a model, several at a time, and puts the answers together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..measure.chunks import STEP
from ..measure.engine import Threads
from ..records import Missing, TensorInfo
from ..weight_results import (
    LayerWeightAnalysis,
    WeightConfig,
    WeightDistributionAnalysis,
    WeightStatistics,
)
from .activity import silent_units
from .codes import EXACT, Tally
from .handed import Tensors
from .health import advice, health, layer_score, status
from .issues import Case, issues
from .kinds import Kind, kind_of
from .moments import Moments
from .outliers import outliers
from .spread import Counted, Held, Spread
from .statistics import describe
from .streaming import Counts, seen

MOST_THREADS = 4  # each may hold a tensor of `exact_elements`
Progress = Callable[[int], None]


class Looked(NamedTuple):
    """One tensor's answer, and what the whole needs of it."""

    layer: LayerWeightAnalysis
    counts: Counts
    moments: Moments
    ends: tuple[float | None, float | None]
    held: Any  # its finite values, where the whole model is held
    tally: tuple[Any, Any] | None


class Work(NamedTuple):
    """What is asked of every tensor."""

    tensors: Tensors
    config: WeightConfig
    activations: Mapping[str, Any]
    together: bool  # the whole model is small enough to hold
    step: int = STEP

    def look(self, numbered: tuple[int, TensorInfo]) -> Looked:
        """Read one tensor and judge it."""
        place, info = numbered
        kind, values = kind_of(info.name, info.shape), self.tensors.values(info)
        read = seen(values, kind, self.config.exact_elements, tally=not self.together,
                    step=self.step)  # fmt: skip
        ends = read.low, read.high
        told, scale, constant = describe(read.counts, read.moments, ends, read.spread, self.config)
        far = outliers(values, read, scale, self.config, place) if scale else None
        rows, zero, dead = self._units(info, told, read.units)
        he, xavier = _scales(kind, told)
        case = Case(
            info, kind, told, constant, far.farthest if far else None, zero, dead, rows, he,
            self.config,
        )  # fmt: skip
        found = issues(case, place)
        layer = LayerWeightAnalysis(
            layer_index=place, statistics=told, health_score=layer_score(info.count, found),
            issues=found, recommendations=advice(found), name=info.name, kind=kind.word,
            shape=info.shape, dtype=info.stored or info.dtype, zero_rows=zero, rows=rows,
            scale_to_he=he, scale_to_xavier=xavier, outliers=far.kept if far else (),
            outlier_count=far.total if far else 0 if constant else None,
            outlier_cutoff=far.cutoff if far else None,
            missing=_missing(kind, constant=constant, scored=bool(info.count)),
        )  # fmt: skip
        held = read.spread.values if self.together and isinstance(read.spread, Held) else None
        return Looked(layer, read.counts, read.moments, ends, held, read.tally)

    def _units(
        self, info: TensorInfo, told: WeightStatistics, units: Any
    ) -> tuple[int | None, int | None, int | None]:
        """Count the output units, those without weights, and those of them that stay silent."""
        if units is None or told.rms is None:
            return None, None, None
        zero = units.zero(self.config.zero_tolerance * told.rms)
        silent = silent_units(self.activations, info.name, len(zero))
        dead = None if silent is None else int(np.count_nonzero(zero & silent))
        return len(zero), int(np.count_nonzero(zero)), dead


def analyse(
    tensors: Tensors,
    config: WeightConfig,
    activations: Mapping[str, Any],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    step: int = STEP,
) -> WeightDistributionAnalysis:
    """Look at every tensor, and at all of them together."""
    total = sum(info.count for info in tensors.infos)
    work = Work(tensors, config, activations, total <= config.exact_elements, step)
    engine = Threads(threads)
    engine.count = min(engine.count, MOST_THREADS)
    whole, layers = _Whole(tensors, together=work.together), []
    try:
        results = engine.map(work.look, enumerate(tensors.infos))
        for info, each in zip(tensors.infos, results, strict=True):
            whole.add(each)
            layers.append(each.layer)
            if progress:
                progress(info.size_bytes)
    finally:
        engine.close()
    found = health(layers)
    every = sorted(
        (far for each in layers for far in each.outliers),
        key=lambda far: (-abs(far.z_score), far.layer_index, far.weight_index),
    )
    return WeightDistributionAnalysis(
        layer_analyses=tuple(layers), overall_statistics=whole.described(config),
        distribution_health=status(found), outlier_detection=tuple(every[: config.listed_outliers]),
        outlier_count=sum(each.outlier_count or 0 for each in layers), health=found,
        parameters=total, skipped=tensors.skipped, source=tensors.name, config=config,
        warnings=tuple(tensors.source.warnings),
    )  # fmt: skip


class _Whole:
    """All tensors as if they were one."""

    def __init__(self, tensors: Tensors, *, together: bool) -> None:
        self._counts, self._moments = Counts(), Moments()
        self._lows: list[float] = []
        self._highs: list[float] = []
        self._held: list[Any] = []
        self._tally = None if together else Tally()
        self._exact = all(info.dtype in EXACT for info in tensors.infos)

    def add(self, each: Looked) -> None:
        """Take in one tensor."""
        self._counts = self._counts.plus(each.counts)
        self._moments = self._moments.plus(each.moments)
        low, high = each.ends
        if low is not None and high is not None:
            self._lows.append(low)
            self._highs.append(high)
        if each.held is not None:
            self._held.append(each.held)
        if self._tally is not None and each.tally is not None:
            codes, times = each.tally
            self._tally.counts[codes] += times

    def described(self, config: WeightConfig) -> WeightStatistics:
        """Describe it."""
        ends = (min(self._lows), max(self._highs)) if self._lows else (None, None)
        return describe(self._counts, self._moments, ends, self._spread(), config).statistics

    def _spread(self) -> Spread | None:
        if not self._counts.finite:
            return None
        if self._tally is not None:
            return Counted(*self._tally.occupied(), exact=self._exact)
        return Held(np.concatenate(self._held))


def _scales(kind: Kind, told: WeightStatistics) -> tuple[float | None, float | None]:
    """Give rms / √(2 / fan_in) (He 2015) and rms / √(2 / (fan_in + fan_out)) (Glorot 2010)."""
    if not kind.fan_in or not kind.fan_out or told.rms is None:
        return None, None
    he, xavier = sqrt(2 / kind.fan_in), sqrt(2 / (kind.fan_in + kind.fan_out))
    ratios = told.rms / he, told.rms / xavier
    return ratios if max(ratios) < float("inf") else (None, None)


def _missing(kind: Kind, *, constant: bool, scored: bool) -> tuple[Missing, ...]:
    reasons = []
    if kind.unit_axis is None:
        reasons += [(field, "two dimensions", f"a {kind.word} has no output units")
                    for field in ("zero_rows", "rows")]  # fmt: skip
    if not kind.fan_in:
        reasons += [(field, "a fan-in", f"a {kind.word} has none")
                    for field in ("scale_to_he", "scale_to_xavier")]  # fmt: skip
    if constant:
        reasons.append(("outlier_cutoff", "values that are not all equal", "they are equal"))
    if not scored:
        reasons.append(("health_score", "a weight", "the tensor is empty"))
    return tuple(Missing(*each) for each in reasons)
