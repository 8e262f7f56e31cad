"""May the right model be deployed? Gates with their evidence, and no score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from difflens.core.findings import Severity
from difflens.core.policy import GateWord, Threshold
from difflens.stats.quantiles import least_samples, quantile

from ..answer import Answer, Question
from ..diff import Diff
from ..evidence.records import Evidence, Example
from ..methods.gates import Gate, dtypes, finite, licence, lineage, loads, structure, vocabulary
from ..quality.check import Check, judged, stepped_down
from ..quality.gating import gate_outcomes
from ..quality.outcomes import Outcome, outcome, verdict
from ..quality.sides import in_pairs, join, metrics_of
from ..quality.trials import Settings, sides_trial
from . import analysis

_EVALS = "--eval-left/--eval-right"


def quality(asked: Question) -> Gate:
    """Every metric with a margin is non-inferior, and none is surely worse."""
    settings = Settings.of(asked.answer)
    known = gate_outcomes(asked.evidence, asked.answer.policy, settings, {})
    found = [each for each in known if each.check.source != "latency"]
    failed = [each for each in found if each.passed is False]
    if failed:
        return Gate("quality", "fail", _sentence(failed))
    promised = [
        each for each in found if each.check.statistical and each.check.rule.margin is not None
    ]
    if not promised:
        some = found[0].check.metric if found else "NAME"
        why = f"{len(found)} metrics, none tested against a margin"
        margin = f"[metrics.{some}] margin in --policy"
        has_evals = asked.evidence.left.evals and asked.evidence.right.evals
        return Gate("quality", "unknown", why, margin if has_evals else f"{_EVALS} and {margin}")
    if verdict(promised):
        return Gate("quality", "pass", _sentence(promised))
    is_open = [each for each in promised if each.passed is None]
    return Gate("quality", "unknown", _sentence(is_open), is_open[0].needs)


def slices(asked: Question) -> Gate:
    """In every slice (a cluster of enough examples) the metrics are non-inferior, too (Holm)."""
    settings = Settings.of(asked.answer)
    found = list(_sliced(asked))
    if not found:
        least = asked.answer["slice_examples"]
        needs = f"{_EVALS} with a cluster column of two slices of {least} examples, and a margin"
        return Gate("slices", "unknown", "there are no slices with a margin", needs)
    told = [outcome(each, settings.alpha, {}) for each in _family(found, settings.alpha)]
    failed = [each for each in told if each.passed is False]
    if failed:
        return Gate("slices", "fail", _sentence(failed))
    is_open = [each for each in told if each.passed is None]
    if is_open:
        return Gate("slices", "unknown", _sentence(is_open), f"more examples in {_EVALS}")
    return Gate("slices", "pass", f"{len(told)} slices are non-inferior")


def _family(found: list[Check], alpha: float) -> list[Check]:
    return stepped_down(found, alpha, lambda check: check.rule.margin or 0.0)


def _sliced(asked: Question) -> Iterator[Check]:
    """Judge each metric with a margin in each slice that has enough examples on both sides."""
    evidence, least = asked.evidence, asked.answer["slice_examples"]
    left, right = evidence.left.evals, evidence.right.evals
    for metric in metrics_of(left, right):
        rule = asked.answer.policy.metrics.get(metric)
        if rule is None or rule.margin is None:
            continue
        parts = _by_cluster(left, metric), _by_cluster(right, metric)
        joins = {
            name: join(parts[0][name], parts[1][name], metric)
            for name in sorted(parts[0].keys() & parts[1].keys())
        }
        large = {name: each for name, each in joins.items() if len(each.ids) >= least}
        if len(large) > 1:
            for name, each in large.items():
                trial = sides_trial(metric, in_pairs(each))
                check = judged(trial, asked.answer.policy, asked.answer["alpha"])
                yield check._replace(trial=trial._replace(metric=f"{metric} in {name}"))


def _by_cluster(examples: tuple[Example, ...], metric: str) -> dict[str, list[Example]]:
    groups: dict[str, list[Example]] = defaultdict(list)
    for each in examples:
        if each.metric == metric and each.cluster is not None:
            groups[each.cluster].append(Example(each.id, each.score, each.metric))
    return groups


def _sentence(found: list[Outcome]) -> str:
    shown = "; ".join(f"{each.check.metric}: {each.why}" for each in found[:3])
    return shown + (f"; and {len(found) - 3} more" if len(found) > 3 else "")


_MB = 1e6


def memory(asked: Question) -> Gate:
    """The estimate of what the right model needs fits the budget."""
    budget = asked.answer["memory_budget_bytes"]
    estimate = asked.answer.ask("memory_analysis")
    parts = (estimate.fields.get("breakdown") or {}).get("right", {})
    if budget is None:
        needs = "[deployment_readiness] memory_budget_bytes in --policy"
        return Gate("memory", "unknown", "no budget was set", needs)
    total = sum(parts.values())
    said = f"{total / _MB:.6g} MB ({'+'.join(parts)}) of {budget / _MB:.6g} MB"
    if total > budget:
        return Gate("memory", "fail", said)
    if "kv_cache" not in parts and "activations" not in parts:
        return Gate("memory", "unknown", f"{said}: weights alone", "--config-right")
    return Gate("memory", "pass", f"{said}, a lower bound")


def latency(asked: Question) -> Gate:
    """The upper confidence limit of the latency's quantile is within what was promised."""
    promised, q = asked.answer["latency_slo_ms"], asked.answer["latency_quantile"]
    if promised is None:
        needs = "[deployment_readiness] latency_slo_ms in --policy"
        return Gate("latency", "unknown", "no latency was promised", needs)
    samples = [each.ms for each in asked.evidence.right.latency]
    if not samples:
        return Gate("latency", "unknown", "nothing was timed", "--latency-right")
    level = 1 - asked.answer["alpha"]
    found = quantile(samples, q, 2 * level - 1)  # one-sided: each limit at the level itself
    said = f"p{100 * q:g} {found.value:.4g} ms of {len(samples)} samples, {promised:g} ms promised"
    if found.low is not None and found.low > promised:
        return Gate("latency", "fail", f"{said}; at least {found.low:.4g} ms")
    if found.high is None:
        least = least_samples(q, level, sides=1)
        return Gate("latency", "unknown", said, f"{least} samples in --latency-right")
    if found.high <= promised:
        return Gate("latency", "pass", f"{said}; at most {found.high:.4g} ms")
    return Gate(
        "latency",
        "unknown",
        f"{said}; up to {found.high:.4g} ms is possible",
        "more samples in --latency-right",
    )


