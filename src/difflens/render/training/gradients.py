"""The layout of `gradients`: a verdict, the network, its layers worst first, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from difflens.training.records.gradients import (
    HEALTHS,
    EnhancedLayerGradientAnalysis,
    LayerGradientDetails,
    LayerGroup,
    OptimizationPriority,
    UrgencyLevel,
)
from difflens.training.records.network import (
    ConvergenceIndicators,
    DepthProfile,
    NetworkLevelAnalysis,
    PlateauDetection,
    StabilityAssessment,
)

from ..document.document import Document, Line, Mood, Name, Part, part, table, unknown
from ..document.numbers import UNKNOWN, plural, short
from ..document.values import ends, probability, signed, value

_ALONG = {
    "vanishing": "gradients vanish towards the input",
    "exploding": "gradients explode towards the input",
}
MOST_LAYERS, MOST_PRIORITIES, MOST_NAMED = 20, 6, 3
_MOODS: dict[str, Mood] = {"Healthy": "good", "Warning": "open", "Critical": "bad"}
_SIGNS: dict[UrgencyLevel, Literal["!", "-", "~", ""]] = {
    "Critical": "!",
    "High": "-",
    "Medium": "~",
    "Low": "",
}


def gradients(result: EnhancedLayerGradientAnalysis) -> Document:
    """Lay out the analysis of a run's gradients."""
    counts = result.counts()
    word = next((each for each in HEALTHS if counts[each]), "Unknown")
    ranked = sorted(result.layer_details.values(), key=_order)
    network = result.network_level_analysis
    return Document(
        title="gradients",
        opening=f"gradients: {_what(result)}",
        verdict=verdict(result),
        word=word,
        mood=_MOODS.get(word, "plain"),
        parts=(
            *part("Network", network_lines(network)),
            *part(
                "Layers, worst first",
                rows=table(
                    ("layer", "health", "norm", "trend/100 steps", "steady", "finding"),
                    map(_row, ranked),
                    MOST_LAYERS,
                ),
            ),
            *part(
                "What to do",
                [
                    line
                    for each in result.optimization_priorities[:MOST_PRIORITIES]
                    for line in _priority(each)
                ],
            ),
            *_groups(result),
            *part("Recorded beside", [Line(each) for each in network.notes], folded=True),
            *unknown(result.missing, network.missing),
        ),
        tiles=tuple((str(counts[each]), each.lower()) for each in HEALTHS),
        warnings=result.warnings,
        footer=f"depth {result.analysis_depth}, window of {result.convergence_window} records",
    )


def verdict(result: EnhancedLayerGradientAnalysis) -> str:
    """Say in one sentence how the layers are, the worst by name."""
    counts, layers = result.counts(), result.layer_details
    if not layers:
        return "unknown: no layer was recorded"
    said = []
    for word, kind in (("Critical", "critical"), ("Warning", "with a warning")):
        names = [
            each.layer_name
            for each in sorted(layers.values(), key=_order)
            if each.health_metrics.overall_health == word
        ]
        if names:
            more = "" if len(names) <= MOST_NAMED else f" and {len(names) - MOST_NAMED} more"
            said.append(f"{len(names)} {kind}: {', '.join(names[:MOST_NAMED])}{more}")
    frozen = sum(map(_is_frozen, layers.values()))
    if frozen:
        said.append(f"{frozen} frozen")
    if counts["Unknown"] > frozen:
        said.append(f"{counts['Unknown'] - frozen} not known")
    said.append(f"{counts['Healthy']} of {plural(len(layers), 'layer')} healthy")
    profile = result.network_level_analysis.depth_profile
    # No layer of a stack that fades evenly stands out of the others.
    if profile is not None and profile.verdict in _ALONG:
        said.append(f"along the depth {_ALONG[profile.verdict]}")
    return "; ".join(said)


def _what(result: EnhancedLayerGradientAnalysis) -> str:
    steps = (
        "" if result.first_step is None else f", steps {result.first_step} to {result.last_step}"
    )
    rest = f" ({result.left_out} more not shown)" if result.left_out else ""
    who = f"{result.run}, " if result.run else ""
    layers = plural(len(result.layer_details), "layer")
    return f"{who}{layers}{rest}, {plural(result.records, 'record')}{steps}"


def _order(each: LayerGradientDetails) -> tuple[bool, int, float]:
    """Put the worst first, frozen ones last; equally bad ones stay in the order of the network."""
    risks = [risk.excess for risk in each.health_metrics.risks if risk.recent]
    place = HEALTHS.index(each.health_metrics.overall_health)
    return _is_frozen(each), place, -max(risks, default=0.0)


def _is_frozen(each: LayerGradientDetails) -> bool:
    """Is it not known how it is because it is not trained?"""
    return not each.trainable and each.health_metrics.overall_health == "Unknown"


def _row(each: LayerGradientDetails) -> tuple[str, ...]:
    now, flow = each.recent_statistics or each.gradient_statistics, each.recent_flow
    slope = None if flow is None else flow.trend_strength
    steady = None if flow is None else flow.stability_measure
    return (
        Name(each.layer_name),
        each.health_metrics.overall_health,
        "" if now.median is None else short(now.median),
        "" if slope is None else signed(slope),
        "" if steady is None else f"{100 * steady:.0f}%",
        "frozen"
        if _is_frozen(each)
        else ", ".join(
            risk.rule if risk.recent else f"{risk.rule} (over)"
            for risk in each.health_metrics.risks
        ),
    )


