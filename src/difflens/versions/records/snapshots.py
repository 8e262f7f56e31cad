"""What is recorded of one version of a model: the inputs of every comparison of versions.

Field names are public and never change. Each figure may be null, and `missing` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose
from typing import Any, ClassVar, Literal
from uuid import UUID, uuid4

import msgspec

from difflens.core.errors import SnapshotError
from difflens.core.findings import Missing
from difflens.core.kept import (
    Kept,
    Number,
    Settings,
    ascending,
    count,
    key_part,
    made,
    now,
    number,
    one_of,
    text,
    timestamp,
    to_plain,
)
from difflens.core.policy import MetricRule
from difflens.diffs.evidence.records import Example, Latency

SNAPSHOT_SCHEMA = 1
AT = "@"  # NAME@VERSION
_SUMMED = 1e-6  # a mean of equal numbers may be off by so much of them
_ROUNDED = 0.005  # a share typed in with two decimals may be off by so much


class ModelMetrics(Kept, frozen=True, kw_only=True):
    """What was measured of a model; shares are between 0 and 1."""

    says_why: ClassVar[tuple[str, str] | None] = ("--metrics", "it was not recorded")
    as_logged: ClassVar[frozenset[str]] = frozenset({"custom_metrics"})

    train_accuracy: float | None = None
    val_accuracy: float | None = None
    test_accuracy: float | None = None
    train_loss: float | None = None
    val_loss: float | None = None
    test_loss: float | None = None
    inference_latency_ms: float | None = None
    memory_usage_mb: float | None = None
    model_size_mb: float | None = None
    flops: int | None = None
    training_time_s: float | None = None
    custom_metrics: dict[str, Number] = {}
    missing: tuple[Missing, ...] = ()

    def __post_init__(self) -> None:
        """Refuse figures that nothing can have."""
        super().__post_init__()
        for field in ("train_accuracy", "val_accuracy", "test_accuracy"):
            number(field, getattr(self, field), 0, 1)
        for field in ("train_loss", "val_loss", "test_loss"):
            number(field, getattr(self, field))
        for field in (
            "inference_latency_ms",
            "memory_usage_mb",
            "model_size_mb",
            "training_time_s",
        ):
            number(field, getattr(self, field), 0)
        count("flops", self.flops)
        for name, value in self.custom_metrics.items():
            key_part("a custom metric's name", name)
            _logged(f"custom_metrics.{name}", value)


class ArchitectureInfo(Kept, frozen=True, kw_only=True):
    """How a model is built: read from its weights and config, or handed in."""

    says_why: ClassVar[tuple[str, str] | None] = ("--weights", "the weights were not read")

    parameter_count: int | None = None
    layer_count: int | None = None
    depth: int | None = None
    hidden_size: int | None = None
    num_heads: int | None = None
    ff_dim: int | None = None
    vocab_size: int | None = None
    max_seq_length: int | None = None
    kind: str | None = None  # the name of the architecture, where one is known
    missing: tuple[Missing, ...] = ()

    def __post_init__(self) -> None:
        """Raise if a count is negative."""
        super().__post_init__()
        for field in self.__struct_fields__[:8]:
            count(field, getattr(self, field))


class TrainingConfig(Kept, frozen=True, kw_only=True):
    """How a model was trained, as its user says; `settings` are all others, nested as they came."""

    says_why: ClassVar[tuple[str, str] | None] = ("--training", "it was not recorded")
    as_logged: ClassVar[frozenset[str]] = frozenset({"regularization", "settings"})

    learning_rate: float | None = None
    batch_size: int | None = None
    epochs: int | None = None
    optimizer: str | None = None
    lr_schedule: str | None = None
    regularization: dict[str, Number] = {}
    settings: dict[str, Any] = {}
    missing: tuple[Missing, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot have been a setting."""
        super().__post_init__()
        number("learning_rate", self.learning_rate, 0)
        count("batch_size", self.batch_size)
        count("epochs", self.epochs)
        for name, value in self.regularization.items():
            _logged(f"regularization.{name}", value)


