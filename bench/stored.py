"""Fills a store with versions of models, as years of a team would: `bench.stored PATH COUNT`.

Every model has a hundred versions (fewer of the last one) with six metrics, per-example scores in
the newest two alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from random import Random

from difflens.diffs.evidence.records import Example
from difflens.versions.records.snapshots import (
    ArchitectureInfo,
    ModelMetrics,
    ModelSnapshot,
    TrainingConfig,
)
from difflens.versions.store import open_store
from difflens.versions.store.tables import figures_of, snapshot_row, tables

VERSIONS = 100
_SCORED = 500
_BATCH = 5_000


def snapshots(count: int) -> Iterator[ModelSnapshot]:
    """Yield so many snapshots, version after version of each model."""
    draw = Random(0)  # noqa: S311  data, not secrets
    for at in range(count):
        model, version = divmod(at, VERSIONS)
        accuracy = min(0.99, 0.8 + version / 1000 + draw.gauss(0, 0.01))
        scored = version >= VERSIONS - 2 or at >= count - 2
        yield ModelSnapshot(
            name=f"model-{model:04}",
            version=str(version),
            timestamp=f"2025-01-01T{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}Z",
            metrics=ModelMetrics(
                val_accuracy=accuracy,
                val_loss=draw.uniform(0.1, 0.5),
                inference_latency_ms=draw.uniform(5, 50),
                memory_usage_mb=draw.uniform(100, 900),
                model_size_mb=draw.uniform(100, 900),
                custom_metrics={"f1": draw.uniform(0.7, 0.9)},
            ),
            architecture=ArchitectureInfo(parameter_count=124_000_000 + model, layer_count=12),
            training_config=TrainingConfig(learning_rate=1e-3, batch_size=64),
            evals=tuple(
                Example(str(place), float(draw.random() < accuracy), "exact_match")
                for place in range(_SCORED if scored else 0)
            ),
        )


def main(path: str, count: int) -> None:
    """Fill the store in bulk: one `put` after the other would take minutes."""
    with open_store(path) as store, store._writing() as connection:  # noqa: SLF001
        table, figures, *_ = tables()
        every = enumerate(snapshots(count), 1)
        while batch := list(islice(every, _BATCH)):
            rows = [snapshot_row(each) | {"position": at} for at, each in batch]
            connection.execute(table.insert(), rows)
            connection.execute(figures.insert(), [
                {"position": at, "name": each.name, "timestamp": each.timestamp,
                 "metric": metric, "value": value}
                for at, each in batch for metric, value in figures_of(each).items()
            ])  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
