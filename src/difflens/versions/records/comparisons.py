"""How versions of models compare: the results of `compare` and `version-diff`.

Field names are public and never change; newer fields come last. A null has its reason in
`missing`. Differences are right minus left, the first named model is left.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from difflens.core.findings import Finding, Interval, Missing
from difflens.core.kept import Kept, now, number, timestamp

RESULT_SCHEMA = 1
Direction = Literal["higher", "lower"]
# How two sides of one metric stand, by the interval; `changed` is a difference without a better.
Change = Literal["improved", "worse", "unchanged", "changed", "inconclusive", "not_testable"]


class Result(Kept, frozen=True, kw_only=True):
    """What every kept result says of itself: when it was made, and by which schema."""

    timestamp: str = msgspec.field(default_factory=now)
    missing: tuple[Missing, ...] = ()
    warnings: tuple[str, ...] = ()
    schema_version: int = RESULT_SCHEMA

    def __post_init__(self) -> None:
        """Put the time into UTC."""
        super().__post_init__()
        msgspec.structs.force_setattr(self, "timestamp", timestamp("timestamp", self.timestamp))


class MetricComparison(Kept, frozen=True, kw_only=True):
    """One metric of several models.

    `differences` are in percent of the best value, negative where a model is worse; null if
    the metric has no ratio scale or the best value is zero. `significant_differences` are from
    tests against the best model after adjustment, null if nothing could be tested.
    """

    values: dict[str, float]
    best_model: str | None = None
    worst_model: str | None = None
    differences: dict[str, float | None] = {}
    significant_differences: dict[str, bool | None] = {}
    metric: str = ""
    unit: str = ""
    direction: Direction | None = None
    separated: bool | None = None  # is the best told apart from every other?
    absolute_differences: dict[str, float] = {}  # value minus the best value
    exceeds_practical_threshold: dict[str, bool | None] = {}
    margin: float | None = None
    ranking: tuple[tuple[str, ...], ...] = ()  # best first; equal values share a place
    letters: dict[str, str] = {}  # models that share a letter are not told apart
    reference: str = ""  # what the differences are against: the best, or the first named
    evidence: Literal["evals", "latency", "seeds", "counts", "scalars"] = "scalars"
    missing: tuple[Missing, ...] = ()


class PerformanceComparison(Kept, frozen=True, kw_only=True):
    """Every metric that at least two models have."""

    accuracy_comparison: MetricComparison | None = None
    loss_comparison: MetricComparison | None = None
    latency_comparison: MetricComparison | None = None
    memory_comparison: MetricComparison | None = None
    size_comparison: MetricComparison | None = None
    custom_comparisons: dict[str, MetricComparison] = {}
    further_comparisons: dict[str, MetricComparison] = {}  # train, test, flops, training time
    missing: tuple[Missing, ...] = ()


class TensorChanges(Kept, frozen=True, kw_only=True):
    """How the named tensors of two models differ, by headers and fingerprints alone."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    reshaped: tuple[str, ...] = ()
    recast: tuple[str, ...] = ()
    renamed: dict[str, str] = {}  # the same bytes under another name: left to right
    changed: int | None = None  # tensors whose fingerprint differs
    identical: int | None = None
    jaccard: float | None = None  # of the sets of (name, shape)


class ArchitectureDiff(Kept, frozen=True, kw_only=True):
    """How models are built differently; the first named one is the base of the differences."""

    parameter_diff: dict[str, int | None] = {}
    layer_diff: dict[str, int | None] = {}
    similarity_score: float | None = None  # mean over all pairs
    notable_differences: tuple[str, ...] = ()
    base: str = ""
    fields: dict[str, dict[str, int | str | None]] = {}  # field to model to value, all fields
    similarities: dict[str, dict[str, float | None]] = {}  # model to model
    tensors: dict[str, TensorChanges] = {}  # model to its changes against the base
    missing: tuple[Missing, ...] = ()


class PairwiseTest(Kept, frozen=True, kw_only=True):
    """One metric of two models, tested, or the reason why it cannot be."""

    metric: str
    left: str
    right: str
    difference: float | None = None
    interval: Interval | None = None
    p: float | None = None
    p_adjusted: float | None = None
    effect: float | None = None
    effect_name: str = ""
    effect_interval: Interval | None = None
    method: str = ""
    paired: bool | None = None
    n_left: int | None = None
    n_right: int | None = None
    significant: bool | None = None
    word: str = "not_testable"
    direction: Direction | None = None
    minimal_detectable: float | None = None  # in the metric's own units, at 80 % power
    reason: str = ""

    def __post_init__(self) -> None:
        """Raise unless each probability lies between 0 and 1."""
        super().__post_init__()
        number("p", self.p, 0, 1)
        number("p_adjusted", self.p_adjusted, 0, 1)


class RankTest(Kept, frozen=True, kw_only=True):
    """Mean ranks of several models over the metrics that all of them have.

    The fields of a test are null: metrics of one model are not independent tasks.
    """

    mean_ranks: dict[str, float]
    tasks: tuple[str, ...] = ()
    chi_square: float | None = None
    f: float | None = None
    p: float | None = None
    critical_difference: float | None = None
    level: float = 0.95
    groups: tuple[tuple[str, ...], ...] = ()  # models not told apart, best first
    note: str = ""


class Abilities(Kept, frozen=True, kw_only=True):
    """Strengths from wins and losses (Bradley & Terry 1952), with simultaneous intervals."""

    abilities: dict[str, float] = {}
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    apart: tuple[tuple[str, str], ...] = ()  # (stronger, weaker)
    level: float = 0.95
    comparisons: int = 0
    note: str = ""


