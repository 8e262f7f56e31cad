"""What to do first: findings about layers, groups and the network, in a fixed order.

There are no weights: a sum of health, stability and potential would let three small faults outrank
a gradient that is not finite. Severity comes first, then how far beyond its limit a measure lies;
of equals the wider target comes first, then the layer nearer the input, then the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from statistics import median

from difflens.core.findings import Missing

from ..records.gradients import (
    ActionType,
    GradientHierarchy,
    ImplementationEffort,
    LayerGradientDetails,
    LayerOptimizationSuggestion,
    OptimizationPriority,
    OptimizationTarget,
    PrioritizedAction,
    RiskFactor,
    SuggestionType,
    UrgencyLevel,
)
from ..records.network import NetworkLevelAnalysis
from .verdicts import NO_VERDICT, Verdict

SHARED = 0.5  # of the layers of a group that make a rule a matter of the group
_LEAST_MEMBERS = {"LayerGroup": 2, "NetworkLevel": 3}
_WIDEST: tuple[OptimizationTarget, ...] = ("NetworkLevel", "LayerGroup", "IndividualLayer")
_ACTIONS: dict[SuggestionType, tuple[ActionType, ImplementationEffort]] = {
    "WeightInitialization": ("ParameterAdjustment", "Extensive"),
    "LearningRateAdjustment": ("LearningRateScheduling", "Minimal"),
    "OptimizationAlgorithm": ("OptimizationTechnique", "Low"),
    "RegularizationAdd": ("RegularizationMethod", "Moderate"),
    "ArchitecturalModification": ("ArchitecturalChange", "High"),
    "BatchNormalization": ("ArchitecturalChange", "High"),
}
_PREREQUISITES: dict[ActionType, tuple[str, ...]] = {
    "ParameterAdjustment": ("see that the layer is connected to the loss",),
    "ArchitecturalChange": ("the code of the model",),
    "RegularizationMethod": ("a validation set to tune it on",),
}
_POTENTIAL = Missing(
    "optimization_potential", "runs with and without a change", "nothing here estimates it"
)
_IMPACT = Missing("expected_impact", "runs with and without the action", "it was not estimated")


def priorities(
    details: Mapping[str, LayerGradientDetails],
    groups: GradientHierarchy | None,
    network: NetworkLevelAnalysis,
    verdict: Verdict = NO_VERDICT,
) -> tuple[OptimizationPriority, ...]:
    """List what was found, most urgent first."""
    places = {name: place for place, name in enumerate(details)}
    candidates = [*_network(details, network, verdict), *_layers(details)]
    if groups is not None:
        candidates += [
            each
            for group in groups.layer_groups
            for each in _shared(group.group_name, "LayerGroup", group.layers, details)
        ]
    return tuple(
        sorted(
            candidates,
            key=lambda each: (
                -each.priority_score,
                _WIDEST.index(each.target_type),
                min((places[name] for name in each.layers), default=0),
                each.target_name,
                each.rule,
            ),
        )
    )


def _counts(risk: RiskFactor) -> bool:
    return risk.recent or risk.rule == "non-finite"


def _score(severity: str, excess: float, rule: str = "") -> float:
    """Put severity first; what is not finite is beyond every limit."""
    beyond = 1.0 if rule == "non-finite" else excess / (1 + excess)
    return {"Critical": 2, "Warning": 1}.get(severity, 0) + beyond


def _layers(details: Mapping[str, LayerGradientDetails]) -> Iterator[OptimizationPriority]:
    for name, each in details.items():
        risks = each.health_metrics.risks
        if not risks:
            continue
        worst = max(risks, key=lambda risk: (_counts(risk), _rank(risk), risk.excess))
        severity = worst.severity if _counts(worst) else ""
        yield OptimizationPriority(
            target_name=name,
            target_type="IndividualLayer",
            priority_score=_score(severity, worst.excess, worst.rule),
            urgency_level=_urgency(worst),
            recommended_actions=_actions(each.optimization_suggestions),
            finding=f"{worst.rule}: {worst.text}",
            rule=worst.rule,
            evidence={"measured": worst.measured, "threshold": worst.threshold},
            layers=(name,),
            missing=(_POTENTIAL,),
        )


def _rank(risk: RiskFactor) -> int:
    return 2 if risk.severity == "Critical" else 1


def _urgency(risk: RiskFactor) -> UrgencyLevel:
    if not _counts(risk):
        return "Low"
    if risk.severity == "Critical":
        return "Critical"
    return "High" if risk.growing else "Medium"


def _shared(
    name: str,
    target: OptimizationTarget,
    members: Sequence[str],
    details: Mapping[str, LayerGradientDetails],
) -> Iterator[OptimizationPriority]:
    """Say which rules at least half of the layers of a group break."""
    judged = [each for each in members if details[each].health_metrics.overall_health != "Unknown"]
    if len(judged) < _LEAST_MEMBERS[target]:
        return
    broken: dict[str, list[tuple[str, RiskFactor]]] = {}
    for each in judged:
        for risk in filter(_counts, details[each].health_metrics.risks):
            broken.setdefault(risk.rule, []).append((each, risk))
    for rule, cases in broken.items():
        if len(cases) < SHARED * len(judged):
            continue
        severities = [risk for _, risk in cases if risk.severity == "Critical"]
        severe = 2 * len(severities) >= len(cases)
        worst = max((risk for _, risk in cases), key=lambda risk: (_rank(risk), risk.growing))
        some = tuple(each for each, _ in cases)
        yield OptimizationPriority(
            target_name=name,
            target_type=target,
            priority_score=_score(
                "Critical" if severe else "Warning", median(risk.excess for _, risk in cases), rule
            ),
            urgency_level="Critical" if severe else "High" if worst.growing else "Medium",
            recommended_actions=_actions(
                [
                    suggestion
                    for each in some
                    for suggestion in details[each].optimization_suggestions
                    if suggestion.rule == rule
                ]
            ),
            finding=f"{rule} in {len(cases)} of {len(judged)} layers",
            rule=rule,
            evidence={"layers": len(cases), "of": len(judged), "share": len(cases) / len(judged)},
            layers=some,
            missing=(_POTENTIAL,),
        )


def _network(
    details: Mapping[str, LayerGradientDetails], network: NetworkLevelAnalysis, verdict: Verdict
) -> Iterator[OptimizationPriority]:
    yield from _shared("network", "NetworkLevel", list(details), details)
    profile = network.depth_profile
    if (
        verdict.is_healthy
        or profile is None
        or profile.slope is None
        or profile.verdict not in {"vanishing", "exploding"}
    ):
        return
    span = abs(profile.slope) * max(profile.layers - 1, 1)
    towards = "less" if profile.verdict == "vanishing" else "more"
    yield OptimizationPriority(
        target_name="network",
        target_type="NetworkLevel",
        priority_score=_score("Warning", span),
        urgency_level="Medium",
        recommended_actions=(
            _action("residual connections or normalisation", "ArchitecturalModification"),
        ),
        finding=f"depth: {profile.measure.removeprefix('ln ')} is {exp(profile.slope):.3g} times "
        f"as large in every further layer towards the output: those near the input get {towards}",
        rule="depth",
        evidence={"slope": profile.slope, "layers": profile.layers},
        missing=(_POTENTIAL,),
    )


def _actions(suggestions: Sequence[LayerOptimizationSuggestion]) -> tuple[PrioritizedAction, ...]:
    """Return each action once, in the order of the suggestions."""
    made: dict[str, PrioritizedAction] = {}
    for each in suggestions:
        name = each.description.removeprefix(f"{each.layer_name}: ")
        made.setdefault(name, _action(name, each.suggestion_type))
    return tuple(made.values())


def _action(name: str, kind: SuggestionType) -> PrioritizedAction:
    action, effort = _ACTIONS[kind]
    return PrioritizedAction(
        action_name=name,
        action_type=action,
        implementation_effort=effort,
        prerequisites=_PREREQUISITES.get(action, ()),
        missing=(_IMPACT,),
    )
