"""What the network's gradients say together, in sentences; what is not known is left out here."""

from __future__ import annotations

from collections.abc import Iterator

from ...network_results import (
    ConvergenceIndicators,
    DepthProfile,
    NetworkLevelAnalysis,
    PlateauDetection,
    StabilityAssessment,
)
from ..numbers import UNKNOWN, plural
from ..versions.document import Line
from ..versions.values import ends, signed, value


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
        yield Line(source.description, str(source.source_type), "-")


def _depth(found: DepthProfile) -> Iterator[Line]:
    if found.slope is None:
        return
    sure = found.interval
    limits = f" {ends(sure.low, sure.high)}" if sure else ""
    word = f", {found.verdict.replace('_', ' ')}" if found.verdict else ""
    yield Line(f"{found.measure}: {signed(found.slope)} per layer towards the output{limits}{word}",
               "depth")  # fmt: skip
