"""From a judged metric to its record: what came of it, how bad it is, and what all of them mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from difflens.core.findings import Interval, Missing
from difflens.core.policy import GateWord, Policy, Threshold
from difflens.diffs.quality.gating import gate_word
from difflens.diffs.quality.outcomes import Outcome as Judged
from difflens.diffs.quality.outcomes import describe_gain
from difflens.diffs.quality.trials import Trial

from .metrics import Rule, relative
from .records.regressions import (
    Improvement,
    MetricVerdict,
    Outcome,
    Regression,
    RegressionAssessment,
)
from .records.regressions import RegressionSeverity as Severity

SECTION = "regressions"
THRESHOLDS = {
    "minor": Threshold(1.0, "sure loss, in margins, from which a regression is Minor; less passes"),
    "major": Threshold(5.0, "the same for Major"),
    "critical": Threshold(10.0, "the same for Critical"),
    "negligible_cost": Threshold(0.05, "share of the health that a Negligible regression takes"),
    "minor_cost": Threshold(0.15, "the same for Minor"),
    "major_cost": Threshold(0.4, "the same for Major"),
    "critical_cost": Threshold(1.0, "the same for Critical"),
}
_STEPS = ((Severity.CRITICAL, "critical"), (Severity.MAJOR, "major"), (Severity.MINOR, "minor"))
_UNIT = 0.01  # of the baseline: what stands for a margin of zero
_PASSED: dict[GateWord | None, bool | None] = {"passed": True, "failed": False}
_OUTCOMES: dict[str, Outcome] = {
    "regressed": "regressed",
    "breached": "breached",
    "ok": "ok",
    "within_limit": "ok",
    "not_found": "inconclusive",
    "inconclusive": "inconclusive",
    "unknown": "unknown",
}


class Case(NamedTuple):
    """One metric: how its rule judges a loss and a gain, and what forbids to judge at all."""

    trial: Trial
    rule: Rule
    loss: Judged
    gain: Judged  # by the rule with the sides exchanged
    obstacle: str
    before: float
    after: float

    @property
    def counts(self) -> bool:
        """Does it decide? Single numbers without a direction or a limit say nothing."""
        return bool(self.obstacle) or self.loss.counts

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        if self.obstacle:
            return "unknown"
        if self.loss.passed is not False and self.gain.passed is False:
            return "improved"
        return _OUTCOMES[self.loss.word]

    @property
    def needs(self) -> str:
        """What would decide it; empty if it is decided."""
        if self.obstacle:
            return "both versions measured under the same conditions"
        return self.loss.needs if self.outcome in {"inconclusive", "unknown"} else ""

    def passes(self, harmless: set[str]) -> bool | None:
        """Does it pass? None if that is not known, as for what was measured on other data."""
        if self.obstacle:
            return None
        return self.outcome == "improved" or self.trial.metric in harmless or self.loss.passed


def thresholds_of(policy: Policy) -> dict[str, float]:
    """Return the user's thresholds, and the defaults of the others."""
    return {
        name: float(policy.threshold(SECTION, name, each.value))
        for name, each in THRESHOLDS.items()
    }


def severity(
    loss: float, margin: float, baseline: float, steps: Mapping[str, float]
) -> tuple[Severity, str]:
    """Name the step that a sure loss has reached, counted in margins, and the rule behind it."""
    unit = margin or _UNIT * abs(baseline)
    if not unit:
        return Severity.MINOR, "neither a margin nor a baseline to measure it by"
    times = loss / unit
    reached = next((name for name, step in _STEPS if times >= steps[step]), Severity.NEGLIGIBLE)
    of = f"the margin {margin:.4g}" if margin else f"1 % of the baseline, {unit:.4g}"
    limits = ", ".join(f"{step} from {steps[step]:g}" for _, step in reversed(_STEPS))
    return reached, f"a loss of {loss:.4g} is {times:.3g} times {of}; {limits}"


def health(severities: Iterable[Severity], steps: Mapping[str, float]) -> float:
    """Return the product of 1 - cost over all regressions: 1 without any, 0 with a critical one.

    >>> health([], thresholds_of(Policy()))
    1.0
    """
    score = 1.0
    for each in severities:
        score *= 1 - steps[f"{each.value.lower()}_cost"]
    return max(0.0, min(1.0, score))


def regression_of(
    case: Case, causes: tuple[str, ...], fixes: tuple[str, ...], steps: Mapping[str, float]
) -> Regression:
    """Record a loss; what is sure of it decides how bad it is."""
    margin = case.rule.margin or 0.0
    loss = case.loss.check.degradation or 0.0
    sure = loss if case.loss.limit is None else case.loss.limit
    level, reason = severity(sure, margin, case.before, steps)
    if case.outcome == "breached" and sure <= margin:
        level, reason = Severity.MINOR, f"the limit {case.rule.threshold:g} is passed"
    return Regression(
        severity=level,
        possible_causes=causes,
        suggested_fixes=fixes,
        rule=reason,
        note=case.loss.why,
        **_figures(case, case.loss),
    )


