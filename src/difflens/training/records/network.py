"""The network as a whole: what its gradients, its loss and its updates say together.

Field names are public and never change; newer fields come last. What could not be known is null
and `missing` says what would fill it. Two words of the reference are gone because nothing that is
recorded could ever earn them: `Disruptive` of interactions and `Chaos` of instabilities.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Literal

import msgspec

from difflens.core.findings import Interval, Missing
from difflens.core.kept import Kept, number

Health = Literal["Healthy", "Warning", "Critical", "Unknown"]
Movement = Literal["co_moving", "counter_moving", "none"]
PlateauOutcome = Literal["plateau", "moving", "cannot_tell", "unknown"]


class DistributionType(StrEnum):
    """The shape of the layers' ln norms."""

    NORMAL = "Normal"
    SKEWED = "Skewed"
    HEAVY_TAILED = "HeavyTailed"
    MULTIMODAL = "Multimodal"
    DEGENERATE = "Degenerate"  # all layers have the same norm


class InteractionType(StrEnum):
    """How two layers' gradients point on what they share: a matter of direction, not of size."""

    COOPERATIVE = "Cooperative"
    COMPETITIVE = "Competitive"
    NEUTRAL = "Neutral"


class ConvergenceTrend(StrEnum):
    """Where training is heading, by loss, gradients and updates together."""

    CONVERGING = "Converging"
    STABLE = "Stable"
    DIVERGING = "Diverging"
    OSCILLATING = "Oscillating"
    UNKNOWN = "Unknown"


class LearningPhase(StrEnum):
    """How far the loss curve has come."""

    INITIAL_LEARNING = "InitialLearning"
    RAPID_LEARNING = "RapidLearning"
    REFINEMENT = "Refinement"
    CONVERGENCE = "Convergence"
    PLATEAU = "Plateau"
    OVERFITTING = "Overfitting"


class PlateauSeverity(StrEnum):
    """How much of the run a plateau takes: below a tenth, below three tenths, or more."""

    MILD = "Mild"
    MODERATE = "Moderate"
    SEVERE = "Severe"


class StabilityTrend(StrEnum):
    """Whether the scatter of ln norms grew from the first half to the second."""

    IMPROVING = "Improving"
    STABLE = "Stable"
    DEGRADING = "Degrading"
    INCONCLUSIVE = "Inconclusive"


class StabilityOutlook(StrEnum):
    """What the forecast of ln norms says."""

    IMPROVING = "Improving"  # beyond the explosion bound now, below it with the whole interval
    STABLE = "Stable"  # the whole interval inside the band of the past
    DETERIORATING = "Deteriorating"  # the whole interval above the explosion bound
    UNCERTAIN = "Uncertain"


class InstabilityType(StrEnum):
    """What makes training unstable."""

    GRADIENT_EXPLOSION = "GradientExplosion"
    GRADIENT_VANISHING = "GradientVanishing"
    OSCILLATION = "Oscillation"
    STAGNATION = "Stagnation"  # parameters that do not move although they are trained


class NetworkPart(Kept, frozen=True, kw_only=True):
    """What all parts of the network's analysis share: a null has its reason."""

    says_why: ClassVar[tuple[str, str] | None] = (
        "a deeper analysis or more points",
        "it was not measured",
    )


class MeasuredTrend(NetworkPart, frozen=True, kw_only=True):
    """A slope per 100 steps (Theil-Sen) with its interval, and the test that it is not zero.

    The interval is Sen's, widened by sqrt((1 + phi)/(1 - phi)) for autocorrelation.
    """

    slope: float | None = None
    interval: Interval | None = None
    p_value: float | None = None  # Mann-Kendall against AR(1) surrogates
    autocorrelation: float | None = None
    first_step: int | None = None
    last_step: int | None = None
    n: int = 0
    note: str = ""
    missing: tuple[Missing, ...] = ()


class GradientDistribution(NetworkPart, frozen=True, kw_only=True):
    """The layers' mean norms as one sample; the shape is judged on their logarithms."""

    mean_gradient_norm: float | None = None
    gradient_variance: float | None = None  # over n, not n - 1
    gradient_skewness: float | None = None
    gradient_kurtosis: float | None = None  # excess
    layer_gradient_ratios: dict[str, float | None] = msgspec.field(default_factory=dict)
    distribution_type: DistributionType | None = None
    log_skewness: float | None = None
    log_kurtosis: float | None = None
    dip: float | None = None
    dip_p: float | None = None
    normality_p: float | None = None
    n: int = 0  # layers with a finite mean
    nonfinite: int = 0  # norms that were NaN or infinite, over all layers
    missing: tuple[Missing, ...] = ()


