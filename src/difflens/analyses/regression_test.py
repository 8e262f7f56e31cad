"""Did a metric get worse, beyond what noise explains?"""

from __future__ import annotations

from typing import Any

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..records import Envelope, Policy, Severity, Threshold
from ..stats.cusum import LEAST
from . import analysis
from .quality.checks import checks
from .quality.courses import courses
from .quality.outcomes import Outcome, outcome, verdict
from .quality.settings import Settings

NAME = "regression_test"
NEEDS = (
    "--eval-left/--eval-right, --latency-left/--latency-right, --history with --metrics-right,"
    " or --metrics-left/--metrics-right with a margin in --policy"
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
_FIELDS = ("passed", "degradation", "severity", "metric", "checks", "history")


def _gate(fields: dict[str, Any]) -> bool | None:
    passed: bool | None = fields["passed"]
    return passed


@analysis(needs=[], thresholds=THRESHOLDS, gate=_gate)
def regression_test(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """Whether a metric got worse beyond its noise, with the least loss that is sure."""
    answer = Answer(NAME, policy, THRESHOLDS)
    found = outcomes(answer, diff, evidence, policy)
    if not found:
        for field in _FIELDS:
            answer.lack(field, needs=NEEDS, why="weights alone do not measure quality")
        return answer.envelope()
    _say(answer, found)
    answer.say("checks", [told(each) for each in found], basis="one a metric, strongest evidence")
    _history(answer, evidence, policy)
    _assume(answer, found)
    for each in found:
        if each.passed is False:
            _find(answer, each)
    if any(each.check.source == "latency" for each in found):
        answer.seeded(answer["seed"])
    return answer.envelope()


def outcomes(answer: Answer, diff: Diff, evidence: Evidence, policy: Policy) -> list[Outcome]:
    """Judge every metric there is evidence for, the worst first."""
    settings = Settings.of(answer)
    steps = {name: float(answer[name]) for name in STEPS}
    known = checks(evidence, policy, settings, diff=diff)
    found = [outcome(each, settings.alpha, steps) for each in known]
    return sorted(found, key=_rank, reverse=True)


def told(each: Outcome) -> dict[str, Any]:
    """Give an outcome as plain data."""
    return each.check.told() | {"outcome": each.word, "severity": each.severity, "why": each.why}


def _rank(each: Outcome) -> tuple[bool, int, bool, float]:
    severity = STEPS.index(each.severity) if each.severity in STEPS else -1
    loss = each.check.relative
    return each.passed is False, severity, each.counts, float("-inf") if loss is None else loss


def _say(answer: Answer, found: list[Outcome]) -> None:
    passed, worst = verdict(found), found[0]
    is_open = next((each for each in found if each.counts and each.passed is None), worst)
    counted = [each for each in found if each.counts]
    answer.either(
        "passed",
        passed,
        basis=f"{len(counted)} of {len(found)} metrics could be judged, by "
        + (", ".join(dict.fromkeys(each.check.source for each in counted)) or "nothing"),
        needs=is_open.needs or NEEDS,
        why=f"{is_open.check.metric}: {is_open.why}",
    )
    answer.either(
        "degradation",
        worst.check.degradation,
        basis=f"{worst.check.metric}, in its own units, positive is worse; {worst.why}",
        uncertainty=worst.check.interval,
        needs=f"[metrics.{worst.check.metric}] direction in --policy",
        why=worst.why,
    )
    answer.either(
        "severity",
        worst.severity or ("none" if passed else None),
        basis="the sure part of the loss, relative to left, against the policy",
        needs=is_open.needs or NEEDS,
        why=f"{is_open.check.metric}: {is_open.why}",
    )
    answer.say("metric", worst.check.metric, basis="the one that lost most, relative to left")


def _history(answer: Answer, evidence: Evidence, policy: Policy) -> None:
    seen = courses(evidence, policy, alpha=answer["alpha"], seed=answer["seed"])
    answer.either(
        "history",
        seen or None,
        basis="change points by E-divisive with a permutation test, alarms of CUSUM (k 0.5, h 5)"
        f" after the first {LEAST} values; neither decides the gate",
        needs="--history",
        why="one pair has no course",
    )


def _assume(answer: Answer, found: list[Outcome]) -> None:
    silent = [each.check.metric for each in found if not each.counts]
    if silent:
        some = ", ".join(silent[:8]) + (f" and {len(silent) - 8} more" if len(silent) > 8 else "")
        answer.assume(f"single numbers without a margin or limit, not judged: {some}")
    if any(each.word == "not_found" for each in found):
        answer.assume("no sure loss is not sameness: that needs a margin in --policy")
    if any(each.check.source == "evals" for each in found):
        answer.assume("about these two checkpoints: other seeds of training may differ")


def _find(answer: Answer, each: Outcome) -> None:
    check = each.check
    text = f"{check.metric} {check.left:.4g} -> {check.right:.4g}: {each.why}"
    evidence = {"left": check.left, "right": check.right, "sure_loss": each.limit}
    answer.find("", text, evidence, each.severity or "low")
