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
    from .diagnoses import diagnose as diagnose
    from .errors import DifflensError as DifflensError
    from .flow.animator import GradientFlowAnimator as GradientFlowAnimator
    from .flow_results import FlowPicture as FlowPicture
    from .flow_results import GradientFlowConfig as GradientFlowConfig
    from .flow_results import GradientFlowSummary as GradientFlowSummary
    from .flow_results import GradientFrame as GradientFrame
    from .flow_results import LayerFlow as LayerFlow
    from .flow_results import LayerGradientInfo as LayerGradientInfo
    from .gathering import gather as gather
    from .gradient_results import ComparativeAnalysis as ComparativeAnalysis
    from .gradient_results import CrossLevelInteraction as CrossLevelInteraction
    from .gradient_results import EnhancedLayerGradientAnalysis as EnhancedLayerGradientAnalysis
    from .gradient_results import FlowCharacteristics as FlowCharacteristics
    from .gradient_results import GradientHierarchy as GradientHierarchy
    from .gradient_results import GradientStatistics as GradientStatistics
    from .gradient_results import GroupCharacteristics as GroupCharacteristics
    from .gradient_results import HierarchyLevel as HierarchyLevel
    from .gradient_results import LayerGradientDetails as LayerGradientDetails
    from .gradient_results import LayerGroup as LayerGroup
    from .gradient_results import LayerHealthMetrics as LayerHealthMetrics
    from .gradient_results import LayerOptimizationSuggestion as LayerOptimizationSuggestion
    from .gradient_results import OptimizationPriority as OptimizationPriority
    from .gradient_results import PrioritizedAction as PrioritizedAction
    from .gradient_results import RiskFactor as RiskFactor
    from .gradients.analyzer import GradientAnalyzer as GradientAnalyzer
    from .history import read_history as read_history
    from .library import diff as diff
    from .library import read_policy as read_policy
    from .network_results import Answer as Answer
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

