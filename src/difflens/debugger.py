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

from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from typing import Any, Self, TypeVar

import msgspec

from .ab_results import ABTestConfig, ABTestResult
from .comparisons import ModelComparisonResult, VersionDiff
from .errors import DisabledFeature, IncompatibleSnapshots, InsufficientData, UnknownModel
from .evidences import Past
from .kept import Kept, made, now
from .protocols import Store
from .records import Policy
from .regression_results import DifferentialDebuggingReport, RegressionDetectionResult
from .snapshots import DifferentialDebuggingConfig, ModelSnapshot, SnapshotLine

Snapshot = ModelSnapshot | Mapping[str, Any]
KeptT = TypeVar("KeptT", bound=Kept)


class DifferentialDebugger:
    """Versions of models and what was found of them; several threads may use one.

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

        `clock` gives the time of results, so that a run can be repeated to the byte.
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
        """Where it all is kept."""
        return self._store

    def add_model_snapshot(self, snapshot: Snapshot, *, replace: bool | None = None) -> str:
        """Record a version and give its key.

        One that is there already is replaced in memory, and refused by a store unless `replace`.
        """
        record = made(ModelSnapshot, snapshot)
        with self._lock:
            return self._store.put(record, replace=self._is_bounded if replace is None else replace)

    def compare_models(self, names: Iterable[str]) -> ModelComparisonResult:
        """Compare two or more models; the first named is the base of differences."""
        from .versions.compare import compare

        self._allowed("enable_model_comparison", "comparing models")
        asked = list(names)
        if len(asked) < 2:
            raise InsufficientData(f"{len(asked)} models; a comparison takes two or more")
        twice = next((name for name in asked if asked.count(name) > 1), None)
        if twice is not None:
            raise IncompatibleSnapshots(f"{twice} is named twice")
        with self._lock:
            models = {name: self._store.get(name) for name in asked}
        found = compare(models, self.config, self.policy, timestamp=self._clock())
        return self._kept(found)

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
        from .versions.ab import run_ab_test

        self._allowed("enable_ab_analysis", "A/B testing")
        found = run_ab_test(
            self._asked(config), model_a_data, model_b_data,
            start_time=start_time, end_time=end_time or self._clock(),
        )  # fmt: skip
        return self._kept(self._with_labels(found))

    def _asked(self, config: ABTestConfig | Mapping[str, Any]) -> ABTestConfig:
        """Take the debugger's alpha and seed where a plain map says none."""
        if isinstance(config, Mapping):
            own = {"alpha": self.config.significance_threshold, "seed": self.config.seed,
                   "correction": self.config.correction}  # fmt: skip
            config = {**own, **config}
        return made(ABTestConfig, config)

    def _with_labels(self, found: ABTestResult) -> ABTestResult:
        """Warn of arms that are called like no model here, where there are models at all."""
        if not self._store.find(limit=1):
            return found
        said = []
        for label in (found.config.model_a, found.config.model_b):
            try:
                self._store.get(label)
            except UnknownModel:
                said.append(f"{label} is not recorded in {self._store.where}")
        return msgspec.structs.replace(found, warnings=(*found.warnings, *said))

    def track_version_diff(
        self,
        from_model: str,
        to_model: str,
        *,
        from_weights: Any = None,
        to_weights: Any = None,
    ) -> VersionDiff:
        """Say what changed from one version to another; weights through their files if there."""
        from .versions.version_diff import version_diff

        self._allowed("enable_version_diff", "tracking versions")
        left, right = self._store.get(from_model), self._store.get(to_model)
        return self._kept(version_diff(
            left, right, self.config, self.policy,
            left_weights=from_weights, right_weights=to_weights, timestamp=self._clock(),
        ))  # fmt: skip

    def detect_regressions(
        self, current_model: str, baseline_model: str
    ) -> RegressionDetectionResult:
        """Hold the current version against the baseline, and against the versions before it."""
        from .versions.regressions import detect_regressions

        self._allowed("enable_regression_detection", "detecting regressions")
        current, baseline = self._store.get(current_model), self._store.get(baseline_model)
        history = self._history(current, baseline)
        return self._kept(
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
        """Give past values by metric: of the same model, recorded before the current version."""
        from .versions.metrics import known

        name = current.name if current.name == baseline.name else baseline.name
        found = {}
        for metric in known(current):
            past = self._store.history(name, metric)
            kept = tuple(each for each in past if _is_before(each, current, name))
            if kept:
                found[metric] = kept
        return found

    def generate_report(self) -> DifferentialDebuggingReport:
        """Look over all that is kept; works whatever the configuration switches off."""
        from .versions.report import report

        return report(self._store, self.config, self.policy, timestamp=self._clock())

    def snapshots(
        self, name: str | None = None, *, limit: int = 50, after: int | None = None
    ) -> tuple[SnapshotLine, ...]:
        """List what was recorded, the last first, by page."""
        return self._store.find(name, limit=limit, after=after)

    def snapshot(self, name: str) -> ModelSnapshot:
        """Give one snapshot whole."""
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
        """Use it in a `with` block: the store is closed at its end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()

    def _allowed(self, setting: str, feature: str) -> None:
        if not getattr(self.config, setting):
            raise DisabledFeature(feature, setting)

    def _kept(self, result: KeptT) -> KeptT:
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