def improvement_of(case: Case, causes: tuple[str, ...]) -> Improvement:
    """Record a gain."""
    note = describe_gain(case.gain)
    return Improvement(likely_causes=causes, note=note, **_figures(case, case.gain))


def _figures(case: Case, judged: Judged) -> dict[str, Any]:
    check = judged.check
    return {
        "metric": case.trial.metric,
        "current_value": case.after,
        "previous_value": case.before,
        "magnitude": abs(check.degradation or 0.0),
        "direction": case.rule.direction,
        "relative": relative(case.before, case.after),
        "interval": _interval(judged),
        "margin": check.rule.margin,
        "p_adjusted": check.adjusted,
        "basis": case.trial.source,
        "statistical": check.statistical,
    }


def verdict_of(case: Case) -> MetricVerdict:
    """Record what came of a metric, whatever it is."""
    check = case.loss.check
    is_gain = case.outcome == "improved"
    why = describe_gain(case.gain) if is_gain else case.loss.why
    if case.trial.note not in why:
        why = f"{why}; {case.trial.note}"
    return MetricVerdict(
        metric=case.trial.metric,
        current_value=case.after,
        previous_value=case.before,
        outcome=case.outcome,
        direction=case.rule.direction,
        degradation=check.degradation,
        interval=_interval(case.loss),
        margin=case.gain.check.rule.margin if is_gain else case.rule.margin,
        p=check.comparison.p if check.comparison else None,
        p_adjusted=check.adjusted,
        basis=case.trial.source,  # type: ignore[arg-type]
        statistical=check.statistical and not case.obstacle,
        method=check.comparison.method if check.comparison else "",
        note=case.obstacle or why,
        needs=case.needs,
    )


def _interval(judged: Judged) -> Interval | None:
    interval = judged.check.interval
    return interval if isinstance(interval, Interval) else None


def assess(
    cases: list[Case],
    regressions: list[Regression],
    improvements: list[Improvement],
    steps: Mapping[str, float],
) -> RegressionAssessment:
    """Count the outcomes; passed only if all that can be judged is judged and fine."""
    outcomes = [case.outcome for case in cases]
    judged = [each for each in outcomes if each != "unknown"]
    severities = [each.severity for each in regressions]
    harmless = {
        each.metric for each in regressions if each.margin and each.severity is Severity.NEGLIGIBLE
    }
    word = gate_word(each.passes(harmless) for each in cases if each.counts) if cases else None
    unknown = [] if judged else ["health_score", "passed", *([] if word else ["verdict"])]
    needs = next((case.needs for case in cases if case.needs), "--metrics or --eval")
    why = "no metric of a known direction is recorded of both versions"
    return RegressionAssessment(
        health_score=health(severities, steps) if judged else None,
        critical_regressions=severities.count(Severity.CRITICAL),
        improvements=len(improvements),
        recommendation=_recommend(cases, regressions, word),
        by_severity={each.value: severities.count(each) for each in Severity},
        checked=len(judged),
        inconclusive=outcomes.count("inconclusive"),
        unknown=outcomes.count("unknown"),
        passed=_PASSED.get(word),
        verdict=word,
        missing=tuple(Missing(field, needs, why) for field in unknown),
    )


def _recommend(cases: list[Case], regressions: list[Regression], word: GateWord | None) -> str:
    if word == "failed":
        worst = regressions[0]
        change = f"{worst.metric} {worst.previous_value:.4g} -> {worst.current_value:.4g}"
        more = f", and {len(regressions) - 1} more" if len(regressions) > 1 else ""
        return f"do not take it: {change} ({worst.severity.value}){more}"
    if word == "passed":
        counted = [case for case in cases if case.counts]
        metrics = "1 metric" if len(counted) == 1 else f"{len(counted)} metrics"
        advice = f"take it: {metrics}, none worse by more than its margin"
        untested = [case.trial.metric for case in counted if not case.loss.check.statistical]
        if not untested:
            return advice
        return f"{advice}; {', '.join(untested)}: two single numbers against a threshold, no test"
    undecided = [case for case in cases if case.outcome in {"inconclusive", "unknown"}]
    if not undecided:
        return "no verdict: nothing was recorded of both versions"
    needed = "; ".join(f"{case.trial.metric} needs {case.needs}" for case in undecided[:5])
    return f"cannot tell: {needed}"
