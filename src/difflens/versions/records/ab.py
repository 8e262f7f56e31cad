"""A/B tests: what one is asked and what it answers.

Field names are public and never change; newer fields come last. A is the left side, B the right
one; differences, effects and intervals are A minus B.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from difflens.core.errors import SnapshotError
from difflens.core.findings import Interval, Missing
from difflens.core.kept import (
    Kept,
    Number,
    Settings,
    ascending,
    count,
    key_part,
    now,
    number,
    one_of,
    timestamp,
)

from .comparisons import RESULT_SCHEMA, Direction

Unit = Literal["standardised", "absolute", "relative"]
Verdict = Literal[
    "a_better",
    "b_better",
    "equivalent",
    "non_inferior",
    "different",
    "inconclusive",
    "not_enough_data",
]


class ABTestConfig(Settings, frozen=True, kw_only=True):
    """What an A/B test is asked.

    `min_effect_size` is the least effect that matters, in `effect_unit`; `margin` (in the
    metric's own units) asks for equivalence or non-inferiority beside it.
    """

    name: str
    model_a: str
    model_b: str
    duration_hours: int | None = None
    sample_size: int | None = None  # planned, per arm
    tracked_metrics: tuple[str, ...] = ()
    min_effect_size: float = 0.0
    power: float = 0.8
    alpha: float = 0.05
    effect_unit: Unit = "standardised"
    margin: float | None = None
    primary_metric: str | None = None  # the first one handed in where it is not named
    directions: dict[str, Direction] = {}
    paired: bool | None = None  # None: paired where the ids say so
    sequential: bool = False
    correction: Literal["holm", "bh"] = "holm"
    seed: int = 0

    def _checked(self) -> None:
        key_part("name", self.name)
        key_part("model_a", self.model_a)
        key_part("model_b", self.model_b)
        if self.model_a == self.model_b:
            raise SnapshotError(f"model_a and model_b are both {self.model_a!r}")
        count("duration_hours", self.duration_hours)
        count("sample_size", self.sample_size)
        count("seed", self.seed)
        number("min_effect_size", self.min_effect_size, 0)
        number("margin", self.margin, 0)
        one_of("effect_unit", self.effect_unit, ("standardised", "absolute", "relative"))
        one_of("correction", self.correction, ("holm", "bh"))
        for metric, direction in self.directions.items():
            one_of(f"directions.{metric}", direction, ("higher", "lower"))
        for field in ("power", "alpha"):
            number(field, getattr(self, field), 0, 1)
            if getattr(self, field) in (0, 1):
                raise SnapshotError(f"{field} is {getattr(self, field)}; it lies between 0 and 1")


class SummaryStats(Kept, frozen=True, kw_only=True):
    """One arm's values in seven numbers; quantiles of type 7, deviation with n - 1."""

    mean: float | None = None
    std_dev: float | None = None
    min: float | None = None
    max: float | None = None
    median: float | None = None
    q25: float | None = None
    q75: float | None = None
    n: int = 0
    nonfinite: int = 0
    missing: tuple[Missing, ...] = ()

    def __post_init__(self) -> None:
        """Refuse numbers that do not ascend as they must."""
        super().__post_init__()
        named = ("min", "q25", "median", "q75", "max")
        ascending((name, getattr(self, name)) for name in named)
        number("std_dev", self.std_dev, 0)


class ABTestMetrics(Kept, frozen=True, kw_only=True):
    """One arm: how many observations, their values, and those in brief."""

    as_logged: ClassVar[frozenset[str]] = frozenset({"metrics"})

    sample_size: int
    metrics: dict[str, tuple[Number, ...]] = {}
    summary_stats: dict[str, SummaryStats] = {}


class FurtherTest(Kept, frozen=True, kw_only=True):
    """The same question by another method, beside the one that decides."""

    test_type: str
    statistic: float | None = None
    p_value: float | None = None
    estimate: float | None = None
    estimate_name: str = ""
    confidence_interval: tuple[float, float] | None = None
    note: str = ""


class StatisticalTestResult(Kept, frozen=True, kw_only=True):
    """One metric tested; `is_significant` is by the adjusted p, null if nothing was tested."""

    test_type: str
    statistic: float | None = None
    p_value: float | None = None
    effect_size: float | None = None
    confidence_interval: tuple[float, float] | None = None  # of the difference
    is_significant: bool | None = None
    metric: str = ""
    direction: Direction | None = None
    difference: float | None = None
    relative_difference: float | None = None
    level: float = 0.95
    df: float | None = None
    effect_name: str = ""
    effect_interval: Interval | None = None
    p_adjusted: float | None = None
    n_a: int = 0
    n_b: int = 0
    paired: bool = False
    clusters: int | None = None
    verdict: Verdict = "inconclusive"
    practical: Literal["yes", "no", "unclear"] = "unclear"
    minimal_detectable_effect: float | None = None  # in the metric's own units
    required_sample_size: int | None = None  # per arm, for min_effect_size
    probability_b_better: float | None = None
    not_worse: tuple[str, ...] = ()  # models shown not to be worse by more than the margin
    broke: int | None = None  # paired answers that A has right and B wrong
    fixed: int | None = None  # paired answers that A has wrong and B right
    further: tuple[FurtherTest, ...] = ()
    assumptions: tuple[str, ...] = ()
    note: str = ""
    missing: tuple[Missing, ...] = ()

    def __post_init__(self) -> None:
        """Raise unless each probability lies between 0 and 1."""
        super().__post_init__()
        for field in ("p_value", "p_adjusted", "probability_b_better"):
            number(field, getattr(self, field), 0, 1)


class SequentialResult(Kept, frozen=True, kw_only=True):
    """Looks that stay valid however often one looks: the interval after the last value."""

    method: str
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    looks: int = 0
    stopped_at: int | None = None  # the first n at which the question was decided
    p_value: float | None = None
    note: str = ""


class ABTestConclusion(Kept, frozen=True, kw_only=True):
    """What follows: a winner only where `rule` fires. `confidence` is the interval's level."""

    winner: str | None
    confidence: float
    practical_significance: bool | None
    recommendation: str
    summary: str
    verdict: Verdict = "inconclusive"
    practical: Literal["yes", "no", "unclear"] = "unclear"
    rule: str = ""
    underpowered: bool | None = None
    minimal_detectable_effect: float | None = None
    required_sample_size: int | None = None
    missing: tuple[Missing, ...] = ()

    def __post_init__(self) -> None:
        """Raise unless the level lies between 0 and 1."""
        super().__post_init__()
        number("confidence", self.confidence, 0, 1)


class ABTestResult(Kept, frozen=True, kw_only=True):
    """What `ab` answers; `start_time` is null unless the data say when they began."""

    config: ABTestConfig
    model_a_results: ABTestMetrics
    model_b_results: ABTestMetrics
    conclusion: ABTestConclusion
    statistical_tests: dict[str, StatisticalTestResult] = {}
    start_time: str | None = None
    end_time: str = msgspec.field(default_factory=now)
    sequential: SequentialResult | None = None
    missing: tuple[Missing, ...] = ()
    warnings: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    schema_version: int = RESULT_SCHEMA

    def __post_init__(self) -> None:
        """Put the times into UTC, in their order."""
        super().__post_init__()
        for field in ("start_time", "end_time"):
            given = getattr(self, field)
            if given is not None:
                msgspec.structs.force_setattr(self, field, timestamp(field, given))
        if self.start_time is not None and self.start_time > self.end_time:
            raise SnapshotError(f"start_time {self.start_time} is after end_time {self.end_time}")
