"""The story of versions: record them, compare them, test them, and say what got worse.

>>> debugger = DifferentialDebugger()
>>> for version, accuracy in (("1", 0.90), ("2", 0.70)):
...     snapshot = {"name": "net", "version": version, "metrics": {"val_accuracy": accuracy}}
...     _ = debugger.add_model_snapshot(snapshot)
>>> found = debugger.detect_regressions("net@2", "net@1")
>>> [(each.metric, each.severity.value) for each in found.regressions]
[('val_accuracy', 'Critical')]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import RLock
from typing import Any, Self, TypeVar

import msgspec

from difflens.core.errors import (
    DisabledFeature,
    IncompatibleSnapshots,
    InsufficientData,
    UnknownModel,
)
from difflens.core.kept import Kept, made, now
from difflens.core.policy import Policy
from difflens.diffs.evidence.records import Past

from .records.ab import ABTestConfig, ABTestResult
from .records.comparisons import ModelComparisonResult, VersionDiff
from .records.regressions import DifferentialDebuggingReport, RegressionDetectionResult
from .records.snapshots import DifferentialDebuggingConfig, ModelSnapshot, SnapshotLine
from .store import Store

Snapshot = ModelSnapshot | Mapping[str, Any]
ResultT = TypeVar("ResultT", bound=Kept)


class DifferentialDebugger:
    """Versions of models, and the results of comparing them; several threads may use one.

    Without a store, snapshots are held in memory, no more than `max_comparison_models` of them.
    A model is called NAME@VERSION, or NAME for its newest version.
    """

    def __init__(
        self,
        config: DifferentialDebuggingConfig | Mapping[str, Any] | None = None,
        store: str | Store | None = None,
        *,
        policy: Policy | None = None,
        clock: Callable[[], str] = now,
    ) -> None:
        """Open the store: a URL, a path, an open one, or None for this process alone.

        `clock` returns the time of a result, so that a run can be repeated to the byte.
        """
        self.config = made(DifferentialDebuggingConfig, config if config is not None else {})
        self.policy = policy or Policy()
        self._is_bounded = store is None
        self._owns_store = store is None or isinstance(store, str)
        self._store = _opened(store, self.config)
        self._lock = RLock()
        self._clock = clock

    @property
    def store(self) -> Store:
        """Where snapshots and results are kept."""
        return self._store

    def add_model_snapshot(self, snapshot: Snapshot, *, replace: bool | None = None) -> str:
        """Record a version and return its key, NAME@VERSION.

        A version that is recorded already is replaced in memory; a store refuses it unless
        `replace`.
        """
        record = made(ModelSnapshot, snapshot)
        with self._lock:
            return self._store.put(record, replace=self._is_bounded if replace is None else replace)

    def compare_models(self, names: Iterable[str]) -> ModelComparisonResult:
        """Compare two or more models; the first named is the base of differences."""
        from .compare import compare

        self._check_enabled("enable_model_comparison", "comparing models")
        keys = list(names)
        if len(keys) < 2:
            raise InsufficientData(f"{len(keys)} models; a comparison takes two or more")
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise IncompatibleSnapshots(f"{twice} is named twice")
        with self._lock:
            models = {key: self._store.get(key) for key in keys}
        comparison = compare(models, self.config, self.policy, timestamp=self._clock())
        return self._store_result(comparison)

    def run_ab_test(
        self,
        config: ABTestConfig | Mapping[str, Any],
        model_a_data: Any,
        model_b_data: Any,
        *,
        start_time: str | None = None,
        end_time: str | None = None,
    ) -> ABTestResult:
        """Test two arms of observations: sequences, or maps of metrics to sequences."""
        from .ab import run_ab_test

        self._check_enabled("enable_ab_analysis", "A/B testing")
        result = run_ab_test(
            self._complete(config),
            model_a_data,
            model_b_data,
            start_time=start_time,
            end_time=end_time or self._clock(),
        )
        warnings = (*result.warnings, *self._unknown_arms(result.config))
        return self._store_result(msgspec.structs.replace(result, warnings=warnings))

    def _complete(self, config: ABTestConfig | Mapping[str, Any]) -> ABTestConfig:
        """Add the debugger's alpha, seed and correction to a mapping that does not set them."""
        if isinstance(config, Mapping):
            own = {
                "alpha": self.config.significance_threshold,
                "seed": self.config.seed,
                "correction": self.config.correction,
            }
            config = {**own, **config}
        return made(ABTestConfig, config)

    def _unknown_arms(self, config: ABTestConfig) -> Iterator[str]:
        """Warn of arms that have the name of no recorded model, unless no model is recorded."""
        if not self._store.find(limit=1):
            return
        for label in (config.model_a, config.model_b):
            try:
                self._store.get(label)
            except UnknownModel:
                yield f"{label} is not recorded in {self._store.where}"

    def track_version_diff(
        self, from_model: str, to_model: str, *, from_weights: Any = None, to_weights: Any = None
    ) -> VersionDiff:
        """Say what changed between two versions; weights are read again where they still lie."""
        from .version_diff import version_diff

        self._check_enabled("enable_version_diff", "tracking versions")
        left, right = self._store.get(from_model), self._store.get(to_model)
        return self._store_result(
            version_diff(
                left,
                right,
                self.config,
                self.policy,
                left_weights=from_weights,
                right_weights=to_weights,
                timestamp=self._clock(),
            )
        )

    def detect_regressions(
        self, current_model: str, baseline_model: str
    ) -> RegressionDetectionResult:
        """Compare the current version with the baseline, and with the versions before it."""
        from .regressions import detect_regressions

        self._check_enabled("enable_regression_detection", "detecting regressions")
        current, baseline = self._store.get(current_model), self._store.get(baseline_model)
        history = self._history(current, baseline)
        return self._store_result(
            detect_regressions(
                current,
                baseline,
                self.config,
                self.policy,
                history=history,
                timestamp=self._clock(),
            )
        )

    def _history(
        self, current: ModelSnapshot, baseline: ModelSnapshot
    ) -> dict[str, tuple[Past, ...]]:
        """Return past values by metric: of the same model, recorded before the current version."""
        from .metrics import known

        name = baseline.name
        history = {}
        for metric in known(current):
            recorded = self._store.history(name, metric)
            past = tuple(each for each in recorded if _is_before(each, current, name))
            if past:
                history[metric] = past
        return history

    def generate_report(self) -> DifferentialDebuggingReport:
        """Report on all that is recorded, whatever the configuration switches off."""
        from .report import report

        return report(self._store, self.config, self.policy, timestamp=self._clock())

    def snapshots(
        self, name: str | None = None, *, limit: int = 50, after: int | None = None
    ) -> tuple[SnapshotLine, ...]:
        """List what was recorded, the newest first, one page at a time."""
        return self._store.find(name, limit=limit, after=after)

    def snapshot(self, name: str) -> ModelSnapshot:
        """Return one snapshot."""
        return self._store.get(name)

    def pin(self, name: str) -> None:
        """Keep a baseline in memory, however many are recorded after it; a store drops nothing."""
        pin = getattr(self._store, "pin", None)
        if pin is not None:
            pin(name)

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._owns_store:
            self._store.close()

    def __enter__(self) -> Self:
        """Return itself; the store is closed at the end of the `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()

    def _check_enabled(self, setting: str, feature: str) -> None:
        if not getattr(self.config, setting):
            raise DisabledFeature(feature, setting)

    def _store_result(self, result: ResultT) -> ResultT:
        with self._lock:
            self._store.put(result)
        return result


def _opened(store: str | Store | None, config: DifferentialDebuggingConfig) -> Store:
    if store is None:
        from .store.memory import Memory

        return Memory(config.max_comparison_models)
    if isinstance(store, str):
        from .store import open_store

        return open_store(store)
    return store


def _is_before(past: Past, current: ModelSnapshot, name: str) -> bool:
    """Was that value recorded before the current version?"""
    if name == current.name and past.version == current.version:
        return False
    return past.time is None or past.time <= current.timestamp