def _priority(each: OptimizationPriority) -> Iterator[Line]:
    yield Line(
        f"{each.urgency_level}: {each.finding}",
        each.target_name,
        _SIGNS[each.urgency_level],
        each.urgency_level.lower() if _SIGNS[each.urgency_level] else "",
    )
    for action in each.recommended_actions[:2]:
        yield Line(
            f"{action.action_name} ({action.implementation_effort.lower()} effort)", "  to try"
        )


def _groups(result: EnhancedLayerGradientAnalysis) -> list[Part]:
    found = result.gradient_hierarchy
    if found is None:
        return []
    names = {each.level_id: each.level_name for each in found.hierarchy_levels}
    lines = [
        Line(
            f"r = {signed(each.correlation)} at lag {each.lag} ({each.interaction_direction}, "
            f"q {_equals(each.q)})",
            f"{names[each.from_level]} and {names[each.to_level]}",
            "~",
            "together",
        )
        for each in found.cross_level_interactions
    ]
    heads = (
        "group",
        "layers",
        "mean norm",
        "coherence",
        "interval",
        "in step",
        "noise alone",
        "difficulty",
    )
    return part(
        "Groups",
        lines,
        table(heads, map(_group, found.layer_groups), MOST_LAYERS),
        folded=len(found.layer_groups) > MOST_LAYERS,
    )


def _equals(p: float | None) -> str:
    """Write a probability as the right side of a statement: it equals, or lies below."""
    said = probability(p)
    return f"< {said[1:]}" if said.startswith("<") else f"= {said}"


def _group(group: LayerGroup) -> tuple[str, ...]:
    told, sure = group.group_characteristics, group.coherence_interval
    return (
        Name(group.group_name),
        str(len(group.layers)),
        value(told.average_gradient_norm),
        value(group.internal_coherence),
        ends(sure.low, sure.high) if sure else "",
        value(told.gradient_synchronization),
        value(told.synchronization_of_noise),
        told.optimization_difficulty or UNKNOWN,
    )


def network_lines(network: NetworkLevelAnalysis) -> Iterator[Line]:
    """Say what is known, one fact a line."""
    yield Line(_health(network), "health")
    yield Line(_convergence(network.convergence_indicators), "convergence")
    moves = network.training_dynamics
    phase = moves.learning_phase or UNKNOWN
    yield Line(f"{phase}{f': {moves.reason}' if moves.reason else ''}", "phase")
    yield from _plateau(moves.plateau_detection)
    yield from _stability(network.stability_assessment)
    if network.depth_profile is not None:
        yield from _depth(network.depth_profile)
    if network.pairs_tested:
        yield Line(
            f"{network.pairs_co_moving} of {plural(network.pairs_tested, 'pair')} move together, "
            f"{network.pairs_counter_moving} against each other",
            "interactions",
        )


def _health(network: NetworkLevelAnalysis) -> str:
    counts = [f"{number} {word}" for word, number in network.layers_by_health.items() if number]
    told = f" ({', '.join(counts)})" if counts else ""
    return f"{network.overall_gradient_health}{told}"


def _convergence(found: ConvergenceIndicators) -> str:
    slopes = [
        f"{word} {signed(score)}"
        for word, score in (
            ("gradients", found.gradient_convergence_score),
            ("updates", found.parameter_convergence_score),
            ("loss", found.loss_convergence_score),
        )
        if score is not None
    ]
    said = [str(found.convergence_trend)]
    said += [f"ln per 100 steps: {', '.join(slopes)}"] if slopes else []
    said += [found.reason] if found.reason else []
    if found.estimated_steps_to_convergence is not None:
        sure = found.steps_interval
        limits = f" {ends(sure.low, sure.high)}" if sure else ""
        said.append(f"about {found.estimated_steps_to_convergence} steps to go{limits}")
    return "; ".join(said)


def _plateau(found: PlateauDetection) -> Iterator[Line]:
    if found.outcome == "unknown":
        return
    said = found.outcome.replace("_", " ")
    if found.is_plateau and found.plateau_duration is not None:
        said += f" for {found.plateau_duration} steps ({found.plateau_severity})"
    yield Line(said, "plateau")


def _stability(found: StabilityAssessment) -> Iterator[Line]:
    if found.overall_stability is not None:
        trend = f", {found.stability_trend}" if found.stability_trend else ""
        yield Line(f"quartile range of ln norms {value(found.overall_stability)}{trend}", "scatter")
    for source in found.instability_sources:
        yield Line(source.description, str(source.source_type), "!", "unstable")


def _depth(found: DepthProfile) -> Iterator[Line]:
    if found.slope is None:
        return
    sure = found.interval
    limits = f" {ends(sure.low, sure.high)}" if sure else ""
    word = f", {found.verdict.replace('_', ' ')}" if found.verdict else ""
    yield Line(
        f"{found.measure}: {signed(found.slope)} per layer towards the output{limits}{word}",
        "depth",
    )
