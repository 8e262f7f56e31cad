"""The state of a store: what is in it, how its metrics went, what was found last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from difflens.core.policy import Policy

from .history import course
from .metrics import ACCURACY, BUILTIN, LATENCY, Rule, ordered
from .metrics import rules as rules_of
from .records.ab import ABTestResult
from .records.comparisons import ModelComparisonResult, ParetoPoint, RankTest, VersionDiff
from .records.regressions import (
    DifferentialDebuggingReport,
    MetricHistory,
    RegressionDetectionResult,
)
from .records.snapshots import DifferentialDebuggingConfig, ModelSnapshot, SnapshotLine
from .standings import pareto
from .store import Store
from .summary import criterion_among
from .tasks import rank_test

RECENT, RECENT_REGRESSIONS = 5, 3
LINES, MODELS, CHARTS = 200, 50, 12  # newest snapshots looked at; models compared; charts
_SHOWN = ("val_accuracy", "val_loss", "inference_latency_ms")


def report(
    store: Store,
    config: DifferentialDebuggingConfig | None = None,
    policy: Policy | None = None,
    *,
    timestamp: str | None = None,
) -> DifferentialDebuggingReport:
    """Look over a store; nothing of it is changed, and only pages of it are read."""
    config, policy = config or DifferentialDebuggingConfig(), policy or Policy()
    lines = store.find(limit=LINES)
    newest: dict[str, SnapshotLine] = {}
    for line in sorted(lines, key=lambda each: each.timestamp, reverse=True):
        newest.setdefault(line.name, line)
    models = dict(list(newest.items())[:MODELS])
    values = _values(models)
    rules = rules_of(
        {name: next(iter(each.values())) for name, each in values.items()}, config, policy
    )
    total = store.count(ModelSnapshot)
    when: dict[str, Any] = {} if timestamp is None else {"timestamp": timestamp}
    return DifferentialDebuggingReport(
        config=config,
        total_models=total,
        comparison_count=store.count(ModelComparisonResult),
        ab_test_count=store.count(ABTestResult),
        version_diff_count=store.count(VersionDiff),
        regression_detection_count=store.count(RegressionDetectionResult),
        recent_comparisons=store.results(ModelComparisonResult, limit=RECENT),
        recent_regressions=store.results(RegressionDetectionResult, limit=RECENT_REGRESSIONS),
        model_summary=_summary(store, total),
        recent_ab_tests=store.results(ABTestResult, limit=RECENT),
        recent_version_diffs=store.results(VersionDiff, limit=RECENT),
        total_names=_names(store, newest, total),
        histories=tuple(_histories(store, models, rules, config)),
        pareto=_front(values, rules, models),
        ranks=_ranks(values, rules, models, config),
        dropped=dict(getattr(store, "dropped", {})),
        store=store.where,
        warnings=tuple(store.warnings),
        **when,
    )


def _names(store: Store, newest: Mapping[str, SnapshotLine], total: int) -> int:
    """Count the models; all are in the newest snapshots where those are all there are."""
    if total <= LINES:
        return len(newest)
    count, last = 0, ""
    while page := store.names(limit=10_000, after=last):
        count, last = count + len(page), page[-1]
    return count


def _summary(store: Store, total: int) -> dict[str, str | int | float | None]:
    found: dict[str, str | int | float | None] = {}
    best = store.best(ACCURACY, highest=True)
    if best:
        found |= {"best_accuracy_model": best[0][0], "best_accuracy_value": best[0][1]}
    fastest = store.best(LATENCY, highest=False)
    if fastest:
        found |= {"fastest_model": fastest[0][0], "fastest_latency": fastest[0][1]}
    return {**found, "total_models": total}


def _values(models: Mapping[str, SnapshotLine]) -> dict[str, dict[str, float]]:
    names = ordered({metric for line in models.values() for metric in line.metrics})
    return {
        metric: {
            name: line.metrics[metric] for name, line in models.items() if metric in line.metrics
        }
        for metric in names
    }


def _histories(
    store: Store,
    models: Mapping[str, SnapshotLine],
    rules: Mapping[str, Rule],
    config: DifferentialDebuggingConfig,
) -> Iterator[MetricHistory]:
    """Follow the metrics of the models recorded last, as many as a page has room for."""
    left = CHARTS
    for name, line in models.items():
        own = [metric for metric in line.metrics if metric not in BUILTIN]
        for metric in (*_SHOWN, *sorted(own)):
            if not left:
                return
            if metric not in line.metrics:
                continue
            past = store.history(name, metric)
            if len(past) > 1:
                yield course(
                    name,
                    metric,
                    past,
                    rules[metric].direction,
                    alpha=config.significance_threshold,
                    seed=config.seed,
                ).history
                left -= 1


def _front(
    values: Mapping[str, Mapping[str, float]],
    rules: Mapping[str, Rule],
    models: Mapping[str, SnapshotLine],
) -> tuple[ParetoPoint, ...]:
    shared = {metric: each for metric, each in values.items() if len(each) > 1}
    return pareto(shared, rules, list(models), criterion_among(shared)).points if shared else ()


def _ranks(
    values: Mapping[str, Mapping[str, float]],
    rules: Mapping[str, Rule],
    models: Mapping[str, SnapshotLine],
    config: DifferentialDebuggingConfig,
) -> RankTest | None:
    found = rank_test(values, rules, list(models), config.significance_threshold)
    return None if isinstance(found, str) else found
