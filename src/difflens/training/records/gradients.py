"""What gradients say of layers: the results of `gradients`, level by level.

Field names are public and never change; newer fields come last. A null has its reason in
`missing`. Logarithms are natural; "per 100 steps" counts real steps, not records.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from difflens.core.findings import Interval, Missing
from difflens.core.kept import Kept

from .network import Health, NetworkLevelAnalysis

GRADIENT_SCHEMA = 1
LayerHealth = Health
HEALTHS: tuple[LayerHealth, ...] = ("Critical", "Warning", "Unknown", "Healthy")  # worst first

# How far the analysis goes; each holds what those before it hold.
AnalysisDepth = Literal["Basic", "Standard", "Comprehensive", "Expert"]
SuggestionType = Literal[
    "WeightInitialization",
    "LearningRateAdjustment",
    "RegularizationAdd",
    "ArchitecturalModification",
    "OptimizationAlgorithm",
    "BatchNormalization",
]
# A setting; one that has to be tuned; another network; training begins anew.
ImplementationComplexity = Literal["Simple", "Moderate", "Complex", "RequiresRetraining"]
# No layer of the group has a fault; one has a warning; one is critical; half of them are.
OptimizationDifficulty = Literal["Easy", "Moderate", "Difficult", "VeryDifficult"]
# Which of two levels moves first; the top is the output, the bottom the input.
InteractionDirection = Literal["TopDown", "BottomUp", "Bidirectional"]
OptimizationTarget = Literal["IndividualLayer", "LayerGroup", "NetworkLevel"]
# It is over; a warning that lasts; a warning that grows; critical.
UrgencyLevel = Literal["Low", "Medium", "High", "Critical"]
ActionType = Literal[
    "ParameterAdjustment",
    "ArchitecturalChange",
    "OptimizationTechnique",
    "RegularizationMethod",
    "LearningRateScheduling",
]
# One number; a line in the loop; numbers to be tuned; another network; training begins anew.
ImplementationEffort = Literal["Minimal", "Low", "Moderate", "High", "Extensive"]


class GradientStatistics(Kept, frozen=True, kw_only=True):
    """The finite norms of one layer: moments, and quantiles of type 7 (Hyndman & Fan 1996).

    `std` and `variance` divide by n - 1; `skewness` and `kurtosis` (excess) are null without
    spread. `nonfinite` counts the records that were not finite, `zeros` those exactly zero.
    """

    mean: float | None = None
    std: float | None = None
    median: float | None = None
    percentile_95: float | None = None
    percentile_5: float | None = None
    samples: int = 0
    variance: float | None = None
    skewness: float | None = None
    kurtosis: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    nonfinite: int = 0
    zeros: int = 0
    first_step: int | None = None
    last_step: int | None = None
    missing: tuple[Missing, ...] = ()


class FlowCharacteristics(Kept, frozen=True, kw_only=True):
    """How the logarithm of a layer's norm g moves over the records.

    `consistency_score` is the median of |Δ ln g|, 0 if nothing moves; `smoothness_index` von
    Neumann's ratio, about 0 for a smooth course, 2 for white noise, 4 for alternation;
    `trend_strength` the Theil-Sen slope of ln g per 100 steps; `oscillation_frequency` turning
    points per inner point, 2/3 for noise; `stability_measure` the share of records within a
    factor 2 of the trend, `residual_iqr` the quartile range about it.
    """

    consistency_score: float | None = None
    smoothness_index: float | None = None
    trend_strength: float | None = None
    oscillation_frequency: float | None = None
    stability_measure: float | None = None
    residual_iqr: float | None = None
    trend_interval: Interval | None = None
    trend_p: float | None = None  # Mann-Kendall against AR(1) surrogates
    trend_q: float | None = None  # the same over all layers (Benjamini & Hochberg 1995)
    kendall_tau: float | None = None
    turning_z: float | None = None
    turning_p: float | None = None  # of more turning points than chance gives
    lag1: float | None = None
    lag1_interval: Interval | None = None
    oscillation_p: float | None = None  # of neighbours that alternate or one period standing out
    oscillation_q: float | None = None  # the same over all layers
    is_oscillating: bool | None = None
    period_steps: float | None = None
    peak_p: float | None = None  # of the strongest period against red noise
    growth: float | None = None  # the factor that the trend makes from the first record to the last
    samples: int = 0
    missing: tuple[Missing, ...] = ()


class RiskFactor(Kept, frozen=True, kw_only=True):
    """A rule that a layer breaks: the rule, what was measured, and against which limit."""

    rule: str
    severity: LayerHealth
    text: str
    measured: float
    threshold: float
    excess: float = 0.0  # how far beyond the limit, as |ln(measured/threshold)| where both have one
    since_step: int | None = None
    recent: bool = True  # does it hold in the latest window, too?
    growing: bool = False


class LayerHealthMetrics(Kept, frozen=True, kw_only=True):
    """How a layer is: the worst of its risk factors, Unknown where too little was recorded.

    `gradient_stability` is the `stability_measure` of the flow; `convergence_indicator` the fall
    of ln g per 100 steps in the latest window: above 0 if the norm shrinks, which is
    convergence only where the loss agrees.
    """

    overall_health: LayerHealth
    gradient_stability: float | None = None
    information_flow_rate: float | None = None
    neuron_activity_ratio: float | None = None
    convergence_indicator: float | None = None
    risk_factors: tuple[str, ...] = ()
    risks: tuple[RiskFactor, ...] = ()
    convergence_interval: Interval | None = None
    mean_absolute_change: float | None = None  # mean |Δg| by the median of g
    notes: tuple[str, ...] = ()  # rules that it breaks in a run that `diagnose` calls healthy
    missing: tuple[Missing, ...] = ()


class LayerOptimizationSuggestion(Kept, frozen=True, kw_only=True):
    """What may help a layer, and which measured rule says so. Improvement is not estimated."""

    suggestion_type: SuggestionType
    description: str
    rationale: str
    expected_improvement: float | None = None
    implementation_complexity: ImplementationComplexity
    side_effects: tuple[str, ...] = ()
    layer_name: str = ""
    rule: str = ""
    evidence: dict[str, float] = msgspec.field(default_factory=dict)
    missing: tuple[Missing, ...] = ()


class ComparativeAnalysis(Kept, frozen=True, kw_only=True):
    """A layer among those of its role, by the median of `measure`: magnitude, not quality.

    `relative_performance` is the ratio to the median of the others, `relative_magnitude` its
    logarithm, `performance_gap` the absolute difference; rank 1 is the largest.
    """

    relative_performance: float | None = None
    rank_among_layers: int | None = None
    similar_layers: tuple[str, ...] = ()  # within a factor 1.2, the nearest ten
    performance_gap: float | None = None
    optimization_potential: float | None = None
    relative_magnitude: float | None = None
    similar_count: int = 0
    compared_with: int = 0
    measure: str = ""
    role: str = ""
    missing: tuple[Missing, ...] = ()


class LayerGradientDetails(Kept, frozen=True, kw_only=True):
    """All that is said of one layer; what begins with `recent_` is of the latest window."""

    layer_name: str
    gradient_statistics: GradientStatistics
    flow_characteristics: FlowCharacteristics
    health_metrics: LayerHealthMetrics
    optimization_suggestions: tuple[LayerOptimizationSuggestion, ...] = ()
    comparative_analysis: ComparativeAnalysis | None = None
    recent_statistics: GradientStatistics | None = None
    recent_flow: FlowCharacteristics | None = None
    depth: int | None = None
    kind: str = ""
    parameters: int | None = None
    trainable: bool = True
    missing: tuple[Missing, ...] = ()


class GroupCharacteristics(Kept, frozen=True, kw_only=True):
    """A group in numbers.

    `gradient_synchronization` is the share of variance in the first principal component of the
    members' pre-whitened ln g; 1 where they all move as one.
    """

    average_gradient_norm: float | None = None
    gradient_synchronization: float | None = None
    learning_rate_sensitivity: float | None = None
    optimization_difficulty: OptimizationDifficulty | None = None
    # The share that noise alone reaches: (1 + sqrt(m/n))²/m (Marchenko & Pastur 1967).
    synchronization_of_noise: float | None = None
    health: dict[str, int] = msgspec.field(default_factory=dict)
    missing: tuple[Missing, ...] = ()


class LayerGroup(Kept, frozen=True, kw_only=True):
    """Layers that belong together; `internal_coherence` is their mean pairwise correlation."""

    group_name: str
    layers: tuple[str, ...]
    group_characteristics: GroupCharacteristics
    internal_coherence: float | None = None
    coherence_interval: Interval | None = None
    by: str = ""  # "depth" or "block"
    missing: tuple[Missing, ...] = ()


class HierarchyLevel(Kept, frozen=True, kw_only=True):
    """A third of the network by depth; `level_importance` is its share of the squared norm."""

    level_id: int
    level_name: str
    layer_groups: tuple[str, ...]
    level_importance: float | None = None
    optimization_impact: float | None = None
    missing: tuple[Missing, ...] = ()


class CrossLevelInteraction(Kept, frozen=True, kw_only=True):
    """Two levels that move together: r at the lag where it is largest, in records."""

    from_level: int
    to_level: int
    interaction_strength: float
    interaction_direction: InteractionDirection
    correlation: float = 0.0  # with its sign
    lag: int = 0  # how many records the second follows the first
    q: float | None = None
    n: int = 0


class GradientHierarchy(Kept, frozen=True, kw_only=True):
    """Layers by depth and by block, and how the levels move together."""

    layer_groups: tuple[LayerGroup, ...] = ()
    hierarchy_levels: tuple[HierarchyLevel, ...] = ()
    cross_level_interactions: tuple[CrossLevelInteraction, ...] = ()
    missing: tuple[Missing, ...] = ()


class PrioritizedAction(Kept, frozen=True, kw_only=True):
    """Something to do about a priority. Its impact is not estimated."""

    action_name: str
    action_type: ActionType
    expected_impact: float | None = None
    implementation_effort: ImplementationEffort
    prerequisites: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()


class OptimizationPriority(Kept, frozen=True, kw_only=True):
    """A finding in its place, with what shows it.

    `priority_score` is 2 for critical, 1 for a warning and 0 for what is over, plus x/(1 + x),
    where x says how far beyond its limit the measure lies, as |ln(measured/limit)|; a gradient
    that is not finite has 3.
    """

    target_name: str
    target_type: OptimizationTarget
    priority_score: float
    urgency_level: UrgencyLevel
    optimization_potential: float | None = None
    recommended_actions: tuple[PrioritizedAction, ...] = ()
    finding: str = ""
    rule: str = ""
    evidence: dict[str, float] = msgspec.field(default_factory=dict)
    layers: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()


class EnhancedLayerGradientAnalysis(Kept, frozen=True, kw_only=True):
    """The whole analysis; layers in network order, priorities most urgent first."""

    layer_details: dict[str, LayerGradientDetails]
    network_level_analysis: NetworkLevelAnalysis
    gradient_hierarchy: GradientHierarchy | None = None
    optimization_priorities: tuple[OptimizationPriority, ...] = ()
    analysis_depth: AnalysisDepth = "Standard"
    convergence_window: int = 100
    stability_threshold: float = 0.8
    thresholds: dict[str, float] = msgspec.field(default_factory=dict)  # the limits of the rules
    run: str = ""
    records: int = 0
    first_step: int | None = None
    last_step: int | None = None
    thinned: bool = False
    left_out: int = 0  # layers that were analysed and are not shown
    missing: tuple[Missing, ...] = ()
    warnings: tuple[str, ...] = ()
    schema_version: int = GRADIENT_SCHEMA

    def layer(self, name: str) -> LayerGradientDetails:
        """Return what is said of one layer."""
        from difflens.core.errors import UnknownName

        if name not in self.layer_details:
            raise UnknownName("layer", name, self.layer_details)
        return self.layer_details[name]

    def counts(self) -> dict[str, int]:
        """Count the layers by health, worst first."""
        counts: dict[str, int] = dict.fromkeys(HEALTHS, 0)
        for each in self.layer_details.values():
            counts[each.health_metrics.overall_health] += 1
        return counts
