"""Regressions, and the report on a store: what got worse, what got better, and how things stand.

Field names are public and never change; newer fields come last.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Literal

import msgspec

from difflens.core.findings import Interval, Missing
from difflens.core.kept import Kept, number
from difflens.core.policy import GateWord

from .ab import ABTestConfig, ABTestResult
from .comparisons import (
    RESULT_SCHEMA,
    Direction,
    ModelComparisonResult,
    ParetoPoint,
    RankTest,
    Result,
    VersionDiff,
)
from .snapshots import DifferentialDebuggingConfig, ModelSnapshot

# What a metric was judged by, the strongest first.
Basis = Literal["evals", "seeds", "latency", "counts", "history", "scalars"]
Outcome = Literal["regressed", "improved", "ok", "inconclusive", "breached", "unknown"]


class RegressionSeverity(StrEnum):
    """How bad a regression is, by the policy."""

    CRITICAL = "Critical"
    MAJOR = "Major"
    MINOR = "Minor"
    NEGLIGIBLE = "Negligible"


class MetricVerdict(Kept, frozen=True, kw_only=True):
    """One metric held against its baseline, whatever came of it.

    `degradation` is how much worse the current value is, in the metric's own units; `breached`
    is a limit of the policy passed by two single numbers, of which nothing says it is no noise.
    """

    metric: str
    current_value: float | None = None
    previous_value: float | None = None
    outcome: Outcome = "unknown"
    direction: Direction | None = None
    degradation: float | None = None
    interval: Interval | None = None  # of the degradation
    margin: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    basis: Basis = "scalars"
    statistical: bool = False
    method: str = ""
    note: str = ""
    needs: str = ""  # what would decide it; empty where it is decided


class Regression(Kept, frozen=True, kw_only=True):
    """A metric that got worse by more than its margin.

    `magnitude` is in the metric's own units. `possible_causes` are changes observed between the
    two snapshots, which occurred together with it; nothing says that they caused it.
    """

    metric: str
    current_value: float
    previous_value: float
    magnitude: float
    severity: RegressionSeverity
    possible_causes: tuple[str, ...] = ()
    suggested_fixes: tuple[str, ...] = ()
    direction: Direction | None = None
    relative: float | None = None
    interval: Interval | None = None
    margin: float | None = None
    p_adjusted: float | None = None
    basis: Basis = "scalars"
    statistical: bool = False
    rule: str = ""  # the number and the threshold behind the severity
    note: str = ""


class Improvement(Kept, frozen=True, kw_only=True):
    """A metric that got better by more than its margin; `magnitude` in its own units."""

    metric: str
    current_value: float
    previous_value: float
    magnitude: float
    likely_causes: tuple[str, ...] = ()
    direction: Direction | None = None
    relative: float | None = None
    interval: Interval | None = None
    margin: float | None = None
    p_adjusted: float | None = None
    basis: Basis = "scalars"
    statistical: bool = False
    note: str = ""


class RegressionAssessment(Kept, frozen=True, kw_only=True):
    """The verdicts counted; the docs define `health_score`, null if nothing was judged."""

    health_score: float | None
    critical_regressions: int
    improvements: int
    recommendation: str
    by_severity: dict[str, int] = {}
    checked: int = 0
    inconclusive: int = 0
    unknown: int = 0
    passed: bool | None = None  # null where it cannot be told
    verdict: GateWord | None = None  # what the exit code says; null without any evidence
    missing: tuple[Missing, ...] = ()

    def __post_init__(self) -> None:
        """Raise unless the score lies between 0 and 1."""
        super().__post_init__()
        number("health_score", self.health_score, 0, 1)


class RegressionDetectionResult(Result, frozen=True, kw_only=True):
    """What `regressions` answers: `current` against `baseline`, metric by metric."""

    table_field: ClassVar[str] = "verdicts"

    regressions: tuple[Regression, ...]
    improvements: tuple[Improvement, ...]
    overall_assessment: RegressionAssessment
    current: str = ""
    baseline: str = ""
    verdicts: tuple[MetricVerdict, ...] = ()
    observed_changes: tuple[str, ...] = ()  # what else differs between the two snapshots
    policy: dict[str, Any] = {}
    level: float = 0.95
    seed: int = 0
    histories: tuple[MetricHistory, ...] = ()  # of what was held against past versions


class MetricPoint(Kept, frozen=True, kw_only=True):
    """One version's value of a metric, with its interval where samples give one."""

    version: str
    timestamp: str
    value: float
    low: float | None = None
    high: float | None = None


class ChangePoint(Kept, frozen=True, kw_only=True):
    """Where a metric's history changes its level: the first version of the new one."""

    version: str
    before: float
    after: float
    p: float | None = None


class MetricHistory(Kept, frozen=True, kw_only=True):
    """One metric of one model over its versions."""

    model: str
    metric: str
    direction: Direction | None = None
    points: tuple[MetricPoint, ...] = ()
    change_points: tuple[ChangePoint, ...] = ()
    slope: float | None = None  # per version, Theil-Sen
    slope_interval: Interval | None = None
    trend_p: float | None = None
    left_out: int = 0  # older versions that are not among the points
    limits: Interval | None = None  # where the next value should lie, by the present level
    alarms: tuple[str, ...] = ()  # versions at which a cumulative sum passed its limit
    in_control_run_length: float | None = None  # versions between false alarms of those sums
    note: str = ""


class DifferentialDebuggingReport(Result, frozen=True, kw_only=True):
    """What `report` answers: the state of a store or of a debugger."""

    config: DifferentialDebuggingConfig
    total_models: int
    comparison_count: int
    ab_test_count: int
    version_diff_count: int
    regression_detection_count: int
    recent_comparisons: tuple[ModelComparisonResult, ...] = ()
    recent_regressions: tuple[RegressionDetectionResult, ...] = ()
    model_summary: dict[str, str | int | float | None] = {}
    recent_ab_tests: tuple[ABTestResult, ...] = ()
    recent_version_diffs: tuple[VersionDiff, ...] = ()
    total_names: int = 0
    histories: tuple[MetricHistory, ...] = ()
    pareto: tuple[ParetoPoint, ...] = ()
    ranks: RankTest | None = None
    dropped: dict[str, int] = {}  # kind to how many older ones are no longer kept
    store: str = ""


# What is kept or printed as JSON: one definition each in the published schema.
PUBLISHED = (
    ModelSnapshot,
    DifferentialDebuggingConfig,
    ABTestConfig,
    ModelComparisonResult,
    ABTestResult,
    VersionDiff,
    RegressionDetectionResult,
    DifferentialDebuggingReport,
)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of these records, as published in docs/versions.schema.json."""
    refs, definitions = msgspec.json.schema_components(PUBLISHED, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"difflens records of versions, version {RESULT_SCHEMA}",
        "anyOf": list(refs),
        "$defs": definitions,
    }
