"""Did a metric get worse, beyond what noise explains?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from difflens.core.findings import Severity
from difflens.core.policy import Policy, Threshold
from difflens.stats.change_points import BASELINE, baseline, change_points, cusum

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..quality.check import rule_of
from ..quality.gating import gate_outcomes, gate_word, quality_needs
from ..quality.margins import MARGINS, direction_needs, directions
from ..quality.outcomes import Outcome
from ..quality.trials import Settings
from . import analysis

STEPS: tuple[Severity, ...] = ("low", "medium", "high", "critical")
_PASSED = {"passed": True, "failed": False}


@analysis(
    thresholds={
        "alpha": Threshold(0.05, "chance of a false alarm, over all metrics together (Holm)"),
        "latency_quantile": Threshold(0.95, "the quantile of the latencies that is compared"),
        "low": Threshold(0.0, "sure loss, relative to left, from which the severity is low"),
        "medium": Threshold(0.02, "the same for medium"),
        "high": Threshold(0.05, "the same for high"),
        "critical": Threshold(0.1, "the same for critical"),
        "seed": Threshold(0, "seed of the resampling behind latency intervals"),
        **MARGINS,
    },
    fields={
        "verdict": "",
        "metric": "the one that lost most, relative to left",
        "degradation": "",
        "severity": "the sure part of the loss, relative to left, against the policy",
        "directions": "the policy, the option, or the name of the metric",
        "passed": "",
        "history": "",
        "checks": "one a metric, strongest evidence",
    },
    gate="verdict",
)
def regression_test(diff: Diff, evidence: Evidence, answer: Answer) -> None:  # noqa: ARG001
    """Whether a metric got worse beyond its noise, with the least loss that is sure."""
    found = outcomes(answer, evidence)
    if not found:
        why = "weights alone do not measure quality"
        answer.lack_rest(needs=quality_needs(evidence), why=why)
        return
    _say(answer, found, quality_needs(evidence))
    answer.say("directions", directions([each.check.metric for each in found], answer.policy))
    checks = [outcome_fields(each) for each in found]
    answer.say("checks", checks)
    _history(answer, evidence)
    _assume(answer, found)
    for each in found:
        if each.passed is False:
            _find(answer, each)
    if any(each.check.source == "latency" for each in found):
        answer.seeded(answer["seed"])


def outcomes(answer: Answer, evidence: Evidence) -> list[Outcome]:
    """Judge every metric there is evidence for, the worst first."""
    steps = {name: float(answer[name]) for name in STEPS}
    return gate_outcomes(evidence, answer.policy, Settings.of(answer), steps)


def outcome_fields(each: Outcome) -> dict[str, Any]:
    """Return an outcome as plain data."""
    return each.check.to_dict() | {"outcome": each.word, "severity": each.severity, "why": each.why}


def _say(answer: Answer, found: list[Outcome], further: str) -> None:
    counted, worst = [each for each in found if each.counts], found[0]
    word = gate_word(each.passed for each in counted)
    passed = _PASSED.get(word)
    is_open = next((each for each in counted if each.passed is None), worst)
    basis = f"{len(counted)} of {len(found)} metrics could be judged, by " + (
        ", ".join(dict.fromkeys(each.check.source for each in counted)) or "nothing"
    )
    answer.say("verdict", word, basis=basis)
    answer.either(
        "passed",
        passed,
        basis=basis,
        needs=is_open.needs or further,
        why=f"{is_open.check.metric}: {is_open.why}",
    )
    answer.either(
        "degradation",
        worst.check.degradation,
        basis=f"{worst.check.metric}, in its own units, positive is worse; {worst.why}",
        uncertainty=worst.check.interval,
        needs=direction_needs(worst.check.metric),
        why=worst.why,
    )
    answer.either(
        "severity",
        worst.severity or ("none" if passed else None),
        needs=is_open.needs or further,
        why=f"{is_open.check.metric}: {is_open.why}",
    )
    answer.say("metric", worst.check.metric)


def _history(answer: Answer, evidence: Evidence) -> None:
    seen = courses(evidence, answer.policy, alpha=answer["alpha"], seed=answer["seed"])
    answer.either(
        "history",
        seen or None,
        basis="change points by E-divisive with a permutation test, alarms of CUSUM (k 0.5, h 5)"
        f" after the first {BASELINE} values; neither decides the gate",
        needs=evidence.lacking("--history", instead="past versions of a metric"),
        why="one pair has no course",
    )


def _assume(answer: Answer, found: list[Outcome]) -> None:
    silent = [each.check.metric for each in found if not each.counts]
    if silent:
        some = ", ".join(silent[:8]) + (f" and {len(silent) - 8} more" if len(silent) > 8 else "")
        answer.assume(f"single numbers without a known direction, not judged: {some}")
    if any(each.counts and not each.check.statistical for each in found):
        answer.assume("two single numbers are held against a margin; nothing is tested")
    for caution in (text for each in found for text in each.check.cautions):
        answer.assume(caution)
    if any(each.check.source == "evals" for each in found):
        answer.assume("about these two checkpoints: other seeds of training may differ")


def _find(answer: Answer, each: Outcome) -> None:
    check = each.check
    text = f"{check.metric} {check.left:.4g} -> {check.right:.4g}: {each.why}"
    evidence = {"left": check.left, "right": check.right, "sure_loss": each.limit}
    answer.find("", text, evidence, each.severity or "low")


def courses(evidence: Evidence, policy: Policy, *, alpha: float, seed: int) -> list[dict[str, Any]]:
    """Describe each metric of the history, right's own value last where it is known."""
    return list(_courses(evidence, policy, alpha, seed))


def _courses(
    evidence: Evidence, policy: Policy, alpha: float, seed: int
) -> Iterator[dict[str, Any]]:
    current = evidence.right.metrics or {}
    for metric in dict.fromkeys(each.metric for each in evidence.history):
        past = [each for each in evidence.history if each.metric == metric]
        versions = [each.version for each in past]
        values = [each.value for each in past]
        if metric in current:
            versions, values = [*versions, "right"], [*values, current[metric]]
        yield {
            "metric": metric,
            "direction": rule_of(metric, policy)[1],
            "versions": versions,
            "values": values,
            "change_points": _jumps(values, versions, alpha, seed),
            **_watched(values, versions),
        }


def _jumps(
    values: Sequence[float], versions: Sequence[str], alpha: float, seed: int
) -> list[dict[str, Any]]:
    found = change_points(values, alpha=alpha, seed=seed)
    return [
        {"version": versions[each.index], "before": each.before, "after": each.after, "p": each.p}
        for each in found
    ]


def _watched(values: Sequence[float], versions: Sequence[str]) -> dict[str, Any]:
    """Watch what follows a baseline of the first values; too short a history has none."""
    quiet = baseline(values[:BASELINE])
    if quiet is None or len(values) <= BASELINE:
        return {"cusum_alarms": None, "why": f"a watch needs more than {BASELINE} values that vary"}
    seen = cusum(values[BASELINE:], quiet.mean, quiet.deviation, phi=quiet.phi)
    return {
        "cusum_alarms": [versions[BASELINE + at] for at in seen.alarms],
        "in_control_run_length": seen.in_control_run_length,
    }