class TensorSummary(Kept, frozen=True, kw_only=True):
    """One tensor of a snapshot: enough to say later whether it changed, without its file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    count: int
    sha256: str | None = None
    l2: float | None = None


class WeightsSummary(Kept, frozen=True, kw_only=True):
    """All weights of a model as one heap of numbers, and each tensor's fingerprint.

    `count` is the number of elements; the moments are over the finite ones, `nonfinite` counts
    the rest. `percentiles` are labelled p0 to p100; `percentile_error` is 0 if they are exact.
    """

    says_why: ClassVar[tuple[str, str] | None] = ("--weights", "the weights were not read")

    mean: float | None = None
    std_dev: float | None = None
    min: float | None = None
    max: float | None = None
    percentiles: dict[str, float] = {}
    zero_count: int | None = None
    sparsity: float | None = None
    count: int | None = None
    nonfinite: int | None = None
    percentile_error: float | None = None
    source: str | None = None  # the file or folder they were read from
    format: str | None = None
    size_bytes: int | None = None
    content_hash: str | None = None  # of all tensors: names, dtypes, shapes and values
    tensors: tuple[TensorSummary, ...] = ()
    missing: tuple[Missing, ...] = ()

    def __post_init__(self) -> None:
        """Refuse figures that contradict each other."""
        super().__post_init__()
        for field in ("mean", "min", "max"):
            number(field, getattr(self, field))
        number("std_dev", self.std_dev, 0)
        number("sparsity", self.sparsity, 0, 1)
        for field in ("zero_count", "count", "nonfinite", "size_bytes"):
            count(field, getattr(self, field))
        if self.min is not None and self.max is not None and self.mean is not None:
            slack = _SUMMED * max(abs(self.min), abs(self.max))
            number("mean", self.mean, self.min - slack, self.max + slack)
        ranked = sorted(
            (rank, label)
            for label in self.percentiles
            for rank in [_rank(label)]
            if rank is not None
        )
        spread = [(f"percentile {label}", self.percentiles[label]) for _, label in ranked]
        ascending([("min", self.min), *spread, ("max", self.max)])
        self._counts_agree()

    def _counts_agree(self) -> None:
        zeros, share, total = self.zero_count, self.sparsity, self.count
        if zeros is None:
            return
        if total is not None and zeros > total:
            raise SnapshotError(f"zero_count is {zeros}, of {total} elements")
        if share is None:
            return
        if zeros == 0 and share > _ROUNDED:
            raise SnapshotError(f"sparsity is {share}, but zero_count is 0")
        if total and not isclose(share, zeros / total, rel_tol=0, abs_tol=_ROUNDED):
            said = f"sparsity is {share}, but {zeros} of {total} elements are zero"
            raise SnapshotError(f"{said}, which is {zeros / total:.6g}")


class Evaluation(Kept, frozen=True, kw_only=True):
    """What the metrics were measured on and with; figures compare only where these agree."""

    dataset: str | None = None
    fingerprint: str | None = None  # a hash of the data: two that differ are different data
    n: int | None = None  # how many examples
    hardware: str | None = None
    precision: str | None = None

    def __post_init__(self) -> None:
        """Raise if a count is negative."""
        super().__post_init__()
        count("n", self.n)


class ModelSnapshot(Kept, frozen=True, kw_only=True):
    """One version of a model, as it was recorded; NAME@VERSION is its key.

    `replicates` are a metric's values over seeds, in the order of `replicate_ids` where those are
    given; `evals` are per-example results, `latency_samples` single measured latencies.
    """

    name: str
    version: str
    id: str = msgspec.field(default_factory=lambda: str(uuid4()))
    timestamp: str = msgspec.field(default_factory=now)
    commit_hash: str | None = None
    metrics: ModelMetrics = msgspec.field(default_factory=ModelMetrics)
    architecture: ArchitectureInfo = msgspec.field(default_factory=ArchitectureInfo)
    training_config: TrainingConfig = msgspec.field(default_factory=TrainingConfig)
    weights_summary: WeightsSummary = msgspec.field(default_factory=WeightsSummary)
    metadata: dict[str, str] = {}
    evaluation: Evaluation = msgspec.field(default_factory=Evaluation)
    replicates: dict[str, tuple[float, ...]] = {}
    replicate_ids: tuple[str, ...] = ()
    evals: tuple[Example, ...] = ()
    latency_samples: tuple[Latency, ...] = ()
    schema_version: int = SNAPSHOT_SCHEMA

    def __post_init__(self) -> None:
        """Refuse what no store could hold, and read sections given as plain maps."""
        for field, kind in _SECTIONS.items():
            given = getattr(self, field)
            if isinstance(given, Mapping):
                msgspec.structs.force_setattr(self, field, made(kind, given))
            elif not isinstance(given, kind):
                raise SnapshotError(f"{field} is {given!r}, not a {kind.__name__}")
        super().__post_init__()
        key_part("name", self.name, without=AT)
        key_part("version", self.version)
        msgspec.structs.force_setattr(self, "id", _identity(self.id))
        msgspec.structs.force_setattr(self, "timestamp", timestamp("timestamp", self.timestamp))
        if self.commit_hash is not None:
            key_part("commit_hash", self.commit_hash)
        for key, value in self.metadata.items():
            text(f"metadata.{key}", value)
        self._samples()

    def _samples(self) -> None:
        for metric, values in self.replicates.items():
            key_part("a replicated metric's name", metric)
            for value in values:
                number(f"replicates.{metric}", value)
            if self.replicate_ids and len(values) != len(self.replicate_ids):
                said = f"replicates.{metric} has {len(values)} values"
                raise SnapshotError(f"{said}, replicate_ids has {len(self.replicate_ids)}")
        for example in self.evals:
            to_plain(f"the score of example {example.id}", example.score)
        for sample in self.latency_samples:
            number("a latency sample", to_plain("a latency sample", sample.ms), 0, unit=" ms")

    @property
    def key(self) -> str:
        """What it is called on the command line: NAME@VERSION."""
        return f"{self.name}{AT}{self.version}"


class SnapshotLine(Kept, frozen=True, kw_only=True):
    """One snapshot in a list: what can be said of it without reading all of it."""

    name: str
    version: str
    id: str
    timestamp: str
    commit_hash: str | None = None
    position: int = 0  # its place in the order of arrival; a page begins after one
    parameter_count: int | None = None
    metrics: dict[str, float] = {}


class DifferentialDebuggingConfig(Settings, frozen=True, kw_only=True):
    """What a debugger does and how it judges.

    A larger `regression_sensitivity` finds more: a drop of accuracy is a regression beyond
    0.04·(1 - sensitivity) where `metrics` gives no margin. `max_comparison_models` bounds only a
    debugger without a store.
    """

    enable_model_comparison: bool = True
    enable_ab_analysis: bool = True
    enable_version_diff: bool = True
    enable_regression_detection: bool = True
    enable_performance_delta: bool = True
    significance_threshold: float = 0.05
    max_comparison_models: int = 10
    regression_sensitivity: float = 0.8
    performance_delta_threshold: float = 5.0  # percent
    metrics: dict[str, MetricRule] = {}
    correction: Literal["holm", "bh"] = "holm"
    seed: int = 0

    def _checked(self) -> None:
        number("regression_sensitivity", self.regression_sensitivity, 0, 1)
        number("performance_delta_threshold", self.performance_delta_threshold, 0)
        count("max_comparison_models", self.max_comparison_models, 2)
        count("seed", self.seed)
        number("significance_threshold", self.significance_threshold, 0, 1)
        one_of("correction", self.correction, ("holm", "bh"))
        if self.significance_threshold in (0, 1):
            raise SnapshotError(
                f"significance_threshold is {self.significance_threshold}; it lies between 0 and 1"
            )


_SECTIONS: dict[str, type[Kept]] = {
    "metrics": ModelMetrics,
    "architecture": ArchitectureInfo,
    "training_config": TrainingConfig,
    "weights_summary": WeightsSummary,
    "evaluation": Evaluation,
}


def _identity(value: object) -> str:
    try:
        return str(value if isinstance(value, UUID) else UUID(str(value)))
    except ValueError:
        raise SnapshotError(f"id is {value!r}, not a UUID") from None


def _logged(field: str, value: object) -> None:
    if not isinstance(value, str):
        if value is None:
            raise SnapshotError(f"{field} is null; leave it out where it is not known")
        number(field, value)
    else:
        one_of(field, value, ("NaN", "Infinity", "-Infinity"))


def _rank(label: str) -> float | None:
    """Read 50 from p50; other labels have no rank."""
    try:
        return float(label.removeprefix("p"))
    except ValueError:
        return None
