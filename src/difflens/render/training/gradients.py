"""The layout of `gradients`: a verdict, the network, its layers worst first, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ...gradient_results import (
    HEALTHS,
    EnhancedLayerGradientAnalysis,
    LayerGradientDetails,
    LayerGroup,
    OptimizationPriority,
    UrgencyLevel,
)
from ..numbers import UNKNOWN, plural, short
from ..versions.document import Document, Line, Mood, Name, Part, part, table, unknown
from ..versions.values import ends, probability, signed, value
from .gradient_network import network_lines

_ALONG = {"vanishing": "gradients vanish towards the input",
          "exploding": "gradients explode towards the input"}  # fmt: skip
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
            *part("Layers, worst first", rows=table(
                ("layer", "health", "norm", "trend/100 steps", "steady", "finding"),
                map(_row, ranked), MOST_LAYERS)),
            *part("What to do", [line for each in result.optimization_priorities[:MOST_PRIORITIES]
                                 for line in _priority(each)]),
            *_groups(result),
            *part("Recorded beside", [Line(each) for each in network.notes], folded=True),
            *unknown(result.missing, network.missing),
        ),
        tiles=tuple((str(counts[each]), each.lower()) for each in HEALTHS),
        warnings=result.warnings,
        footer=f"depth {result.analysis_depth}, window of {result.convergence_window} records",
    )  # fmt: skip


def verdict(result: EnhancedLayerGradientAnalysis) -> str:
    """Say in one sentence how the layers are, the worst by name."""
    counts, layers = result.counts(), result.layer_details
    if not layers:
        return "unknown: no layer was recorded"
    said = []
    for word, kind in (("Critical", "critical"), ("Warning", "with a warning")):
        names = [each.layer_name for each in sorted(layers.values(), key=_order)
                 if each.health_metrics.overall_health == word]  # fmt: skip
        if names:
            more = "" if len(names) <= MOST_NAMED else f" and {len(names) - MOST_NAMED} more"
            said.append(f"{len(names)} {kind}: {', '.join(names[:MOST_NAMED])}{more}")
    if counts["Unknown"]:
        said.append(f"{counts['Unknown']} not known")
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


def _order(each: LayerGradientDetails) -> tuple[int, float]:
    """Put the worst first; layers that are equally bad stay in the order of the network."""
    risks = [risk.excess for risk in each.health_metrics.risks if risk.recent]
    return HEALTHS.index(each.health_metrics.overall_health), -max(risks, default=0.0)


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
        ", ".join(risk.rule if risk.recent else f"{risk.rule} (over)"
                  for risk in each.health_metrics.risks),
    )  # fmt: skip


def _priority(each: OptimizationPriority) -> Iterator[Line]:
    yield Line(
        f"{each.urgency_level}: {each.finding}", each.target_name, _SIGNS[each.urgency_level]
    )
    for action in each.recommended_actions[:2]:
        yield Line(f"{action.action_name} ({action.implementation_effort.lower()} effort)",
                   "  to try")  # fmt: skip


def _groups(result: EnhancedLayerGradientAnalysis) -> list[Part]:
    found = result.gradient_hierarchy
    if found is None:
        return []
    names = {each.level_id: each.level_name for each in found.hierarchy_levels}
    lines = [
        Line(f"r = {signed(each.correlation)} at lag {each.lag} ({each.interaction_direction}, "
             f"q {_equals(each.q)})",
             f"{names[each.from_level]} and {names[each.to_level]}", "~")
        for each in found.cross_level_interactions
    ]  # fmt: skip
    heads = ("group", "layers", "mean norm", "coherence", "interval", "in step", "noise alone",
             "difficulty")  # fmt: skip
    return part("Groups", lines, table(heads, map(_group, found.layer_groups), MOST_LAYERS),
                folded=len(found.layer_groups) > MOST_LAYERS)  # fmt: skip


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
