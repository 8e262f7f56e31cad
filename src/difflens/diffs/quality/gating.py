"""From evidence to outcomes to the word of a gate: one rule for every command that gates.

`passed` only where it was shown, `failed` where a loss was shown, `cannot_tell` where neither was.
A gate without any evidence has no word at all: that is trouble.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from difflens.core.findings import Severity
from difflens.core.policy import GateWord, Policy
from difflens.stats.comparison import NO_REPEATS

from ..evidence.records import Evidence
from .check import judge_trials
from .margins import limits_of, with_margins
from .outcomes import Outcome, outcome
from .trials import Settings, Trial, latency_trials, trials

MEDIAN = "inference_latency_ms"
_OPTIONS = (
    "--eval-left/--eval-right",
    "--latency-left/--latency-right",
    "--metrics-left/--metrics-right",
)


def gate_word(passed: Iterable[bool | None]) -> GateWord:
    """Join the answers about several metrics; no answer at all is no pass."""
    answers = list(passed)
    if False in answers:
        return "failed"
    return "cannot_tell" if None in answers or not answers else "passed"


def quality_needs(evidence: Evidence) -> str:
    """Say what would let a metric be judged, leaving out what was given."""
    more = "metrics that both sides have, with more examples of each"
    if not evidence.history:
        extra = " with --metrics-right" if not evidence.right.metrics else ""
        return evidence.lacking(*_OPTIONS, f"--history{extra}", instead=more)
    return evidence.lacking(*_OPTIONS, "--metrics-right", instead=more)


def gate_trials(evidence: Evidence, settings: Settings) -> list[Trial]:
    """List every metric that a gate looks at: of latencies the median beside the quantile."""
    found = {each.metric: each for each in trials(evidence, settings)}
    timed = evidence.left.latency, evidence.right.latency
    for each in latency_trials(*timed, settings._replace(latency_quantile=0.5)):
        found[MEDIAN] = each._replace(metric=MEDIAN)
    return list(found.values())


def gate_outcomes(
    evidence: Evidence,
    policy: Policy,
    settings: Settings,
    steps: Mapping[Severity, float],
    part: float | None = None,
) -> list[Outcome]:
    """Judge every metric there is evidence for, the worst first, each against its margin.

    `part` is the margin of those that have none, as a part of their value before; without it the
    default margins hold.
    """
    tried = gate_trials(evidence, settings)
    judged_by = with_margins(policy, tried, limits_of(policy), part)
    known = judge_trials(with_tests(tried, judged_by, settings), judged_by, settings)
    found = [outcome(each, settings.alpha, steps) for each in known]
    least = policy.threshold("regressions", "minor", 1.0)
    order = list(steps)

    def rank(each: Outcome) -> tuple[bool, int, bool, float]:
        severity = order.index(each.severity) if each.severity in order else -1
        loss = each.check.relative
        return each.passed is False, severity, each.counts, -inf if loss is None else loss

    return sorted((_forgiven(each, least) for each in found), key=rank, reverse=True)


def _forgiven(each: Outcome, least: float) -> Outcome:
    """Let a loss pass that the policy calls negligible: beyond its margin, below so many."""
    margin = each.check.rule.margin
    if not margin or each.passed is not False or each.limit is None:
        return each
    if not margin < each.limit < least * margin:
        return each
    return each._replace(word="ok", severity=None, why=f"{each.why}; negligible by the policy")


def with_tests(
    found: list[Trial],
    policy: Policy,
    settings: Settings,
    values: Mapping[str, tuple[float, float]] | None = None,
    source: str = "metrics",
) -> list[Trial]:
    """Replace trials whose samples do not vary by their two values, and say what they lack.

    Too few samples stay what they are: of them nothing can be told.
    `values` are the two values of a metric where they are not those of its trial.
    """
    known = values or {}
    judged = {
        each.metric: outcome(each, settings.alpha, {})
        for each in judge_trials(found, policy, settings)
        if each.direction
    }
    result = []
    for trial in found:
        if _allows_no_test(judged.get(trial.metric)):
            ends = known.get(trial.metric, (trial.left, trial.right))
            note = "; ".join(filter(None, (trial.note, "its samples do not vary", NO_REPEATS)))
            result.append(Trial(trial.metric, source, *ends, note))
        else:
            result.append(trial)
    return result


def _allows_no_test(judged: Outcome | None) -> bool:
    """Are there samples enough, and yet nothing to test, since none vary?"""
    if judged is None or judged.word != "unknown" or judged.check.source == "latency":
        return False
    return judged.check.statistical and judged.check.is_enough