class StatisticalAnalysis(Kept, frozen=True, kw_only=True):
    """Every test of the comparison, keyed `METRIC: LEFT vs RIGHT`; p-values are adjusted."""

    p_values: dict[str, float | None] = {}
    effect_sizes: dict[str, float | None] = {}
    confidence_intervals: dict[str, tuple[float, float] | None] = {}
    significance_summary: dict[str, bool | None] = {}
    tests: tuple[PairwiseTest, ...] = ()
    ranks: RankTest | None = None
    abilities: Abilities | None = None
    correction: str = "holm"
    family_size: int = 0
    level: float = 0.95
    seed: int = 0
    missing: tuple[Missing, ...] = ()


class ParetoPoint(Kept, frozen=True, kw_only=True):
    """One model among the objectives; on the front where no other is better in all of them."""

    model: str
    values: dict[str, float]
    on_front: bool
    dominated_by: tuple[str, ...] = ()


class ComparisonSummary(Kept, frozen=True, kw_only=True):
    """The comparison in few words, each from a number above.

    `best_model` has the best observed value of `criterion`; `separated` says whether it is told
    apart from the others, null if that cannot be tested.
    """

    best_model: str | None = None
    rankings: dict[str, tuple[str, ...]] = {}
    key_findings: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    criterion: str = ""
    separated: bool | None = None
    ties: dict[str, tuple[tuple[str, ...], ...]] = {}
    pareto_front: tuple[str, ...] = ()
    pareto: tuple[ParetoPoint, ...] = ()
    objectives: dict[str, Direction] = {}
    left_out: dict[str, str] = {}  # model to why it is not among the objectives
    findings: tuple[Finding, ...] = ()
    missing: tuple[Missing, ...] = ()


class ModelComparisonResult(Result, frozen=True, kw_only=True):
    """What `compare` answers."""

    models: tuple[str, ...]
    performance_comparison: PerformanceComparison
    architecture_diff: ArchitectureDiff
    statistical_analysis: StatisticalAnalysis
    summary: ComparisonSummary


class MetricDelta(Kept, frozen=True, kw_only=True):
    """One metric in two versions: right minus left, and what that means."""

    metric: str
    left: float | None = None
    right: float | None = None
    difference: float | None = None
    relative: float | None = None  # of |left|; null where left is zero or has no ratio scale
    direction: Direction | None = None
    margin: float | None = None
    change: Change = "not_testable"
    interval: Interval | None = None
    p: float | None = None
    significant: bool | None = None
    evidence: str = "scalars"
    note: str = ""


class PerformanceDelta(Kept, frozen=True, kw_only=True):
    """What the metrics did from one version to the other, in their own units."""

    accuracy_delta: float | None = None
    loss_delta: float | None = None
    latency_delta: float | None = None
    memory_delta: float | None = None
    size_delta: float | None = None
    training_time_delta: float | None = None
    custom_deltas: dict[str, float] = {}
    deltas: dict[str, MetricDelta] = {}  # every metric, with direction and interval
    missing: tuple[Missing, ...] = ()


class ArchitectureChange(Kept, frozen=True, kw_only=True):
    """One thing that is built differently; `impact` only where a rule says one."""

    change_type: str
    description: str
    impact: str | None = None
    field: str = ""
    left: int | str | None = None
    right: int | str | None = None


class ConfigChange(Kept, frozen=True, kw_only=True):
    """One setting that differs; a side is null if it is not set there."""

    parameter: str
    old_value: str | None = None
    new_value: str | None = None
    impact: str | None = None
    kind: Literal["added", "removed", "changed"] = "changed"


class LayerChange(Kept, frozen=True, kw_only=True):
    """How far one tensor moved, element by element."""

    name: str
    kind: str
    relative_l2: float | None = None
    cosine: float | None = None
    mean_abs: float | None = None
    max_abs: float | None = None
    changed_fraction: float | None = None


class WeightChangesSummary(Kept, frozen=True, kw_only=True):
    """How the weights moved; `basis` says what that was read from.

    elements: both weight files; hashes: fingerprints alone (which tensors changed, not how far);
    summary: percentiles alone (a distance between distributions, blind to where a weight is).
    """

    avg_magnitude: float | None = None  # mean |d| over the elements of paired tensors
    max_change: float | None = None  # max |d|
    significant_change_ratio: float | None = None  # share of elements beyond storage rounding
    layer_changes: dict[str, float | None] = {}  # tensor to relative L2
    basis: Literal["elements", "hashes", "summary", "none"] = "none"
    relative_l2: float | None = None
    cosine: float | None = None
    distribution_distance: float | None = None  # Wasserstein-1, from percentiles
    layers: tuple[LayerChange, ...] = ()
    tensors: TensorChanges | None = None
    missing: tuple[Missing, ...] = ()


class VersionDiff(Result, frozen=True, kw_only=True):
    """What `version-diff` answers."""

    from_version: str
    to_version: str
    performance_delta: PerformanceDelta | None = None
    architecture_changes: tuple[ArchitectureChange, ...] = ()
    config_changes: tuple[ConfigChange, ...] = ()
    weight_changes: WeightChangesSummary | None = None
    from_model: str = ""
    to_model: str = ""
    metadata_changes: tuple[ConfigChange, ...] = ()
    facts: dict[str, Any] = {}  # what else was observed, such as commits