def outputs(asked: Question) -> Gate:
    """On the sample inputs the right model gives finite outputs of the shape that left gives."""
    ran = asked.evidence.activations
    if ran is None:
        why = "no model was run"
        return Gate("outputs", "unknown", why, "--sample and --model-code")
    after, before = ran.right, ran.left
    if after.outputs_shape is None or after.outputs_finite is None:
        why = after.reasons.get("outputs", "the right model gave no outputs")
        return Gate("outputs", "unknown", why, "--model-code whose model gives outputs")
    if not after.outputs_finite:
        return Gate("outputs", "fail", f"outputs of {ran.examples} examples are not all finite")
    if before.outputs_shape is not None and before.outputs_shape != after.outputs_shape:
        said = f"shape {list(before.outputs_shape)} became {list(after.outputs_shape)}"
        return Gate("outputs", "fail", said)
    said = f"finite, of shape {list(after.outputs_shape)}, on {ran.examples} examples"
    return Gate("outputs", "pass", said)


_ALL = (
    loads,
    finite,
    structure,
    vocabulary,
    dtypes,
    memory,
    latency,
    quality,
    outputs,
    slices,
    licence,
    lineage,
)
GATES = tuple(gate.__name__ for gate in _ALL)
REQUIRED = GATES[:9]  # slices, licence and lineage are asked, and required where the user says so
_OF_THE_FILE = frozenset({"loads", "finite"})  # answered by the model alone


# How many gates are open is a small number, and may be the same for very different models.
@analysis(
    thresholds={
        "dtypes": Threshold(None, "dtypes and encodings that can be served, a list; none: unknown"),
        "memory_budget_bytes": Threshold(
            None, "bytes that weights, cache and activations may take"
        ),
        "latency_slo_ms": Threshold(None, "milliseconds that were promised"),
        "latency_quantile": Threshold(0.95, "the quantile of the latencies that must be in time"),
        "lineage": Threshold(None, 'the descent that was declared: "derived", "identical", ...'),
        "slice_examples": Threshold(30, "examples of a cluster from which it is a slice"),
        "alpha": Threshold(0.05, "chance of a wrong claim of each gate that tests"),
        "seed": Threshold(0, "seed of the resampling behind intervals"),
    },
    fields={
        "readiness": "",
        "gates_passed": "required gates",
        "unknown": "required gates without an answer",
        "risk": "overall_risk_level of --risk-assessment",
        "verdict": "",
        "gates": "each gate's own evidence",
    },
    gate="verdict",
    gates=GATES,
    constants=("unknown",),
)
def deployment_readiness(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """Whether the right model may be deployed: each gate passed, failed or unknown, and why."""
    Settings.of(answer)
    if not any(pair.right for pair in diff.pairs):
        why = "the right model holds none"
        answer.lack_rest(needs="tensors", why=why, status="not_applicable")
        return
    asked = Question(diff, evidence, answer)
    required = REQUIRED if answer.policy.required is None else answer.policy.required
    gates = [gate(asked) for gate in _ALL]
    _say(answer, gates, required)
    risk = answer.ask("risk_assessment")
    answer.either(
        "risk",
        risk.fields.get("overall_risk_level"),
        needs="tensors",
        why="there is nothing to assess",
    )
    for each in gates:
        if each.word == "fail":
            severity: Severity = "critical" if each.name in required else "medium"
            answer.find("", f"{each.name}: {each.evidence}", {"failed": 1.0}, severity)
    answer.seeded(answer["seed"])


def _verdict(readiness: str, asked: list[Gate]) -> GateWord | None:
    """Name the verdict; a model without any evidence beside it has none."""
    if readiness != "insufficient_evidence":
        return "passed" if readiness == "ready" else "failed"
    known = [each for each in asked if each.name not in _OF_THE_FILE and each.word != "unknown"]
    return "cannot_tell" if known else None


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
    answer.either(
        "verdict",
        _verdict(readiness, asked),
        basis=f"readiness; of the required gates {said}",
        needs="; ".join(each.needs for each in is_open) or "a gate that is required",
        why="there is no evidence beside the model itself",
    )
    told = [each.to_dict(required=each.name in required) for each in gates]
    answer.say("gates", told)
    answer.say("gates_passed", f"{words.count('pass')}/{len(words)}")
    answer.say("unknown", len(is_open), uncertainty="exact")
    for each in is_open:
        answer.assume(f"{each.name} needs {each.needs}")