class LayerInteraction(NetworkPart, frozen=True, kw_only=True):
    """Two layers whose norms move together beyond their common course."""

    layer1: str
    layer2: str
    interaction_strength: float | None = None  # |correlation|
    interaction_type: InteractionType | None = None
    impact_score: float | None = None
    movement: Movement = "none"
    correlation: float | None = None  # Spearman, of detrended and pre-whitened ln norms
    interval: Interval | None = None
    n_effective: float | None = None
    p_value: float | None = None
    q_value: float | None = None  # Benjamini-Hochberg over all pairs
    partial_correlation: float | None = None  # what is left beside the global norm
    lag: int | None = None  # points by which layer2 follows layer1
    direction_cosine: float | None = None
    missing: tuple[Missing, ...] = ()


class LossCurve(NetworkPart, frozen=True, kw_only=True):
    """The decay fitted to the loss: floor + amplitude t^-rate, or floor + amplitude e^(-rate t)."""

    form: Literal["power", "exponential"] | None = None
    floor: float | None = None
    floor_interval: Interval | None = None
    rate: float | None = None
    amplitude: float | None = None
    identified: bool = False  # does the curve bend enough to tell the floor?
    aicc_difference: float | None = None  # of the other form to this one
    autocorrelation: float | None = None
    n: int = 0
    missing: tuple[Missing, ...] = ()


class ConvergenceIndicators(NetworkPart, frozen=True, kw_only=True):
    """Three measured slopes and the one word they earn together.

    Scores are changes of a logarithm per 100 steps: of the gradient norm, of the update norm and
    of the loss above its floor. Negative is shrinking.
    """

    gradient_convergence_score: float | None = None
    parameter_convergence_score: float | None = None
    loss_convergence_score: float | None = None
    convergence_trend: ConvergenceTrend = ConvergenceTrend.UNKNOWN
    estimated_steps_to_convergence: int | None = None  # from the last step
    reason: str = ""
    steps_interval: Interval | None = None
    gradient_trend: MeasuredTrend | None = None  # over the window, or the later half
    gradient_course: MeasuredTrend | None = None  # over all that was kept
    update_trend: MeasuredTrend | None = None
    loss_trend: MeasuredTrend | None = None  # of the loss itself, over the window
    loss_course: MeasuredTrend | None = None
    loss_curve: LossCurve | None = None
    oscillation_period: float | None = None  # steps
    oscillation_p: float | None = None
    tolerance: float | None = None  # of "within reach of the floor", as a share of it
    missing: tuple[Missing, ...] = ()


class PlateauDetection(NetworkPart, frozen=True, kw_only=True):
    """Is the loss flat? Flat means shown to lie within the margin, not merely not seen to move."""

    is_plateau: bool | None = None
    plateau_duration: int | None = None  # steps
    plateau_severity: PlateauSeverity | None = None
    suggested_actions: tuple[str, ...] = ()
    outcome: PlateauOutcome = "unknown"
    since_step: int | None = None
    slope: float | None = None  # of the loss per 100 steps
    interval: Interval | None = None
    margin: float | None = None  # loss per 100 steps that still counts as flat
    points_needed: int | None = None  # points of a window that would tell, where none did
    missing: tuple[Missing, ...] = ()


class TrainingDynamics(NetworkPart, frozen=True, kw_only=True):
    """How training moves: the phase by the loss, and three measured speeds."""

    learning_phase: LearningPhase | None = None
    gradient_momentum: float | None = None  # mean cosine of successive gradients
    learning_velocity: float | None = None  # fall of the loss per step
    adaptation_rate: float | None = None  # median update norm by weight norm, per step
    plateau_detection: PlateauDetection
    reason: str = ""
    momentum_interval: Interval | None = None
    velocity_interval: Interval | None = None
    missing: tuple[Missing, ...] = ()


