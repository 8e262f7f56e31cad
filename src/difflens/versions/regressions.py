"""Did anything get worse? Every metric compared with its baseline, by the strongest evidence.

Left is the baseline, right the current version. With samples or a history the confidence limit
decides; two single numbers can only breach a limit, and are called that. What got better is found
by the same rule with the sides exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.evidence.records import Past
from difflens.diffs.quality.check import Check, judge_trials
from difflens.diffs.quality.gating import with_tests
from difflens.diffs.quality.margins import SECTION
from difflens.diffs.quality.outcomes import Outcome as Judged
from difflens.diffs.quality.outcomes import outcome
from difflens.diffs.quality.trials import Settings, Trial

from .differences import causes, fixes, observed
from .history import Course, course
from .metrics import Rule, known
from .metrics import rules as rules_of
from .pairwise import settings_of
from .records.regressions import (
    MetricHistory,
    Regression,
    RegressionDetectionResult,
    RegressionSeverity,
)
from .records.snapshots import DifferentialDebuggingConfig, ModelSnapshot
from .trials import SCALARS, Conditions, trials
from .verdicts import Case, assess, improvement_of, regression_of, thresholds_of, verdict_of

_OPPOSITE = {"higher": "lower", "lower": "higher"}


def detect_regressions(
    current: ModelSnapshot,
    baseline: ModelSnapshot,
    config: DifferentialDebuggingConfig | None = None,
    policy: Policy | None = None,
    *,
    history: Mapping[str, Iterable[Past]] | None = None,
    timestamp: str | None = None,
) -> RegressionDetectionResult:
    """Compare the current version with the baseline; `history` holds past values by metric."""
    policy = policy or Policy()
    config = _with_policy(config or DifferentialDebuggingConfig(), policy)
    courses = _courses(history or {}, current.name, _rules(baseline, {}, config, policy), config)
    present = [past for course in courses.values() for past in course.present]
    found = trials(baseline, current, settings_of(config), present)

    tested = [each for each in found if each.source != "history"]
    rules = _rules(baseline, {each.metric: each.left for each in tested}, config, policy)
    backwards = _rules(current, {each.metric: each.right for each in tested}, config, policy)
    cases = _cases(found, baseline, current, settings_of(config), rules=rules, backwards=backwards)

    steps = thresholds_of(policy)
    changes = observed(baseline, current)
    regressions = _regressions(cases, baseline, current, steps)
    improvements = [
        improvement_of(each, causes(changes)) for each in cases if each.outcome == "improved"
    ]
    used = {each.trial.metric for each in cases if each.trial.source == "history"}
    when: dict[str, Any] = {} if timestamp is None else {"timestamp": timestamp}
    return RegressionDetectionResult(
        regressions=tuple(regressions),
        improvements=tuple(improvements),
        overall_assessment=assess(cases, regressions, improvements, steps),
        current=current.key,
        baseline=baseline.key,
        verdicts=tuple(map(verdict_of, cases)),
        observed_changes=changes,
        policy=_describe_policy(rules, steps, config),
        level=1 - config.significance_threshold,
        seed=config.seed,
        histories=tuple(each.history for metric, each in courses.items() if metric in used),
        warnings=(
            *_warnings(current, baseline, [each.history for each in courses.values()]),
            *(text for each in cases for text in each.loss.check.cautions),
        ),
        **when,
    )


def _with_policy(
    config: DifferentialDebuggingConfig, policy: Policy
) -> DifferentialDebuggingConfig:
    """Use alpha and seed of the policy, so that --regression-test judges by the same."""
    alpha = policy.threshold(SECTION, "alpha", config.significance_threshold)
    seed = policy.threshold(SECTION, "seed", config.seed)
    return msgspec.structs.replace(config, significance_threshold=alpha, seed=seed)


def _rules(
    snapshot: ModelSnapshot,
    measured: Mapping[str, float],
    config: DifferentialDebuggingConfig,
    policy: Policy,
) -> dict[str, Rule]:
    """Return the rule of each metric, relative to what was measured, else to what is recorded."""
    recorded = {name: each.value for name, each in known(snapshot).items()}
    return rules_of({**recorded, **measured}, config, policy)


def _courses(
    history: Mapping[str, Iterable[Past]],
    model: str,
    rules: Mapping[str, Rule],
    config: DifferentialDebuggingConfig,
) -> dict[str, Course]:
    alpha, seed = config.significance_threshold, config.seed
    return {
        metric: course(model, metric, past, rules[metric].direction, alpha=alpha, seed=seed)
        for metric, past in history.items()
        if metric in rules
    }


def _cases(
    found: list[Trial],
    baseline: ModelSnapshot,
    current: ModelSnapshot,
    settings: Settings,
    *,
    rules: Mapping[str, Rule],
    backwards: Mapping[str, Rule],
) -> list[Case]:
    """Judge every metric that both have; what samples leave open, two numbers may still breach."""
    conditions, before, after = Conditions(baseline, current), known(baseline), known(current)
    # The left value of a trial by history is what the past led to expect, not what is recorded.
    recorded = {
        each.metric: (before[each.metric].value, after[each.metric].value)
        for each in found
        if each.source == "history"
    }
    policy = Policy(metrics={name: each.as_written for name, each in rules.items()})
    exchanged = Policy(metrics={name: _exchanged(each) for name, each in backwards.items()})
    comparable = [each for each in found if not conditions.obstacle(each.metric)]
    comparable = with_tests(comparable, policy, settings, recorded, SCALARS)
    losses = _judged(comparable, policy, settings)
    gains = _judged(comparable, exchanged, settings)
    cases = []
    for trial in {each.metric: each for each in [*found, *comparable]}.values():
        metric = trial.metric
        unjudged = outcome(Check(trial, None, MetricRule()), settings.alpha, {})
        ends = recorded[metric] if trial.source == "history" else (trial.left, trial.right)
        loss, gain = losses.get(metric, unjudged), gains.get(metric, unjudged)
        cases.append(Case(trial, rules[metric], loss, gain, conditions.obstacle(metric), *ends))
    return cases


def _judged(found: list[Trial], policy: Policy, settings: Settings) -> dict[str, Judged]:
    judged = judge_trials(found, policy, settings)
    return {each.metric: outcome(each, settings.alpha, {}) for each in judged if each.direction}


def _exchanged(rule: Rule) -> MetricRule:
    """Return the rule with the sides exchanged: what may be lost is what a gain must exceed.

    Its baseline is the current version: a margin in percent is one of that version's value. So a
    gain is a loss with the sides exchanged, from zero, too.
    """
    better = _OPPOSITE[rule.direction] if rule.direction else None
    return MetricRule(better, rule.margin)  # type: ignore[arg-type]


def _regressions(
    cases: list[Case], baseline: ModelSnapshot, current: ModelSnapshot, steps: Mapping[str, float]
) -> list[Regression]:
    """Record what got worse, the worst first."""
    likely = causes(observed(baseline, current))
    undo = fixes(baseline, current)
    worse = [each for each in cases if each.outcome in {"regressed", "breached"}]
    records = [regression_of(each, likely, undo, steps) for each in worse]
    order = list(RegressionSeverity)
    return sorted(records, key=lambda each: order.index(each.severity))


def _describe_policy(
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
            step = f"{last.before:.4g} -> {last.after:.4g} at {last.version}"
            yield f"{each.metric} changed its level: {step} (p = {last.p or 0:.2g})"
        if each.alarms and each.points and each.alarms[-1] == each.points[-1].version:
            yield f"{each.metric} drifts: its cumulative sum passed the limit at {each.alarms[-1]}"
