"""What may help a layer: one row per rule of its health, so that advice and rule share a limit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from difflens.core.findings import Missing

from ..records.gradients import (
    ImplementationComplexity,
    LayerOptimizationSuggestion,
    RiskFactor,
    SuggestionType,
)
from ..records.runs import Fix
from .comparison import Standing
from .verdicts import NO_VERDICT, Verdict


class _Advice(NamedTuple):
    kind: SuggestionType
    what: str
    complexity: ImplementationComplexity
    costs: tuple[str, ...]


_RATE = _Advice(
    "LearningRateAdjustment",
    "lower the learning rate, or give this layer a lower one",
    "Simple",
    ("training goes slower",),
)
_CLIP = _Advice(
    "OptimizationAlgorithm",
    "clip the gradients at what the layer has in its calm records",
    "Simple",
    ("a limit set too low slows training",),
)
_TABLE: dict[str, tuple[_Advice, ...]] = {
    "non-finite": (
        _Advice(
            "OptimizationAlgorithm",
            "skip steps whose gradient is not finite; then look for a division by zero or a "
            "logarithm of zero, and for a learning rate that is too high",
            "Simple",
            ("skipped steps do not train",),
        ),
    ),
    "diagnosed": (
        _Advice(
            "OptimizationAlgorithm",
            "do what `difflens diagnose` says of the run",
            "Simple",
            ("they are named there",),
        ),
    ),
    "dead": (
        _Advice(
            "WeightInitialization",
            "see whether the layer is cut off from the loss or its units are all inactive; if so "
            "initialise it again",
            "RequiresRetraining",
            ("what the layer had learnt is lost",),
        ),
    ),
    "exploding": (_RATE, _CLIP),
    "absolute": (_RATE, _CLIP),
    "growing": (_RATE,),
    "spike": (_CLIP,),
    "mostly-zero": (
        _Advice(
            "ArchitecturalModification",
            "use an activation that passes a gradient on both sides (leaky ReLU, GELU)",
            "Complex",
            ("the network has to be trained again",),
        ),
    ),
    "underflow": (
        _Advice(
            "OptimizationAlgorithm",
            "train with a loss scale, or in bfloat16",
            "Simple",
            ("a scale set too high overflows",),
        ),
    ),
    "unstable": (
        _Advice(
            "OptimizationAlgorithm",
            "use larger batches or accumulate gradients, so that they scatter less",
            "Moderate",
            ("fewer steps for the same data",),
        ),
    ),
    "oscillating": (
        _Advice(
            "LearningRateAdjustment",
            "lower the learning rate or the momentum: each step overshoots",
            "Simple",
            ("training goes slower",),
        ),
    ),
    "weight-growth": (
        _Advice(
            "RegularizationAdd",
            "add weight decay, and tune it",
            "Moderate",
            ("too much of it costs capacity",),
        ),
    ),
}
# The same where a loss scale was recorded.
_SCALED: dict[str, tuple[_Advice, ...]] = {
    "non-finite": (
        _Advice(
            "OptimizationAlgorithm",
            "skip steps whose gradient is not finite and lower the loss scale; then look for a "
            "division by zero or a logarithm of zero",
            "Simple",
            ("skipped steps do not train",),
        ),
    ),
    "underflow": (
        _Advice(
            "OptimizationAlgorithm",
            "raise the loss scale, or train in bfloat16",
            "Simple",
            ("a scale set too high overflows",),
        ),
    ),
}
_FADING = _Advice(
    "ArchitecturalModification",
    "give the gradient a shorter way: residual connections, for it fades layer by layer towards "
    "the input",
    "Complex",
    ("the network has to be trained again",),
)
_SMALL = _Advice(
    "BatchNormalization",
    "put a normalisation before this layer; under Adam a small gradient alone does no harm, so "
    "look at update_l2 by weight_l2 first",
    "Complex",
    ("the network has to be trained again", "figures of a batch differ from those of one example"),
)
_NEVER = Missing("expected_improvement", "runs with and without the change", "it was not estimated")


def suggestions(
    name: str, found: Iterable[RiskFactor], standing: Standing, verdict: Verdict = NO_VERDICT
) -> tuple[LayerOptimizationSuggestion, ...]:
    """Return what may help against each risk that a layer has now; each thing once.

    Where `diagnose` has a remedy for the run, that is the advice: two would pull two ways.
    """
    made: dict[str, LayerOptimizationSuggestion] = {}
    for risk in found:
        if not risk.recent and risk.rule != "non-finite":
            continue
        for advice in _advice(risk, standing, verdict):
            made.setdefault(advice.what, _suggestion(name, risk, advice))
    return tuple(made.values())


def _advice(risk: RiskFactor, standing: Standing, verdict: Verdict) -> tuple[_Advice, ...]:
    if verdict.fix is not None:
        return (_following(verdict.fix),)
    if verdict.has_loss_scale and risk.rule in _SCALED:
        return _SCALED[risk.rule]
    if risk.rule == "vanishing":
        return (_FADING if standing.fades_to_input else _SMALL,)
    return _TABLE[risk.rule]


def _following(fix: Fix) -> _Advice:
    """Send the reader to what `diagnose` says, by the name of the remedy."""
    (row,) = _TABLE["diagnosed"]
    given = [
        f"{name} {value:g}"
        for name, value in fix.parameters.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    return row._replace(what=f"{row.what}: {', '.join([fix.code, *given])}")


def _suggestion(name: str, risk: RiskFactor, advice: _Advice) -> LayerOptimizationSuggestion:
    return LayerOptimizationSuggestion(
        suggestion_type=advice.kind,
        description=f"{name}: {advice.what}",
        rationale=f"{risk.rule}: {risk.text}",
        implementation_complexity=advice.complexity,
        side_effects=advice.costs,
        layer_name=name,
        rule=risk.rule,
        evidence={"measured": risk.measured, "threshold": risk.threshold},
        missing=(_NEVER,),
    )
