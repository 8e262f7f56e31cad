"""Did anything get worse? Every metric held against its baseline, by the strongest evidence.

Left is the baseline, right the current version. With samples or a history the confidence limit
decides; two single numbers can only breach a limit, and are called that. What got better is found
by the same rule turned round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..analyses.quality.check import Check
from ..analyses.quality.checks import held
from ..analyses.quality.outcomes import Outcome as Judged
from ..analyses.quality.outcomes import outcome
from ..analyses.quality.trials import Trial
from ..evidences import Past
from ..records import Interval, MetricRule, Missing, Policy
from ..regression_results import (
    Basis,
    Improvement,
    MetricHistory,
    MetricVerdict,
    Outcome,
    Regression,
    RegressionAssessment,
    RegressionDetectionResult,
    RegressionSeverity,
)
from ..snapshots import DifferentialDebuggingConfig, ModelSnapshot
from ..stats.scalars import NO_REPEATS
from .causes import causes, fixes, observed
from .evaluation import Conditions
from .history import course
from .metrics import Known, Rule, known, relative
from .metrics import rules as rules_of
from .pairwise import settings_of
from .severity import health, in_force, severity
from .trials import SCALARS, trials

_OPPOSITE = {"higher": "lower", "lower": "higher"}
_ORDER = list(RegressionSeverity)
_WORDS: dict[str, Outcome] = {
    "regressed": "regressed", "breached": "breached", "ok": "ok", "within_limit": "ok",
    "not_found": "inconclusive", "inconclusive": "inconclusive", "unknown": "unknown",
}  # fmt: skip


class _Case(NamedTuple):
    """One metric: how its rule judges it, how the rule turned round does, and what forbids both."""

    trial: Trial
    rule: Rule
    loss: Judged
    gain: Judged
    obstacle: str
    before: float
    after: float

    @property
    def word(self) -> Outcome:
        """What came of it."""
        if self.obstacle:
            return "unknown"
        if self.loss.passed is False:
            return _WORDS[self.loss.word]
        return "improved" if self.gain.passed is False else _WORDS[self.loss.word]


def detect_regressions(
    current: ModelSnapshot,
    baseline: ModelSnapshot,
    config: DifferentialDebuggingConfig | None = None,
    policy: Policy | None = None,
    *,
    history: Mapping[str, Iterable[Past]] | None = None,
    timestamp: str | None = None,
) -> RegressionDetectionResult:
    """Hold the current version against the baseline; `history` are past values by metric."""
    config, policy = config or DifferentialDebuggingConfig(), policy or Policy()
    steps = in_force(policy)
    values = {name: each.value for name, each in known(baseline).items()}
    rules = rules_of(values, config, policy)
    courses = {
        metric: course(current.name, metric, past, rules[metric].direction,
                       alpha=config.significance_threshold, seed=config.seed)
        for metric, past in (history or {}).items()
        if metric in rules
    }  # fmt: skip
    past = [each for found in courses.values() for each in found.present]
    cases = list(_cases(current, baseline, config, rules, past))
    changes = observed(baseline, current)
    regressions = sorted(
        (_regression(each, changes, baseline, current, steps) for each in cases
         if each.word in {"regressed", "breached"}),
        key=lambda each: _ORDER.index(each.severity),
    )  # fmt: skip
    improvements = [_improvement(each, changes) for each in cases if each.word == "improved"]
    used = {each.trial.metric for each in cases if each.trial.source == "history"}
    when: dict[str, Any] = {} if timestamp is None else {"timestamp": timestamp}
    return RegressionDetectionResult(
        regressions=tuple(regressions),
        improvements=tuple(improvements),
        overall_assessment=_assessed(cases, regressions, improvements, steps),
        current=current.key,
        baseline=baseline.key,
        verdicts=tuple(map(_verdict, cases)),
        observed_changes=changes,
        policy=_policy(rules, steps, config),
        level=1 - config.significance_threshold,
        seed=config.seed,
        histories=tuple(each.history for metric, each in courses.items() if metric in used),
        warnings=tuple(_warnings(current, baseline, [each.history for each in courses.values()])),
        **when,
    )


def _cases(
    current: ModelSnapshot,
    baseline: ModelSnapshot,
    config: DifferentialDebuggingConfig,
    rules: Mapping[str, Rule],
    past: list[Past],
) -> Iterator[_Case]:
    """Judge every metric that both have; what samples leave open, two numbers may still breach."""
    settings, conditions = settings_of(config), Conditions(baseline, current)
    recorded = known(baseline), known(current)
    ours = {name: each.plain for name, each in rules.items()}
    found = trials(baseline, current, settings, past)
    open_ones = [each for each in found if not conditions.obstacle(each.metric)]
    silent = {name for name, each in _judged(open_ones, ours, config).items() if _is_silent(each)}
    found = [_bare(each, recorded) if each.metric in silent else each for each in found]
    open_ones = [each for each in found if not conditions.obstacle(each.metric)]
    losses = _judged(open_ones, ours, config)
    gains = _judged(open_ones, {name: _turned(each) for name, each in rules.items()}, config)
    for trial in found:
        name = trial.metric
        unjudged = outcome(Check(trial, None, MetricRule()), settings.alpha, {})
        before, after = trial.left, trial.right
        if trial.source == "history":  # there left is what the past led to expect
            before, after = (side[name].value for side in recorded)
        yield _Case(
            trial, rules[name], losses.get(name, unjudged), gains.get(name, unjudged),
            conditions.obstacle(name), before, after,
        )  # fmt: skip


def _is_silent(judged: Judged) -> bool:
    """Are there samples, and yet nothing to test: too few, or none that vary?"""
    return judged.word == "unknown" and judged.check.statistical


def _bare(trial: Trial, recorded: tuple[Mapping[str, Known], Mapping[str, Known]]) -> Trial:
    """Take a metric by its two values alone, and say what its samples lack."""
    values = trial.left, trial.right
    if trial.source == "history":
        values = recorded[0][trial.metric].value, recorded[1][trial.metric].value
    note = "; ".join(filter(None, (trial.note, "its samples allow no test", NO_REPEATS)))
    return Trial(trial.metric, SCALARS, *values, note)


def _judged(
    found: list[Trial], metrics: dict[str, MetricRule], config: DifferentialDebuggingConfig
) -> dict[str, Judged]:
    settings = settings_of(config)
    judged = held(found, Policy(metrics=metrics), settings)
    return {each.metric: outcome(each, settings.alpha, {}) for each in judged if each.direction}


def _once(why: str, note: str) -> str:
    """Join two remarks of which the first may hold the second."""
    return why if note in why else "; ".join(filter(None, (why, note)))


def _turned(rule: Rule) -> MetricRule:
    """Turn a rule round: the same margin, the other way."""
    better = _OPPOSITE[rule.direction] if rule.direction else None
    return MetricRule(better, rule.margin)  # type: ignore[arg-type]


def _regression(
    case: _Case,
    changes: tuple[str, ...],
    baseline: ModelSnapshot,
    current: ModelSnapshot,
    steps: Mapping[str, float],
) -> Regression:
    check = case.loss.check
    loss = check.degradation or 0.0
    sure = case.loss.limit if case.loss.limit is not None else loss
    named, rule = severity(sure, case.rule.margin or 0.0, case.before, steps)
    return Regression(
        severity=named,
        possible_causes=causes(changes),
        suggested_fixes=fixes(baseline, current),
        rule=rule,
        **_shared(case, case.loss, loss),
    )


def _improvement(case: _Case, changes: tuple[str, ...]) -> Improvement:
    gain = case.gain.check.degradation or 0.0
    return Improvement(likely_causes=causes(changes), **_shared(case, case.gain, gain))


def _shared(case: _Case, judged: Judged, magnitude: float) -> dict[str, Any]:
    check = judged.check
    return {
        "metric": case.trial.metric,
        "current_value": case.after,
        "previous_value": case.before,
        "magnitude": abs(magnitude),
        "direction": case.rule.direction,
        "relative": relative(case.before, case.after),
        "interval": _interval(check),
        "margin": case.rule.margin,
        "p_adjusted": check.adjusted,
        "basis": _basis(case.trial),
        "statistical": check.statistical,
        "note": judged.why if judged is case.loss else _as_gain(judged.why),
    }


def _as_gain(why: str) -> str:
    """Tell what the rule said that was turned round."""
    return why.replace("worse", "better").replace("loss", "gain").replace("allowed", "the margin")


def _verdict(case: _Case) -> MetricVerdict:
    check = case.loss.check
    made = check.comparison
    why = _as_gain(case.gain.why) if case.word == "improved" else case.loss.why
    return MetricVerdict(
        metric=case.trial.metric,
        current_value=case.after,
        previous_value=case.before,
        outcome=case.word,
        direction=case.rule.direction,
        degradation=check.degradation,
        interval=_interval(check),
        margin=case.rule.margin,
        p=made.p if made else None,
        p_adjusted=check.adjusted,
        basis=_basis(case.trial),
        statistical=check.statistical and not case.obstacle,
        method=made.method if made else "",
        note=case.obstacle or _once(why, case.trial.note),
    )


def _interval(check: Check) -> Interval | None:
    found = check.interval
    return found if isinstance(found, Interval) else None


def _basis(trial: Trial) -> Basis:
    return trial.source  # type: ignore[return-value]


def _assessed(
    cases: list[_Case],
    regressions: list[Regression],
    improvements: list[Improvement],
    steps: Mapping[str, float],
) -> RegressionAssessment:
    """Count the verdicts; passed only where all that can be judged is judged and fine."""
    words = [case.word for case in cases]
    judged = [word for word in words if word != "unknown"]
    counts = {name.value: 0 for name in _ORDER}
    for each in regressions:
        counts[each.severity.value] += 1
    blocked = [case for case in cases if case.obstacle]
    passed = None if not judged or blocked or "inconclusive" in words else True
    if any(each.severity is not RegressionSeverity.NEGLIGIBLE for each in regressions):
        passed = False
    why = "no metric of a known direction is recorded of both versions"
    return RegressionAssessment(
        health_score=health([each.severity for each in regressions], steps) if judged else None,
        critical_regressions=counts[RegressionSeverity.CRITICAL.value],
        improvements=len(improvements),
        recommendation=_recommendation(cases, regressions, passed),
        by_severity=counts,
        checked=len(judged),
        inconclusive=words.count("inconclusive"),
        unknown=words.count("unknown"),
        passed=passed,
        missing=() if judged else (Missing("health_score", "--metrics or --eval", why),),
    )


def _recommendation(cases: list[_Case], regressions: list[Regression], passed: bool | None) -> str:
    if passed is False:
        worst = regressions[0]
        told = f"{worst.metric} {worst.previous_value:.4g} -> {worst.current_value:.4g}"
        more = f", and {len(regressions) - 1} more" if len(regressions) > 1 else ""
        return f"do not take it: {told} ({worst.severity.value}){more}"
    if passed:
        return f"take it: {len(cases)} metrics, none worse by more than its margin"
    lacking = [case.trial.metric for case in cases if case.word in {"inconclusive", "unknown"}]
    if not lacking:
        return "no verdict: nothing was recorded of both versions"
    return f"no verdict: more evidence is needed of {', '.join(lacking[:5])}"


def _policy(
    rules: Mapping[str, Rule], steps: Mapping[str, float], config: DifferentialDebuggingConfig
) -> dict[str, Any]:
    return {
        "alpha": config.significance_threshold,
        "thresholds": dict(steps),
        "metrics": {
            name: {"direction": each.direction, "margin": each.margin, "why": each.why}
            for name, each in rules.items()
        },
    }


def _warnings(
    current: ModelSnapshot, baseline: ModelSnapshot, histories: list[MetricHistory]
) -> Iterator[str]:
    yield from Conditions(baseline, current).warnings
    if current.key == baseline.key:
        yield f"both sides are {current.key}: nothing can have changed"
    elif current.timestamp < baseline.timestamp:
        yield f"the current {current.key} is older than the baseline {baseline.key}"
    gone = [name for name in known(baseline) if name not in known(current)]
    if gone:
        yield f"{', '.join(gone)}: recorded of the baseline only, so not judged"
    for each in histories:
        if each.change_points:
            last = each.change_points[-1]
            told = f"{last.before:.4g} -> {last.after:.4g} at {last.version}"
            yield f"{each.metric} changed its level: {told} (p = {last.p or 0:.2g})"
        if each.alarms and each.points and each.alarms[-1] == each.points[-1].version:
            yield f"{each.metric} drifts: its cumulative sum passed the limit at {each.alarms[-1]}"
