"""difflens: the differential debugger for neural networks.

The public names live in their rooms and are fetched when they are first used,
so that `import difflens` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ab_results import ABTestConclusion as ABTestConclusion
    from .ab_results import ABTestConfig as ABTestConfig
    from .ab_results import ABTestMetrics as ABTestMetrics
    from .ab_results import ABTestResult as ABTestResult
    from .ab_results import FurtherTest as FurtherTest
    from .ab_results import SequentialResult as SequentialResult
    from .ab_results import StatisticalTestResult as StatisticalTestResult
    from .ab_results import SummaryStats as SummaryStats
    from .callbacks.accelerate import accelerate_monitor as accelerate_monitor
    from .callbacks.jax import jax_monitor as jax_monitor
    from .callbacks.jax import jax_statistics as jax_statistics
    from .callbacks.keras import keras_callback as keras_callback
    from .callbacks.lightning import lightning_callback as lightning_callback
    from .callbacks.transformers import transformers_callback as transformers_callback
    from .comparisons import Abilities as Abilities
    from .comparisons import ArchitectureChange as ArchitectureChange
    from .comparisons import ArchitectureDiff as ArchitectureDiff
    from .comparisons import ComparisonSummary as ComparisonSummary
    from .comparisons import ConfigChange as ConfigChange
    from .comparisons import LayerChange as LayerChange
    from .comparisons import MetricComparison as MetricComparison
    from .comparisons import MetricDelta as MetricDelta
    from .comparisons import ModelComparisonResult as ModelComparisonResult
    from .comparisons import PairwiseTest as PairwiseTest
    from .comparisons import ParetoPoint as ParetoPoint
    from .comparisons import PerformanceComparison as PerformanceComparison
    from .comparisons import PerformanceDelta as PerformanceDelta
    from .comparisons import RankTest as RankTest
    from .comparisons import StatisticalAnalysis as StatisticalAnalysis
    from .comparisons import TensorChanges as TensorChanges
    from .comparisons import VersionDiff as VersionDiff
    from .comparisons import WeightChangesSummary as WeightChangesSummary
    from .debugger import DifferentialDebugger as DifferentialDebugger
    from .errors import DifflensError as DifflensError
    from .flow.animator import GradientFlowAnimator as GradientFlowAnimator
    from .flow_results import FlowPicture as FlowPicture
    from .flow_results import GradientFlowConfig as GradientFlowConfig
    from .flow_results import GradientFlowSummary as GradientFlowSummary
    from .flow_results import GradientFrame as GradientFrame
    from .flow_results import GradientHealth as GradientHealth
    from .flow_results import LayerFlow as LayerFlow
    from .flow_results import LayerGradientInfo as LayerGradientInfo
    from .gathering import gather as gather
    from .gradient_results import ActionType as ActionType
    from .gradient_results import AnalysisDepth as AnalysisDepth
    from .gradient_results import ComparativeAnalysis as ComparativeAnalysis
    from .gradient_results import CrossLevelInteraction as CrossLevelInteraction
    from .gradient_results import EnhancedLayerGradientAnalysis as EnhancedLayerGradientAnalysis
    from .gradient_results import FlowCharacteristics as FlowCharacteristics
    from .gradient_results import GradientHierarchy as GradientHierarchy
    from .gradient_results import GradientStatistics as GradientStatistics
    from .gradient_results import GroupCharacteristics as GroupCharacteristics
    from .gradient_results import HierarchyLevel as HierarchyLevel
    from .gradient_results import ImplementationComplexity as ImplementationComplexity
    from .gradient_results import ImplementationEffort as ImplementationEffort
    from .gradient_results import InteractionDirection as InteractionDirection
    from .gradient_results import LayerGradientDetails as LayerGradientDetails
    from .gradient_results import LayerGroup as LayerGroup
    from .gradient_results import LayerHealth as LayerHealth
    from .gradient_results import LayerHealthMetrics as LayerHealthMetrics
    from .gradient_results import LayerOptimizationSuggestion as LayerOptimizationSuggestion
    from .gradient_results import OptimizationDifficulty as OptimizationDifficulty
    from .gradient_results import OptimizationPriority as OptimizationPriority
    from .gradient_results import OptimizationTarget as OptimizationTarget
    from .gradient_results import PrioritizedAction as PrioritizedAction
    from .gradient_results import RiskFactor as RiskFactor
    from .gradient_results import SuggestionType as SuggestionType
    from .gradient_results import UrgencyLevel as UrgencyLevel
    from .gradients.analyzer import GradientAnalyzer as GradientAnalyzer
    from .gradients.histories import GradientFlow as GradientFlow
    from .gradients.histories import GradientHistory as GradientHistory
    from .gradients.thresholds import GradientThresholds as GradientThresholds
    from .history import read_history as read_history
    from .library import diff as diff
    from .library import read_policy as read_policy
    from .network_results import ConvergenceIndicators as ConvergenceIndicators
    from .network_results import ConvergenceTrend as ConvergenceTrend
    from .network_results import CriticalSlowing as CriticalSlowing
    from .network_results import DepthProfile as DepthProfile
    from .network_results import DepthWindow as DepthWindow
    from .network_results import DistributionType as DistributionType
    from .network_results import GradientDistribution as GradientDistribution
    from .network_results import InstabilitySource as InstabilitySource
    from .network_results import InstabilityType as InstabilityType
    from .network_results import InteractionType as InteractionType
    from .network_results import LayerInteraction as LayerInteraction
    from .network_results import LearningPhase as LearningPhase
    from .network_results import LossCurve as LossCurve
    from .network_results import MeasuredTrend as MeasuredTrend
    from .network_results import NetworkLevelAnalysis as NetworkLevelAnalysis
    from .network_results import OutlookForecast as OutlookForecast
    from .network_results import PlateauDetection as PlateauDetection
    from .network_results import PlateauSeverity as PlateauSeverity
    from .network_results import StabilityAssessment as StabilityAssessment
    from .network_results import StabilityForecast as StabilityForecast
    from .network_results import StabilityOutlook as StabilityOutlook
    from .network_results import StabilityTrend as StabilityTrend
    from .network_results import TrainingDynamics as TrainingDynamics
    from .regression_results import ChangePoint as ChangePoint
    from .regression_results import DifferentialDebuggingReport as DifferentialDebuggingReport
    from .regression_results import Improvement as Improvement
    from .regression_results import MetricHistory as MetricHistory
    from .regression_results import MetricPoint as MetricPoint
    from .regression_results import MetricVerdict as MetricVerdict
    from .regression_results import Regression as Regression
    from .regression_results import RegressionAssessment as RegressionAssessment
    from .regression_results import RegressionDetectionResult as RegressionDetectionResult
    from .regression_results import RegressionSeverity as RegressionSeverity
    from .runs import Diagnosed as Diagnosed
    from .runs import RunFinding as RunFinding
    from .runs import RunInfo as RunInfo
    from .snapshots import ArchitectureInfo as ArchitectureInfo
    from .snapshots import DifferentialDebuggingConfig as DifferentialDebuggingConfig
    from .snapshots import Evaluation as Evaluation
    from .snapshots import ModelMetrics as ModelMetrics
    from .snapshots import ModelSnapshot as ModelSnapshot
    from .snapshots import SnapshotLine as SnapshotLine
    from .snapshots import TensorSummary as TensorSummary
    from .snapshots import TrainingConfig as TrainingConfig
    from .snapshots import WeightsSummary as WeightsSummary
    from .sources import open_model as open_model
    from .training import diagnose as diagnose
    from .training import monitor as monitor
    from .versions.snapshot import snapshot_of as snapshot_of
    from .weight_results import Deduction as Deduction
    from .weight_results import DistributionHealth as DistributionHealth
    from .weight_results import DistributionHealthStatus as DistributionHealthStatus
    from .weight_results import ExplodingLayer as ExplodingLayer
    from .weight_results import ExplosionSeverity as ExplosionSeverity
    from .weight_results import GradientExplosionAnalysis as GradientExplosionAnalysis
    from .weight_results import IssueCode as IssueCode
    from .weight_results import LayerGradient as LayerGradient
    from .weight_results import LayerWeightAnalysis as LayerWeightAnalysis
    from .weight_results import OutlierSeverity as OutlierSeverity
    from .weight_results import TensorDrift as TensorDrift
    from .weight_results import WeightConfig as WeightConfig
    from .weight_results import WeightDistributionAnalysis as WeightDistributionAnalysis
    from .weight_results import WeightDriftAnalysis as WeightDriftAnalysis
    from .weight_results import WeightDriftSeverity as WeightDriftSeverity
    from .weight_results import WeightHealth as WeightHealth
    from .weight_results import WeightIssue as WeightIssue
    from .weight_results import WeightOutlier as WeightOutlier
    from .weight_results import WeightStatistics as WeightStatistics
    from .weights.analyzer import WeightAnalyzer as WeightAnalyzer

__version__ = "0.1.0"

_NAMES = {
    "ab_results": (
        "ABTestConclusion ABTestConfig ABTestMetrics ABTestResult FurtherTest "
        "SequentialResult StatisticalTestResult SummaryStats"
    ),
    "callbacks.accelerate": "accelerate_monitor",
    "callbacks.jax": "jax_monitor jax_statistics",
    "callbacks.keras": "keras_callback",
    "callbacks.lightning": "lightning_callback",
    "callbacks.transformers": "transformers_callback",
    "comparisons": (
        "Abilities ArchitectureChange ArchitectureDiff ComparisonSummary ConfigChange "
        "LayerChange MetricComparison MetricDelta ModelComparisonResult PairwiseTest "
        "ParetoPoint PerformanceComparison PerformanceDelta RankTest "
        "StatisticalAnalysis TensorChanges VersionDiff WeightChangesSummary"
    ),
    "debugger": "DifferentialDebugger",
    "errors": "DifflensError",
    "flow.animator": "GradientFlowAnimator",
    "flow_results": (
        "FlowPicture GradientFlowConfig GradientFlowSummary GradientFrame "
        "GradientHealth LayerFlow LayerGradientInfo"
    ),
    "gathering": "gather",
    "gradient_results": (
        "ActionType AnalysisDepth ComparativeAnalysis CrossLevelInteraction "
        "EnhancedLayerGradientAnalysis FlowCharacteristics GradientHierarchy "
        "GradientStatistics GroupCharacteristics HierarchyLevel "
        "ImplementationComplexity ImplementationEffort InteractionDirection "
        "LayerGradientDetails LayerGroup LayerHealth LayerHealthMetrics "
        "LayerOptimizationSuggestion OptimizationDifficulty OptimizationPriority "
        "OptimizationTarget PrioritizedAction RiskFactor SuggestionType UrgencyLevel"
    ),
    "gradients.analyzer": "GradientAnalyzer",
    "gradients.histories": "GradientFlow GradientHistory",
    "gradients.thresholds": "GradientThresholds",
    "history": "read_history",
    "library": "diff read_policy",
    "network_results": (
        "ConvergenceIndicators ConvergenceTrend CriticalSlowing DepthProfile "
        "DepthWindow DistributionType GradientDistribution InstabilitySource "
        "InstabilityType InteractionType LayerInteraction LearningPhase LossCurve "
        "MeasuredTrend NetworkLevelAnalysis OutlookForecast PlateauDetection "
        "PlateauSeverity StabilityAssessment StabilityForecast StabilityOutlook "
        "StabilityTrend TrainingDynamics"
    ),
    "regression_results": (
        "ChangePoint DifferentialDebuggingReport Improvement MetricHistory MetricPoint "
        "MetricVerdict Regression RegressionAssessment RegressionDetectionResult "
        "RegressionSeverity"
    ),
    "runs": "Diagnosed RunFinding RunInfo",
    "snapshots": (
        "ArchitectureInfo DifferentialDebuggingConfig Evaluation ModelMetrics "
        "ModelSnapshot SnapshotLine TensorSummary TrainingConfig WeightsSummary"
    ),
    "sources": "open_model",
    "training": "diagnose monitor",
    "versions.snapshot": "snapshot_of",
    "weight_results": (
        "Deduction DistributionHealth DistributionHealthStatus ExplodingLayer "
        "ExplosionSeverity GradientExplosionAnalysis IssueCode LayerGradient "
        "LayerWeightAnalysis OutlierSeverity TensorDrift WeightConfig "
        "WeightDistributionAnalysis WeightDriftAnalysis WeightDriftSeverity "
        "WeightHealth WeightIssue WeightOutlier WeightStatistics"
    ),
    "weights.analyzer": "WeightAnalyzer",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)  # noqa: PLE0605  the type checker has the names above


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'difflens' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
