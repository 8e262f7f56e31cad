"""The names others may rely on."""

import ast
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import difflens
from difflens import testing
from difflens.core import records
from difflens.core.record import Record
from difflens.models.health import records as weight_results
from difflens.training.records import flow as flow_results
from difflens.training.records import gradients as gradient_results
from difflens.training.records import network as network_results
from difflens.training.records import runs
from difflens.versions.records import ab as ab_results
from difflens.versions.records import comparisons, snapshots
from difflens.versions.records import regressions as regression_results


def test_all_is_sorted_and_equal_to_what_is_public():
    assert difflens.__all__ == sorted(difflens.__all__)
    assert set(difflens.__all__) <= set(dir(difflens))


@pytest.mark.parametrize("name", difflens.__all__)  # type: ignore[attr-defined]
def test_every_public_name_can_be_fetched_and_is_documented(name):
    found = getattr(difflens, name)

    # A list of words explains itself, and has no place for more.
    assert get_args(found) or (found.__doc__ or "").strip()


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'dif'"):
        difflens.dif  # noqa: B018


def test_the_list_of_public_names_is_all_that_the_type_checker_sees():
    stub = ast.parse(Path(difflens.__file__).with_suffix(".pyi").read_text())
    imported = [each for each in stub.body if isinstance(each, ast.ImportFrom)]

    assert ast.unparse(stub.body[-1]) == "__version__: str"
    assert sorted(name.asname for each in imported for name in each.names) == difflens.__all__


def test_what_testing_exports_is_there():
    assert all(hasattr(testing, name) for name in testing.__all__)


RECORDS = sorted(
    {
        each
        for home in (
            records,
            snapshots,
            comparisons,
            ab_results,
            regression_results,
            runs,
            weight_results,
            gradient_results,
            network_results,
            flow_results,
        )
        for each in vars(home).values()
        if isinstance(each, type) and issubclass(each, Record) and each.__struct_fields__
    },
    key=lambda each: each.__name__,
)


def made(kind: Any) -> Any:
    """Make a value of a type, plain and small, from the type alone."""
    if isinstance(kind, msgspec.inspect.StructType):
        fields = {
            each.name: _TOLD.get((kind.cls.__name__, each.name)) or made(each.type)
            for each in kind.fields
            if each.required
        }
        return kind.cls(**fields)
    if isinstance(kind, msgspec.inspect.UnionType):
        return made(kind.types[0])
    if isinstance(kind, msgspec.inspect.LiteralType):
        return kind.values[0]
    if isinstance(kind, msgspec.inspect.EnumType):
        return next(iter(kind.cls))
    return _PLAIN[type(kind)]


_PLAIN: dict[type, Any] = {
    msgspec.inspect.AnyType: 1,
    msgspec.inspect.BoolType: True,
    msgspec.inspect.BytesType: b"bytes",
    msgspec.inspect.DictType: {},
    msgspec.inspect.FloatType: 0.5,
    msgspec.inspect.IntType: 3,
    msgspec.inspect.NoneType: None,
    msgspec.inspect.StrType: "text",
    msgspec.inspect.VarTupleType: (),
}


_TOLD = {("ABTestConfig", "model_b"): "another"}  # fields that the others rule a value out for


def defaults(record: Any) -> set[str]:
    """Name the fields that have a default, which some records do not write down."""
    return {each.name for each in msgspec.structs.fields(record) if not each.required}


@pytest.mark.parametrize("record", RECORDS, ids=lambda each: each.__name__)
def test_every_record_turns_into_plain_data_and_back(record):
    one = made(msgspec.inspect.type_info(record))

    plain = one.to_dict()

    left_out = set() if not record.__struct_config__.omit_defaults else defaults(record)
    assert set(plain) | left_out == set(record.__struct_encode_fields__)
    assert one == msgspec.convert(plain, record)
    assert one == msgspec.json.decode(msgspec.json.encode(one), type=record)


@pytest.mark.parametrize("record", RECORDS, ids=lambda each: each.__name__)
def test_every_record_is_frozen_and_says_what_it_is(record):
    one = made(msgspec.inspect.type_info(record))

    assert record.__doc__
    with pytest.raises(AttributeError):
        setattr(one, record.__struct_fields__[0], None)