_HOMES = {
    "ABTestConclusion": "ab_results",
    "ABTestConfig": "ab_results",
    "ABTestMetrics": "ab_results",
    "ABTestResult": "ab_results",
    "Abilities": "comparisons",
    "Answer": "network_results",
    "ArchitectureChange": "comparisons",
    "ArchitectureDiff": "comparisons",
    "ArchitectureInfo": "snapshots",
    "ChangePoint": "regression_results",
    "ComparativeAnalysis": "gradient_results",
    "ComparisonSummary": "comparisons",
    "ConfigChange": "comparisons",
    "ConvergenceIndicators": "network_results",
    "ConvergenceTrend": "network_results",
    "CriticalSlowing": "network_results",
    "CrossLevelInteraction": "gradient_results",
    "Deduction": "weight_results",
    "DepthProfile": "network_results",
    "DepthWindow": "network_results",
    "Diagnosed": "runs",
    "DifferentialDebugger": "debugger",
    "DifferentialDebuggingConfig": "snapshots",
    "DifferentialDebuggingReport": "regression_results",
    "DifflensError": "errors",
    "DistributionHealth": "weight_results",
    "DistributionHealthStatus": "weight_results",
    "DistributionType": "network_results",
    "EnhancedLayerGradientAnalysis": "gradient_results",
    "Evaluation": "snapshots",
    "ExplodingLayer": "weight_results",
    "ExplosionSeverity": "weight_results",
    "FlowCharacteristics": "gradient_results",
    "FlowPicture": "flow_results",
    "FurtherTest": "ab_results",
    "GradientAnalyzer": "gradients.analyzer",
    "GradientDistribution": "network_results",
    "GradientExplosionAnalysis": "weight_results",
    "GradientFlowAnimator": "flow.animator",
    "GradientFlowConfig": "flow_results",
    "GradientFlowSummary": "flow_results",
    "GradientFrame": "flow_results",
    "GradientHierarchy": "gradient_results",
    "GradientStatistics": "gradient_results",
    "GroupCharacteristics": "gradient_results",
    "HierarchyLevel": "gradient_results",
    "Improvement": "regression_results",
    "InstabilitySource": "network_results",
    "InstabilityType": "network_results",
    "InteractionType": "network_results",
    "IssueCode": "weight_results",
    "LayerChange": "comparisons",
    "LayerFlow": "flow_results",
    "LayerGradient": "weight_results",
    "LayerGradientDetails": "gradient_results",
    "LayerGradientInfo": "flow_results",
    "LayerGroup": "gradient_results",
    "LayerHealthMetrics": "gradient_results",
    "LayerInteraction": "network_results",
    "LayerOptimizationSuggestion": "gradient_results",
    "LayerWeightAnalysis": "weight_results",
    "LearningPhase": "network_results",
    "LossCurve": "network_results",
    "MeasuredTrend": "network_results",
    "MetricComparison": "comparisons",
    "MetricDelta": "comparisons",
    "MetricHistory": "regression_results",
    "MetricPoint": "regression_results",
    "MetricVerdict": "regression_results",
    "ModelComparisonResult": "comparisons",
    "ModelMetrics": "snapshots",
    "ModelSnapshot": "snapshots",
    "NetworkLevelAnalysis": "network_results",
    "OptimizationPriority": "gradient_results",
    "OutlierSeverity": "weight_results",
    "OutlookForecast": "network_results",
    "PairwiseTest": "comparisons",
    "ParetoPoint": "comparisons",
    "PerformanceComparison": "comparisons",
    "PerformanceDelta": "comparisons",
    "PlateauDetection": "network_results",
    "PlateauSeverity": "network_results",
    "PrioritizedAction": "gradient_results",
    "RankTest": "comparisons",
    "Regression": "regression_results",
    "RegressionAssessment": "regression_results",
    "RegressionDetectionResult": "regression_results",
    "RegressionSeverity": "regression_results",
    "RiskFactor": "gradient_results",
    "RunFinding": "runs",
    "RunInfo": "runs",
    "SequentialResult": "ab_results",
    "SnapshotLine": "snapshots",
    "StabilityAssessment": "network_results",
    "StabilityForecast": "network_results",
    "StabilityOutlook": "network_results",
    "StabilityTrend": "network_results",
    "StatisticalAnalysis": "comparisons",
    "StatisticalTestResult": "ab_results",
    "SummaryStats": "ab_results",
    "TensorChanges": "comparisons",
    "TensorDrift": "weight_results",
    "TensorSummary": "snapshots",
    "TrainingConfig": "snapshots",
    "TrainingDynamics": "network_results",
    "VersionDiff": "comparisons",
    "WeightAnalyzer": "weights.analyzer",
    "WeightChangesSummary": "comparisons",
    "WeightConfig": "weight_results",
    "WeightDistributionAnalysis": "weight_results",
    "WeightDriftAnalysis": "weight_results",
    "WeightDriftSeverity": "weight_results",
    "WeightHealth": "weight_results",
    "WeightIssue": "weight_results",
    "WeightOutlier": "weight_results",
    "WeightStatistics": "weight_results",
    "WeightsSummary": "snapshots",
    "accelerate_monitor": "callbacks.accelerate",
    "diagnose": "diagnoses",
    "diff": "library",
    "gather": "gathering",
    "jax_monitor": "callbacks.jax",
    "jax_statistics": "callbacks.jax",
    "keras_callback": "callbacks.keras",
    "lightning_callback": "callbacks.lightning",
    "monitor": "training",
    "open_model": "sources",
    "read_history": "history",
    "read_policy": "library",
    "snapshot_of": "versions.snapshot",
    "transformers_callback": "callbacks.transformers",
}
__all__ = [
    "ABTestConclusion",
    "ABTestConfig",
    "ABTestMetrics",
    "ABTestResult",
    "Abilities",
    "Answer",
    "ArchitectureChange",
    "ArchitectureDiff",
    "ArchitectureInfo",
    "ChangePoint",
    "ComparativeAnalysis",
    "ComparisonSummary",
    "ConfigChange",
    "ConvergenceIndicators",
    "ConvergenceTrend",
    "CriticalSlowing",
    "CrossLevelInteraction",
    "Deduction",
    "DepthProfile",
    "DepthWindow",
    "Diagnosed",
    "DifferentialDebugger",
    "DifferentialDebuggingConfig",
    "DifferentialDebuggingReport",
    "DifflensError",
    "DistributionHealth",
    "DistributionHealthStatus",
    "DistributionType",
    "EnhancedLayerGradientAnalysis",
    "Evaluation",
    "ExplodingLayer",
    "ExplosionSeverity",
    "FlowCharacteristics",
    "FlowPicture",
    "FurtherTest",
    "GradientAnalyzer",
    "GradientDistribution",
    "GradientExplosionAnalysis",
    "GradientFlowAnimator",
    "GradientFlowConfig",
    "GradientFlowSummary",
    "GradientFrame",
    "GradientHierarchy",
    "GradientStatistics",
    "GroupCharacteristics",
    "HierarchyLevel",
    "Improvement",
    "InstabilitySource",
    "InstabilityType",
    "InteractionType",
    "IssueCode",
    "LayerChange",
    "LayerFlow",
    "LayerGradient",
    "LayerGradientDetails",
    "LayerGradientInfo",
    "LayerGroup",
    "LayerHealthMetrics",
    "LayerInteraction",
    "LayerOptimizationSuggestion",
    "LayerWeightAnalysis",
    "LearningPhase",
    "LossCurve",
    "MeasuredTrend",
    "MetricComparison",
    "MetricDelta",
    "MetricHistory",
    "MetricPoint",
    "MetricVerdict",
    "ModelComparisonResult",
    "ModelMetrics",
    "ModelSnapshot",
    "NetworkLevelAnalysis",
    "OptimizationPriority",
    "OutlierSeverity",
    "OutlookForecast",
    "PairwiseTest",
    "ParetoPoint",
    "PerformanceComparison",
    "PerformanceDelta",
    "PlateauDetection",
    "PlateauSeverity",
    "PrioritizedAction",
    "RankTest",
    "Regression",
    "RegressionAssessment",
    "RegressionDetectionResult",
    "RegressionSeverity",
    "RiskFactor",
    "RunFinding",
    "RunInfo",
    "SequentialResult",
    "SnapshotLine",
    "StabilityAssessment",
    "StabilityForecast",
    "StabilityOutlook",
    "StabilityTrend",
    "StatisticalAnalysis",
    "StatisticalTestResult",
    "SummaryStats",
    "TensorChanges",
    "TensorDrift",
    "TensorSummary",
    "TrainingConfig",
    "TrainingDynamics",
    "VersionDiff",
    "WeightAnalyzer",
    "WeightChangesSummary",
    "WeightConfig",
    "WeightDistributionAnalysis",
    "WeightDriftAnalysis",
    "WeightDriftSeverity",
    "WeightHealth",
    "WeightIssue",
    "WeightOutlier",
    "WeightStatistics",
    "WeightsSummary",
    "accelerate_monitor",
    "diagnose",
    "diff",
    "gather",
    "jax_monitor",
    "jax_statistics",
    "keras_callback",
    "lightning_callback",
    "monitor",
    "open_model",
    "read_history",
    "read_policy",
    "snapshot_of",
    "transformers_callback",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'difflens' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
