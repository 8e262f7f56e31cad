"""What the change does to speed, memory and outputs, as far as it can be known."""

from __future__ import annotations

from statistics import median
from typing import Any

from difflens.core.findings import Interval
from difflens.core.records import Delta

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.changes.energy import is_float, moved_parameters
from ..quality.check import differences
from . import analysis


# The metrics are the user's: they may be the same for very different weights.
@analysis(
    needs="tensors",
    fields={
        "latency_change": "",
        "memory_change": "bytes as stored, right / left - 1",
        "output_error": "isotropic inputs: E‖ΔW x‖² / E‖W x‖² = ‖ΔW‖² / ‖W‖² a matrix, its root"
        " here",
        "quality_change": "right - left of the metrics handed in, with intervals where examples"
        " are paired",
    },
    constants=("quality_change",),
)
def performance_impact_estimate(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """How time, memory, outputs and quality change; what only an evaluation tells stays open."""
    _latency(answer)
    _memory(answer)
    _outputs(answer, diff, evidence)
    _quality(answer, evidence)


def _latency(answer: Answer) -> None:
    estimate = answer.ask("inference_speed_estimate")
    speedup, span = estimate.fields.get("speedup"), estimate.uncertainty.get("speedup")
    lacking = {each.field: each for each in estimate.missing}.get("speedup")
    if isinstance(span, Interval) and span.low and span.high:
        span = Interval(1 / span.high - 1, 1 / span.low - 1, span.level, span.method)
    answer.either(
        "latency_change",
        1 / speedup - 1 if speedup else None,
        basis=f"1 / speedup - 1; {estimate.basis.get('speedup', '')}",
        uncertainty=span,
        needs=lacking.needs if lacking else "tensors a forward pass reads",
        why=lacking.why if lacking else "nothing is read on one side",
    )


def _memory(answer: Answer) -> None:
    estimate = answer.ask("memory_analysis")
    sizes = estimate.fields.get("bytes") or {}
    answer.either(
        "memory_change",
        sizes["right"] / sizes["left"] - 1 if sizes.get("left") else None,
        uncertainty=estimate.uncertainty.get("bytes"),
        needs="tensors on the left",
        why="the left model holds no byte",
    )


def _outputs(answer: Answer, diff: Diff, evidence: Evidence) -> None:
    if not diff.has_values:
        answer.lack("output_error", needs="tensor values", why="only headers were read")
        return
    measured = getattr(evidence.activations, "output_error", None)
    if isinstance(measured, int | float):
        answer.say(
            "output_error",
            {"kind": "measured", "relative": float(measured)},
            basis="‖right output - left output‖ / ‖left output‖ on the sample inputs",
        )
        return
    answer.either(
        "output_error",
        _isotropic(diff),
        uncertainty="none_available: real inputs are not isotropic",
        needs="matrices whose values moved from a finite norm",
        why="no matrix has a norm to relate to",
    )
    answer.assume("output_error supposes isotropic inputs; --sample and --model-code measure it")


def _isotropic(diff: Diff) -> dict[str, Any] | None:
    """Return the relative error of each matrix's output: the median, the largest and where."""
    moved = {
        each.name: each.scan.relative_l2
        for each in moved_parameters(diff)
        if len(each.scan.shape) > 1
    }
    known = {name: value for name, value in moved.items() if value is not None}
    if not known:
        still = not moved and (not diff.changed or any(map(_is_same_matrix, diff.deltas)))
        return {"kind": "isotropic", "median": 0.0, "max": 0.0, "matrices": 0} if still else None
    worst = max(known, key=lambda name: (known[name], name))
    return {
        "kind": "isotropic",
        "median": median(known.values()),
        "max": known[worst],
        "worst": worst,
        "matrices": len(known),
    }


def _is_same_matrix(delta: Delta) -> bool:
    info = delta.pair.right
    is_matrix = info is not None and len(info.shape) > 1 and is_float(delta)
    return is_matrix and delta.kind == "identical"


def _quality(answer: Answer, evidence: Evidence) -> None:
    found = differences(evidence, answer.policy)
    spans = [each.interval for each in found if each.interval]
    answer.either(
        "quality_change",
        {each.metric: each.to_dict() for each in found} or None,
        uncertainty=spans[0] if len(found) == len(spans) == 1 else None,
        needs="--eval-left/--eval-right or --metrics-left/--metrics-right",
        why="weights do not tell how well a model does",
    )
