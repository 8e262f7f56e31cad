"""What the change does to speed, memory and outputs, as far as it can be known."""

from __future__ import annotations

from statistics import median
from typing import Any

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.scan import Scan
from ..records import Envelope, Interval, Policy
from . import analyse, analysis
from .changes.energy import moved_parameters
from .cost.quality import differences

NAME = "performance_impact_estimate"
_FIELDS = ("latency_change", "memory_change", "output_error", "quality_change")


# The metrics are the user's: they may be the same for very different weights.
@analysis(needs=[Scan], constants=("quality_change",))
def performance_impact_estimate(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """How time, memory, outputs and quality change; what only an evaluation tells stays open."""
    answer = Answer(NAME, policy)
    if not diff.pairs:
        for field in _FIELDS:
            answer.lack(field, needs="tensors", why="neither model holds any")
        return answer.envelope("not_applicable")
    _latency(answer, diff, evidence, policy)
    _memory(answer, diff, evidence, policy)
    _outputs(answer, diff, evidence)
    _quality(answer, evidence, policy)
    return answer.envelope()


def _latency(answer: Answer, diff: Diff, evidence: Evidence, policy: Policy) -> None:
    estimate = analyse("inference_speed_estimate", diff, evidence, policy)
    speedup, span = estimate.fields["speedup"], estimate.uncertainty.get("speedup")
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


def _memory(answer: Answer, diff: Diff, evidence: Evidence, policy: Policy) -> None:
    estimate = analyse("memory_analysis", diff, evidence, policy)
    sizes = estimate.fields["bytes"]
    answer.either(
        "memory_change",
        sizes["right"] / sizes["left"] - 1 if sizes["left"] else None,
        basis="bytes as stored, right / left - 1",
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
        basis="isotropic inputs: E‖ΔW x‖² / E‖W x‖² = ‖ΔW‖² / ‖W‖² a matrix, its root here",
        uncertainty="none_available: real inputs are not isotropic",
        needs="matrices whose values moved from a finite norm",
        why="no matrix has a norm to relate to",
    )
    answer.assume("output_error supposes isotropic inputs; --sample and --model-code measure it")


def _isotropic(diff: Diff) -> dict[str, Any] | None:
    """Give the relative error of each matrix's output: the median, the largest and where."""
    moved = {
        each.name: each.scan.relative_l2
        for each in moved_parameters(diff)
        if len(each.scan.shape) > 1
    }
    known = {name: value for name, value in moved.items() if value is not None}
    if not known:
        still = not moved and any(delta.kind == "identical" for delta in diff.deltas)
        return {"kind": "isotropic", "median": 0.0, "max": 0.0, "matrices": 0} if still else None
    worst = max(known, key=lambda name: (known[name], name))
    return {
        "kind": "isotropic",
        "median": median(known.values()),
        "max": known[worst],
        "worst": worst,
        "matrices": len(known),
    }


def _quality(answer: Answer, evidence: Evidence, policy: Policy) -> None:
    found = differences(evidence, policy)
    spans = [each.interval for each in found if each.interval]
    answer.either(
        "quality_change",
        {each.metric: each.plain() for each in found} or None,
        basis="right - left of the metrics handed in, with intervals where examples are paired",
        uncertainty=spans[0] if len(found) == len(spans) == 1 else None,
        needs="--eval-left/--eval-right or --metrics-left/--metrics-right",
        why="weights do not tell how well a model does",
    )
