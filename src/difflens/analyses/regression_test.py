"""Did a metric get worse, beyond what noise explains?"""

from __future__ import annotations

from typing import Any

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..records import Envelope, Policy, Severity, Threshold
from . import analysis
from .quality.checks import Settings, checks
from .quality.outcomes import Outcome, outcome

NAME = "regression_test"
NEEDS = (
    "--eval-left/--eval-right, --latency-left/--latency-right, --history or --metrics-left/-right"
)
STEPS: tuple[Severity, ...] = ("low", "medium", "high", "critical")
THRESHOLDS = {
    "alpha": Threshold(0.05, "chance of a false alarm, over all metrics together (Holm)"),
    "latency_quantile": Threshold(0.95, "the quantile of the latencies that is compared"),
    "low": Threshold(0.0, "sure loss, relative to left, from which the severity is low"),
    "medium": Threshold(0.02, "the same for medium"),
    "high": Threshold(0.05, "the same for high"),
    "critical": Threshold(0.1, "the same for critical"),
    "seed": Threshold(0, "seed of the resampling behind latency intervals"),
}


def _gate(fields: dict[str, Any]) -> bool | None:
    passed: bool | None = fields["passed"]
    return passed


@analysis(needs=[], thresholds=THRESHOLDS, gate=_gate)
def regression_test(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:  # noqa: ARG001
    """Whether a metric got worse beyond its noise, with the least loss that is sure."""
    answer = Answer(NAME, policy, THRESHOLDS)
    found = outcomes(answer, evidence, policy)
    if not found:
        for field in ("passed", "degradation", "severity", "checks"):
            answer.lack(field, needs=NEEDS, why="weights alone do not tell how good a model is")
        return answer.envelope()
    _say(answer, found)
    answer.say("checks", [_told(each) for each in found], basis="one a metric, strongest evidence")
    for each in found:
        if each.passed is False:
            _find(answer, each)
    if any(each.check.source == "latency" for each in found):
        answer.seeded(answer["seed"])
    return answer.envelope()


def outcomes(answer: Answer, evidence: Evidence, policy: Policy) -> list[Outcome]:
    """Judge every metric there is evidence for, the worst first."""
    settings = Settings(answer["alpha"], answer["latency_quantile"], answer["seed"])
    steps = {name: float(answer[name]) for name in STEPS}
    found = [outcome(each, answer["alpha"], steps) for each in checks(evidence, policy, settings)]
    return sorted(found, key=_rank, reverse=True)


def _rank(each: Outcome) -> tuple[bool, int, float]:
    severity = STEPS.index(each.severity) if each.severity in STEPS else -1
    return each.passed is False, severity, _relative(each) or 0.0


def _relative(each: Outcome) -> float | None:
    loss, left = each.check.degradation, each.check.left
    return None if loss is None or not left else loss / abs(left)


def _say(answer: Answer, found: list[Outcome]) -> None:
    words = [each.passed for each in found]
    passed = False if False in words else None if None in words else True
    open_ones = [each for each in found if each.passed is None]
    answer.either(
        "passed",
        passed,
        basis=f"{len(found)} metrics: {', '.join(each.check.source for each in found)}",
        needs=NEEDS if not open_ones else f"for {open_ones[0].check.metric}: more evidence",
        why=open_ones[0].why if open_ones else "",
    )
    worst = found[0]
    answer.either(
        "degradation",
        worst.check.degradation,
        basis=f"{worst.check.metric}, in its own units, positive is worse; {worst.why}",
        uncertainty=worst.check.interval,
        needs=f"[metrics.{worst.check.metric}] direction in --policy",
        why=worst.why,
    )
    severity = worst.severity or ("none" if passed is not None else None)
    answer.either(
        "severity",
        severity,
        basis="the sure part of the loss, relative to left, against the policy",
        needs=NEEDS,
        why="no metric could be judged",
    )


def _told(each: Outcome) -> dict[str, Any]:
    return each.check.told() | {"outcome": each.word, "severity": each.severity, "why": each.why}


def _find(answer: Answer, each: Outcome) -> None:
    check = each.check
    text = f"{check.metric} {check.left:.4g} -> {check.right:.4g}: {each.why}"
    evidence = {"left": check.left, "right": check.right, "sure_loss": each.limit}
    answer.find("", text, evidence, each.severity or "low")