class InstabilitySource(NetworkPart, frozen=True, kw_only=True):
    """One kind of instability with all the layers that show it, the worst first.

    `severity` is, of the worst layer, the share of the window that shows it: of the points, and
    of the variance where it is an oscillation.
    """

    source_type: InstabilityType
    affected_layers: tuple[str, ...]
    severity: float
    description: str
    since_step: int | None = None
    evidence: dict[str, Any] = msgspec.field(default_factory=dict)
    missing: tuple[Missing, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a severity that is no share."""
        super().__post_init__()
        number("severity", self.severity, 0, 1)


class OutlookForecast(NetworkPart, frozen=True, kw_only=True):
    """The ln norm `horizon` points on, with the interval and how often such intervals held."""

    horizon: int
    method: str = ""
    value: float | None = None
    interval: Interval | None = None
    empirical_coverage: float | None = None
    origins: int = 0  # forecasts of the past that the coverage is counted over
    missing: tuple[Missing, ...] = ()


class StabilityForecast(NetworkPart, frozen=True, kw_only=True):
    """What comes next, by forecast; `confidence_level` is the level of its intervals."""

    short_term_outlook: StabilityOutlook | None = None
    long_term_outlook: StabilityOutlook | None = None
    confidence_level: float | None = None
    recommended_monitoring: tuple[str, ...] = ()
    empirical_coverage: float | None = None  # of the short forecast
    short_term: OutlookForecast | None = None
    long_term: OutlookForecast | None = None
    band: tuple[float, float] | None = None  # 5 and 95 per cent of the past ln norms
    explosion_bound: float | None = None  # ln norm
    missing: tuple[Missing, ...] = ()


class CriticalSlowing(NetworkPart, frozen=True, kw_only=True):
    """Early-warning signs, exploratory: do lag-1 correlation and variance rise in a window?"""

    exploratory: bool = True
    autocorrelation_tau: float | None = None
    autocorrelation_p: float | None = None
    variance_tau: float | None = None
    variance_p: float | None = None
    surrogates: int = 0
    missing: tuple[Missing, ...] = ()


class StabilityAssessment(NetworkPart, frozen=True, kw_only=True):
    """How much ln norms scatter about their course, and whether that changes.

    `overall_stability` is the interquartile range of the detrended ln norms, the median over
    layers: 0 is perfectly steady, and larger is less stable.
    """

    overall_stability: float | None = None
    stability_trend: StabilityTrend | None = None
    instability_sources: tuple[InstabilitySource, ...] = ()
    stability_forecast: StabilityForecast
    scatter_ratio: float | None = None  # range of the second half by that of the first
    scatter_interval: Interval | None = None
    threshold: float | None = None  # ratios from it to 1/it are the same
    critical_slowing: CriticalSlowing | None = None
    missing: tuple[Missing, ...] = ()


class DepthWindow(Kept, frozen=True, kw_only=True):
    """The slope along the depth over one stretch of steps."""

    first_step: int
    last_step: int
    slope: float | None = None
    interval: Interval | None = None
    layers: int = 0


class DepthProfile(NetworkPart, frozen=True, kw_only=True):
    """How gradients change along the depth: the slope of a logarithm per layer towards the output.

    Positive is gradients that vanish towards the input; negative, that explode towards it.
    """

    slope: float | None = None
    interval: Interval | None = None
    measure: str = ""  # what was compared: ln rms(g)/rms(w), or ln rms(g)
    layers: int = 0
    verdict: Literal["vanishing", "exploding", "even", "cannot_tell"] | None = None
    windows: tuple[DepthWindow, ...] = ()
    missing: tuple[Missing, ...] = ()


class NetworkLevelAnalysis(NetworkPart, frozen=True, kw_only=True):
    """All that is said of the network as a whole."""

    overall_gradient_health: Health
    gradient_distribution: GradientDistribution
    layer_interactions: tuple[LayerInteraction, ...]
    convergence_indicators: ConvergenceIndicators
    training_dynamics: TrainingDynamics
    stability_assessment: StabilityAssessment
    layers_by_health: dict[str, int] = msgspec.field(default_factory=dict)
    pairs_tested: int = 0
    pairs_co_moving: int = 0
    pairs_counter_moving: int = 0
    depth_profile: DepthProfile | None = None
    policy: dict[str, Any] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
