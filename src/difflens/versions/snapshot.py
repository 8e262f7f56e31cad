"""A snapshot made from what is there: weights are read, not typed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..evidences import Example, Latency
from ..kept import made, now
from ..snapshots import (
    ArchitectureInfo,
    Evaluation,
    ModelMetrics,
    ModelSnapshot,
    TrainingConfig,
    WeightsSummary,
)
from ..sources.handed import Model
from .built import built, stated_by
from .commit import commit_of
from .weights import Looked, look

AUTO = "auto"
_MEGA = 1e6


def snapshot_of(
    name: str,
    version: str,
    *,
    weights: Model | None = None,
    metrics: ModelMetrics | Mapping[str, Any] | None = None,
    training: TrainingConfig | Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    evals: Iterable[Example] = (),
    latency: Iterable[Latency] = (),
    replicates: Mapping[str, Iterable[float]] | None = None,
    replicate_ids: Iterable[str] = (),
    evaluation: Evaluation | Mapping[str, Any] | None = None,
    commit: str | None = None,
    meta: Mapping[str, str] | None = None,
    timestamp: str | None = None,
    threads: int | None = None,
    limits: Mapping[str, int] | None = None,
) -> ModelSnapshot:
    """Record one version of a model; what is not handed in and cannot be read is null.

    `weights` is any model that can be opened, or a mapping of names to arrays; `metrics` and
    `training` are records or flat maps, of which names that have no field are kept beside those
    that have. `commit="auto"` asks git.
    """
    looked = look(weights, threads=threads, limits=limits) if weights is not None else None
    about = dict(meta or {})
    if commit == AUTO:
        commit, is_dirty = commit_of()
        about |= {"commit_state": "uncommitted changes"} if is_dirty else {}
    return ModelSnapshot(
        name=name,
        version=version,
        commit_hash=commit,
        metrics=_metrics(metrics, looked),
        architecture=_architecture(looked, config),
        training_config=_training(training),
        weights_summary=looked.summary if looked else WeightsSummary(),
        metadata=about,
        evaluation=made(Evaluation, evaluation or {}),
        replicates={metric: tuple(each) for metric, each in (replicates or {}).items()},
        replicate_ids=tuple(replicate_ids),
        evals=tuple(evals),
        latency_samples=tuple(latency),
        timestamp=timestamp or now(),
    )


def _architecture(looked: Looked | None, config: Mapping[str, Any] | None) -> ArchitectureInfo:
    if looked is None:
        return stated_by(config) if config else ArchitectureInfo()
    found = looked.model
    infos = [each.info for each in found.tensors]
    return built(infos, found.metadata, config, list(found.aliases))


def _metrics(given: ModelMetrics | Mapping[str, Any] | None, looked: Looked | None) -> ModelMetrics:
    """Sort a flat map into the fields and the user's own; the size is that of the tensors read."""
    if isinstance(given, ModelMetrics):
        found = given
    else:
        found = made(ModelMetrics, _sorted(given or {}, ModelMetrics, "custom_metrics"))
    if looked is None or found.model_size_mb is not None:
        return found
    size = (looked.summary.size_bytes or 0) / _MEGA
    missing = tuple(each for each in found.missing if each.field != "model_size_mb")
    return msgspec.structs.replace(found, model_size_mb=size, missing=missing)


def _training(given: TrainingConfig | Mapping[str, Any] | None) -> TrainingConfig:
    if isinstance(given, TrainingConfig):
        return given
    return made(TrainingConfig, _sorted(given or {}, TrainingConfig, "settings"))


def _sorted(given: Mapping[str, Any], kind: type[msgspec.Struct], rest: str) -> dict[str, Any]:
    """Put what has no field of its own into the map that is there for it."""
    fields = set(kind.__struct_fields__)
    own = {key: value for key, value in given.items() if key not in fields}
    named = {key: value for key, value in given.items() if key in fields}
    return {**named, rest: {**own, **(named.get(rest) or {})}}