# debugger.md sections 2, 3 and 4: what others may import, and the fields they may rely on.
CONTRACT = {
    "ExplodingLayer": "layer_index gradient_norm severity recommended_action",
    "GradientExplosionAnalysis": (
        "exploding_layers max_gradient_norm mean_gradient_norm std_gradient_norm explosion_ratio "
        "overall_severity mitigation_recommendations"
    ),
    "WeightStatistics": "mean std_dev skewness kurtosis entropy min max zero_fraction",
    "LayerWeightAnalysis": "layer_index statistics health_score issues recommendations",
    "WeightOutlier": "layer_index weight_index value z_score severity",
    "DistributionHealth": "score status",
    "WeightDistributionAnalysis": (
        "layer_analyses overall_statistics distribution_health outlier_detection"
    ),
    "WeightHealth": "score issues recommendations",
    "WeightDriftAnalysis": "mean_drift max_drift severity affected_layers",
    "EnhancedLayerGradientAnalysis": (
        "layer_details network_level_analysis gradient_hierarchy optimization_priorities"
    ),
    "LayerGradientDetails": (
        "layer_name gradient_statistics flow_characteristics health_metrics "
        "optimization_suggestions comparative_analysis"
    ),
    "GradientStatistics": (
        "mean std median percentile_95 percentile_5 samples variance skewness kurtosis"
    ),
    "FlowCharacteristics": (
        "consistency_score smoothness_index trend_strength oscillation_frequency stability_measure"
    ),
    "LayerHealthMetrics": (
        "overall_health gradient_stability information_flow_rate neuron_activity_ratio "
        "convergence_indicator risk_factors"
    ),
    "LayerOptimizationSuggestion": (
        "suggestion_type description rationale expected_improvement implementation_complexity "
        "side_effects"
    ),
    "ComparativeAnalysis": (
        "relative_performance rank_among_layers similar_layers performance_gap "
        "optimization_potential"
    ),
    "NetworkLevelAnalysis": (
        "overall_gradient_health gradient_distribution layer_interactions convergence_indicators "
        "training_dynamics stability_assessment"
    ),
    "GradientDistribution": (
        "mean_gradient_norm gradient_variance gradient_skewness gradient_kurtosis "
        "layer_gradient_ratios distribution_type"
    ),
    "LayerInteraction": "layer1 layer2 interaction_strength interaction_type impact_score",
    "ConvergenceIndicators": (
        "gradient_convergence_score parameter_convergence_score loss_convergence_score "
        "convergence_trend estimated_steps_to_convergence"
    ),
    "TrainingDynamics": (
        "learning_phase gradient_momentum learning_velocity adaptation_rate plateau_detection"
    ),
    "PlateauDetection": "is_plateau plateau_duration plateau_severity suggested_actions",
    "StabilityAssessment": (
        "overall_stability stability_trend instability_sources stability_forecast"
    ),
    "StabilityForecast": (
        "short_term_outlook long_term_outlook confidence_level recommended_monitoring"
    ),
    "InstabilitySource": "source_type affected_layers severity description",
    "GradientHierarchy": "layer_groups hierarchy_levels cross_level_interactions",
    "LayerGroup": "group_name layers group_characteristics internal_coherence",
    "GroupCharacteristics": (
        "average_gradient_norm gradient_synchronization learning_rate_sensitivity "
        "optimization_difficulty"
    ),
    "HierarchyLevel": "level_id level_name layer_groups level_importance optimization_impact",
    "CrossLevelInteraction": "from_level to_level interaction_strength interaction_direction",
    "OptimizationPriority": (
        "target_name target_type priority_score urgency_level optimization_potential "
        "recommended_actions"
    ),
    "PrioritizedAction": (
        "action_name action_type expected_impact implementation_effort prerequisites"
    ),
    "GradientFlow": (
        "layer_name step gradient_norm gradient_mean gradient_std gradient_max gradient_min "
        "dead_neurons_ratio active_neurons_ratio timestamp"
    ),
    "LayerGradientInfo": (
        "name mean_abs_grad max_abs_grad grad_norm is_vanishing is_exploding flow_intensity"
    ),
    "GradientFrame": "step layers",
    "GradientFlowSummary": (
        "total_steps layers_with_vanishing_grads layers_with_exploding_grads overall_health "
        "recommendations"
    ),
}
# Without those that nothing recorded could ever earn (DX-10): the docs of each say which.
WORDS = {
    "ExplosionSeverity": "Low Medium High Critical",
    "OutlierSeverity": "Medium High",
    "DistributionHealthStatus": "Excellent Good Fair Poor Critical",
    "WeightDriftSeverity": "Minimal Low Medium High",
    "AnalysisDepth": "Basic Standard Comprehensive Expert",
    "SuggestionType": (
        "WeightInitialization LearningRateAdjustment RegularizationAdd "
        "ArchitecturalModification OptimizationAlgorithm BatchNormalization"
    ),
    "ImplementationComplexity": "Simple Moderate Complex RequiresRetraining",
    "DistributionType": "Skewed HeavyTailed Multimodal Normal Degenerate",
    "InteractionType": "Cooperative Competitive Neutral",
    "ConvergenceTrend": "Converging Stable Diverging Unknown Oscillating",
    "LearningPhase": "InitialLearning RapidLearning Refinement Convergence Plateau Overfitting",
    "PlateauSeverity": "Mild Moderate Severe",
    "StabilityTrend": "Improving Stable Degrading",
    "StabilityOutlook": "Stable Improving Deteriorating Uncertain",
    "InstabilityType": "GradientExplosion GradientVanishing Oscillation Stagnation",
    "OptimizationDifficulty": "Easy Moderate Difficult VeryDifficult",
    "InteractionDirection": "TopDown BottomUp Bidirectional",
    "OptimizationTarget": "IndividualLayer LayerGroup NetworkLevel",
    "UrgencyLevel": "Critical High Medium Low",
    "ActionType": (
        "ParameterAdjustment ArchitecturalChange OptimizationTechnique RegularizationMethod "
        "LearningRateScheduling"
    ),
    "ImplementationEffort": "Minimal Low Moderate High Extensive",
    "LayerHealth": "Healthy Warning Critical Unknown",
    "GradientHealth": "Healthy MinorIssues ProblemsDetected Critical",
}


@pytest.mark.parametrize("name", CONTRACT)
def test_every_record_of_the_contract_has_its_fields(name):
    assert set(CONTRACT[name].split()) <= set(getattr(difflens, name).__struct_fields__) | set(
        dir(getattr(difflens, name))
    )


@pytest.mark.parametrize("name", WORDS)
def test_every_enumeration_of_the_contract_has_its_words(name):
    kind = getattr(difflens, name)
    words = get_args(kind) or [each.value for each in kind]

    assert set(WORDS[name].split()) <= set(words)
