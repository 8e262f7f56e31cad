"""May the right model be deployed? Gates with their evidence, and no score."""

from __future__ import annotations

from typing import Any

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.scan import Scan
from ..records import Envelope, Policy, Severity, Threshold
from . import analyse, analysis
from .quality.settings import Settings
from .release.files import dtypes, finite, licence, lineage, loads, structure, vocabulary
from .release.gate import Asked, Gate
from .release.goodness import quality, slices
from .release.service import latency, memory, outputs

NAME = "deployment_readiness"
THRESHOLDS = {
    "dtypes": Threshold(None, "dtypes and encodings that can be served, a list; none: unknown"),
    "memory_budget_bytes": Threshold(None, "bytes that weights, cache and activations may take"),
    "latency_slo_ms": Threshold(None, "milliseconds that were promised"),
    "latency_quantile": Threshold(0.95, "the quantile of the latencies that must be in time"),
    "lineage": Threshold(None, 'the descent that was declared: "derived", "identical", ...'),
    "slice_examples": Threshold(30, "examples of a cluster from which it is a slice"),
    "alpha": Threshold(0.05, "chance of a wrong claim of each gate that tests"),
    "seed": Threshold(0, "seed of the resampling behind intervals"),
}
_ALL = (
    loads, finite, structure, vocabulary, dtypes, memory, latency, quality, outputs, slices,
    licence, lineage,
)  # fmt: skip
GATES = tuple(gate.__name__ for gate in _ALL)
REQUIRED = GATES[:9]  # slices, licence and lineage are asked, and required where the user says so
_FIELDS = ("readiness", "risk", "gates", "gates_passed", "unknown")


def _gate(fields: dict[str, Any]) -> bool | None:
    return {"ready": True, "not_ready": False}.get(fields["readiness"])


# How many gates are open is a small number, and may be the same for very different models.
@analysis(needs=[Scan], thresholds=THRESHOLDS, gate=_gate, gates=GATES, constants=("unknown",))
def deployment_readiness(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """Whether the right model may be deployed: each gate passed, failed or unknown, and why."""
    answer = Answer(NAME, policy, THRESHOLDS)
    Settings.of(answer)
    if not any(pair.right for pair in diff.pairs):
        for field in _FIELDS:
            answer.lack(field, needs="tensors", why="the right model holds none")
        return answer.envelope("not_applicable")
    asked = Asked(diff, evidence, policy, answer)
    required = REQUIRED if policy.required is None else policy.required
    gates = [gate(asked) for gate in _ALL]
    _say(answer, gates, required)
    risk = analyse("risk_assessment", diff, evidence, policy)
    answer.either(
        "risk",
        risk.fields["overall_risk_level"],
        basis="overall_risk_level of --risk-assessment",
        needs="tensors",
        why="there is nothing to assess",
    )
    for each in gates:
        if each.word == "fail":
            severity: Severity = "critical" if each.name in required else "medium"
            answer.find("", f"{each.name}: {each.evidence}", {"failed": 1.0}, severity)
    answer.seeded(answer["seed"])
    return answer.envelope()


def _say(answer: Answer, gates: list[Gate], required: tuple[str, ...]) -> None:
    asked = [each for each in gates if each.name in required and each.word != "not_applicable"]
    words = [each.word for each in asked]
    is_open = [each for each in asked if each.word == "unknown"]
    said = "all required gates pass"
    readiness = "ready"
    if "fail" in words:
        readiness = "not_ready"
        said = f"failed: {', '.join(each.name for each in asked if each.word == 'fail')}"
    elif is_open or not asked:
        readiness = "insufficient_evidence"
        said = f"not known: {', '.join(each.name for each in is_open) or 'no gate was asked'}"
    answer.say("readiness", readiness, basis=f"of the required gates {said}")
    told = [each.told(required=each.name in required) for each in gates]
    answer.say("gates", told, basis="each gate's own evidence")
    answer.say("gates_passed", f"{words.count('pass')}/{len(words)}", basis="required gates")
    answer.say("unknown", len(is_open), basis="required gates without an answer",
               uncertainty="exact")  # fmt: skip
    for each in is_open:
        answer.assume(f"{each.name} needs {each.needs}")
