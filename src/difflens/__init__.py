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
    from .gathering import gather as gather
    from .library import diff as diff
    from .library import read_policy as read_policy
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
    from .versions.snapshot import snapshot_of as snapshot_of

__version__ = "0.1.0"

_HOMES = {
    "ABTestConclusion": "ab_results",
    "ABTestConfig": "ab_results",
    "ABTestMetrics": "ab_results",
    "ABTestResult": "ab_results",
    "Abilities": "comparisons",
    "ArchitectureChange": "comparisons",
    "ArchitectureDiff": "comparisons",
    "ArchitectureInfo": "snapshots",
    "ChangePoint": "regression_results",
    "ComparisonSummary": "comparisons",
    "ConfigChange": "comparisons",
    "DifferentialDebugger": "debugger",
    "DifferentialDebuggingConfig": "snapshots",
    "DifferentialDebuggingReport": "regression_results",
    "DifflensError": "errors",
    "Evaluation": "snapshots",
    "FurtherTest": "ab_results",
    "Improvement": "regression_results",
    "LayerChange": "comparisons",
    "MetricComparison": "comparisons",
    "MetricDelta": "comparisons",
    "MetricHistory": "regression_results",
    "MetricPoint": "regression_results",
    "MetricVerdict": "regression_results",
    "ModelComparisonResult": "comparisons",
    "ModelMetrics": "snapshots",
    "ModelSnapshot": "snapshots",
    "PairwiseTest": "comparisons",
    "ParetoPoint": "comparisons",
    "PerformanceComparison": "comparisons",
    "PerformanceDelta": "comparisons",
    "RankTest": "comparisons",
    "Regression": "regression_results",
    "RegressionAssessment": "regression_results",
    "RegressionDetectionResult": "regression_results",
    "RegressionSeverity": "regression_results",
    "SequentialResult": "ab_results",
    "SnapshotLine": "snapshots",
    "StatisticalAnalysis": "comparisons",
    "StatisticalTestResult": "ab_results",
    "SummaryStats": "ab_results",
    "TensorChanges": "comparisons",
    "TensorSummary": "snapshots",
    "TrainingConfig": "snapshots",
    "VersionDiff": "comparisons",
    "WeightChangesSummary": "comparisons",
    "WeightsSummary": "snapshots",
    "diff": "library",
    "gather": "gathering",
    "open_model": "sources",
    "read_policy": "library",
    "snapshot_of": "versions.snapshot",
}
__all__ = [
    "ABTestConclusion",
    "ABTestConfig",
    "ABTestMetrics",
    "ABTestResult",
    "Abilities",
    "ArchitectureChange",
    "ArchitectureDiff",
    "ArchitectureInfo",
    "ChangePoint",
    "ComparisonSummary",
    "ConfigChange",
    "DifferentialDebugger",
    "DifferentialDebuggingConfig",
    "DifferentialDebuggingReport",
    "DifflensError",
    "Evaluation",
    "FurtherTest",
    "Improvement",
    "LayerChange",
    "MetricComparison",
    "MetricDelta",
    "MetricHistory",
    "MetricPoint",
    "MetricVerdict",
    "ModelComparisonResult",
    "ModelMetrics",
    "ModelSnapshot",
    "PairwiseTest",
    "ParetoPoint",
    "PerformanceComparison",
    "PerformanceDelta",
    "RankTest",
    "Regression",
    "RegressionAssessment",
    "RegressionDetectionResult",
    "RegressionSeverity",
    "SequentialResult",
    "SnapshotLine",
    "StatisticalAnalysis",
    "StatisticalTestResult",
    "SummaryStats",
    "TensorChanges",
    "TensorSummary",
    "TrainingConfig",
    "VersionDiff",
    "WeightChangesSummary",
    "WeightsSummary",
    "diff",
    "gather",
    "open_model",
    "read_policy",
    "snapshot_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'difflens' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
