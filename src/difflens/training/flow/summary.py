"""What a recorded flow comes to: a class of health, and advice that cites what was seen.

The health class, the first that applies:

    Unknown           no frame, or no layer ever had a gradient
    Critical          a value that is not finite, ever; or the layers affected lately hold at
                      least half (`widespread`) of the layers or of the parameters
    ProblemsDetected  they hold at least a tenth (`several`); or any layer explodes lately
    MinorIssues       any layer is affected lately, or is trained and never had a gradient but zero
    Healthy           otherwise

A layer is affected lately where the share of its frames that are flagged, each weighted by a half
for every half-life since, is at least `vanishing_share` or `exploding_share`. One that had a
gradient and of late has exactly zero is dead, and affected from `vanishing_share` on. Counting
frames in which any layer is flagged was not taken: one layer would then speak for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from difflens.core.escape import for_terminal

from ..records.flow import GradientFlowConfig, GradientFlowSummary, GradientHealth, LayerFlow
from .aggregates import Aggregates

_NAMED = 5  # layers that a sentence names; the rest are counted
_LONGEST = 60  # characters of a name in a sentence
_WITH_GRADIENT = ("healthy", "zero", "vanishing", "exploding", "non_finite")


class Affected(NamedTuple):
    """The names of the layers that are affected lately, each way."""

    vanishing: list[str]
    exploding: list[str]
    dead: list[str]


def summary_of(
    known: Aggregates, names: Sequence[str], retained: int, config: GradientFlowConfig
) -> GradientFlowSummary:
    """Sum up all frames ever recorded."""
    layers = known.layers(names)
    alive = [each for each in layers if _had_gradient(each)]
    affected = Affected(
        _lately(alive, "vanishing", config.vanishing_share),
        _lately(alive, "exploding", config.exploding_share),
        _lately([each for each in alive if not _never(each)], "zero", config.vanishing_share),
    )
    of_layers, of_parameters = _shares(alive, {name for names in affected for name in names})
    health, reasons = _health(layers, affected, (of_layers, of_parameters), config)
    return GradientFlowSummary(
        total_steps=known.frames,
        layers_with_vanishing_grads=_names(layers, "vanishing"),
        layers_with_exploding_grads=_names(layers, "exploding"),
        overall_health=health,
        recommendations=tuple(_advice(layers, affected, config)),
        layers_with_non_finite_grads=_names(layers, "non_finite"),
        layers_without_gradients=tuple(each.name for each in layers if _never(each)),
        frozen_layers=tuple(each.name for each in layers if each.states["frozen"]),
        frames_recorded=known.frames,
        frames_retained=retained,
        first_step=known.first_step,
        last_step=known.last_step,
        share_of_layers=of_layers,
        share_of_parameters=of_parameters,
        reasons=tuple(reasons),
        layers=layers,
        config=config,
    )


def _names(layers: Sequence[LayerFlow], state: str) -> tuple[str, ...]:
    return tuple(each.name for each in layers if each.states[state])


def _had_gradient(layer: LayerFlow) -> bool:
    return any(layer.states[state] for state in _WITH_GRADIENT)


def _never(layer: LayerFlow) -> bool:
    """Is it trained, and never had a gradient, or none but zero?"""
    told = layer.frames - layer.states["frozen"]
    return told > 0 and told == layer.states["none"] + layer.states["zero"]


def _lately(layers: Sequence[LayerFlow], flag: str, limit: float) -> list[str]:
    return [
        each.name
        for each in layers
        if (seen := getattr(each, f"recent_{flag}")) > 0 and seen >= limit * each.recent_frames
    ]


def _shares(layers: Sequence[LayerFlow], affected: set[str]) -> tuple[float | None, float | None]:
    if not layers:
        return None, None
    ill = [each for each in layers if each.name in affected]
    whole = sum(each.parameters or 0 for each in layers)
    part = sum(each.parameters or 0 for each in ill)
    return len(ill) / len(layers), part / whole if whole else None


def _health(
    layers: Sequence[LayerFlow],
    affected: Affected,
    shares: tuple[float | None, float | None],
    config: GradientFlowConfig,
) -> tuple[GradientHealth, list[str]]:
    odd = [each.name for each in layers if each.states["non_finite"]]
    quiet = [each.name for each in layers if _never(each)]
    largest = max((share for share in shares if share is not None), default=None)
    if largest is None:
        return "Unknown", ["no layer had a gradient in any frame"]
    reasons = []
    if odd:
        reasons.append(f"values that are not finite in {_listed(odd)}")
    if any(affected):
        counts = zip(affected, ("vanishing", "exploding", "dead"), strict=True)
        kinds = ", ".join(f"{len(names)} {word}" for names, word in counts if names)
        share = f"{100 * largest:.0f}% of the layers, or of their parameters"
        reasons.append(f"affected lately: {kinds} layers ({share})")
    if quiet:
        reasons.append(f"no gradient but zero, ever, in {_listed(quiet)}")
    if odd or largest >= config.widespread:
        return "Critical", reasons
    if affected.exploding or largest >= config.several:
        return "ProblemsDetected", reasons
    return ("MinorIssues", reasons) if any(affected) or quiet else ("Healthy", reasons)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(for_terminal(name, _LONGEST) for name in names[:_NAMED])
    more = len(names) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _advice(
    layers: Sequence[LayerFlow], affected: Affected, config: GradientFlowConfig
) -> list[str]:
    """Say what to do about what was seen; each sentence begins with its rule and evidence."""
    by_name = {each.name: each for each in layers}
    said = []
    odd = sorted(
        (each for each in layers if each.states["non_finite"]),
        key=lambda each: each.first_non_finite_step or 0,
    )
    if odd:
        said.append(
            f"non-finite: {_listed([each.name for each in odd])}; first at step "
            f"{odd[0].first_non_finite_step} in {for_terminal(odd[0].name, _LONGEST)}: look at the "
            "loss and the inputs of that step, and at the loss scale where one is used"
        )
    said += [
        _about(flag, [by_name[name] for name in names], config)
        for flag, names in (("exploding", affected.exploding), ("vanishing", affected.vanishing))
        if names
    ]
    if affected.dead:
        worst = max((by_name[name] for name in affected.dead), key=lambda each: each.states["zero"])
        said.append(
            f"dead: {_listed(affected.dead)}; {for_terminal(worst.name, _LONGEST)} is exactly zero "
            f"in {worst.states['zero']} of {worst.frames} frames, and of late in most: look at the "
            "learning rate and at what their units give out; a unit that is zero for every input "
            "learns no more"
        )
    quiet = [each.name for each in layers if _never(each)]
    if quiet:
        said.append(
            f"no-gradient: {_listed(quiet)} had none, or none but zero, in every frame: "
            "check that they are part of the loss and not detached; mark them as frozen if meant"
        )
    return said


_WORDS = {
    "exploding": (
        "max |g| above {exploding_threshold:g}",
        (
            "clip the norm of all gradients just above its usual level, or lower the learning "
            "rate until the peaks end"
        ),
    ),
    "vanishing": (
        "mean |g| below {vanishing_threshold:g}, or far below its peers or its number type",
        (
            "compare with the layers next to it: a fall from the output to the input asks for "
            "residual paths, normalisation or another initialisation; under Adam a small gradient "
            "alone is not harmful; in 16 bits, scale the loss"
        ),
    ),
}


def _about(flag: str, ill: list[LayerFlow], config: GradientFlowConfig) -> str:
    worst = max(ill, key=lambda each: getattr(each, flag) or 0.0)
    interval = getattr(worst, f"{flag}_interval")
    numbers = {
        key: float("nan") if value is None else value for key, value in config.to_dict().items()
    }
    rule, advice = _WORDS[flag]
    sure = f"{interval.low:.0%} to {interval.high:.0%}"
    often = f"{worst.states[flag]} of {interval.n} frames ({sure})"
    return (
        f"{flag}: {_listed([each.name for each in ill])} ({rule.format(**numbers)}); "
        f"{for_terminal(worst.name, _LONGEST)} in {often}, "
        f"last at step {getattr(worst, f'last_{flag}_step')}: {advice}"
    )
