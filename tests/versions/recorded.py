"""Snapshots as users record them, small and plain."""

from typing import Any

from difflens.diffs.evidence.records import Example
from difflens.versions.records.snapshots import ModelSnapshot

FIGURES = {
    "val_accuracy": 0.9,
    "val_loss": 0.3,
    "inference_latency_ms": 50.0,
    "memory_usage_mb": 100.0,
    "model_size_mb": 40.0,
}
BUILT = {"parameter_count": 1_000_000, "layer_count": 12, "depth": 12, "hidden_size": 64}


def snapshot(name: str = "net", version: str = "1", day: int = 1, **given: Any) -> ModelSnapshot:
    """Record a version; metrics handed in as `metrics` add to the usual ones."""
    custom = given.pop("custom", {})
    metrics = {**FIGURES, **given.pop("metrics", {}), "custom_metrics": custom}
    fields = {"architecture": BUILT, "timestamp": f"2026-01-{day:02d}T00:00:00Z", **given}
    return ModelSnapshot.from_dict({"name": name, "version": version, "metrics": metrics, **fields})


def bare(name: str = "net", version: str = "1", day: int = 1, **given: Any) -> ModelSnapshot:
    """Record a version of which nothing is known but what is handed in."""
    fields = {"timestamp": f"2026-01-{day:02d}T00:00:00Z", **given}
    return ModelSnapshot.from_dict({"name": name, "version": version, **fields})


def examples(scores: Any, metric: str = "accuracy", clusters: Any = None) -> tuple[Example, ...]:
    """Return scores ids by their place."""
    groups = clusters if clusters is not None else [None] * len(scores)
    return tuple(
        Example(f"q{place}", float(score), metric, None if group is None else str(group))
        for place, (score, group) in enumerate(zip(scores, groups, strict=True))
    )
