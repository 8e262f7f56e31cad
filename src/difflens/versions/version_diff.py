"""What changed from one version to the other: metrics, architecture, settings, weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from difflens.core.findings import Missing
from difflens.core.policy import Policy
from difflens.diffs.quality.trials import Settings, Trial
from difflens.models.opening import Model
from difflens.stats.comparison import NO_REPEATS
from difflens.stats.decision import decide, holm

from .differences import architecture_changes, config_changes, metadata_changes
from .metrics import (
    ACCURACY,
    BUILTIN,
    LATENCY,
    LOSS,
    MEMORY,
    SIZE,
    Known,
    Rule,
    known,
    ordered,
    relative,
)
from .metrics import rules as rules_of
from .pairwise import interval_of, settings_of
from .records.comparisons import Change, MetricDelta, PerformanceDelta, VersionDiff
from .records.snapshots import DifferentialDebuggingConfig, ModelSnapshot
from .trials import Conditions, trials
from .weight_changes import weight_changes

_DELTAS = {
    "accuracy_delta": ACCURACY,
    "loss_delta": LOSS,
    "latency_delta": LATENCY,
    "memory_delta": MEMORY,
    "size_delta": SIZE,
    "training_time_delta": "training_time_s",
}
_WORDS: dict[str, Change] = {
    "better": "improved",
    "worse": "worse",
    "equivalent": "unchanged",
    "non_inferior": "inconclusive",
    "inconclusive": "inconclusive",
    "not_enough_data": "inconclusive",
}


def version_diff(
    left: ModelSnapshot,
    right: ModelSnapshot,
    config: DifferentialDebuggingConfig | None = None,
    policy: Policy | None = None,
    *,
    left_weights: Model | None = None,
    right_weights: Model | None = None,
    timestamp: str | None = None,
) -> VersionDiff:
    """Compare two versions; weights are read from their files where those still exist."""
    config = config or DifferentialDebuggingConfig()
    conditions = Conditions(left, right)
    moved, said = weight_changes(
        left.weights_summary, right.weights_summary, left_weights, right_weights
    )
    missing = []
    delta = None
    if config.enable_performance_delta:
        delta = performance_delta(left, right, config, policy or Policy())
    else:
        why = "enable_performance_delta is false"
        missing.append(Missing("performance_delta", "enable_performance_delta", why))
    when: dict[str, Any] = {} if timestamp is None else {"timestamp": timestamp}
    return VersionDiff(
        from_version=left.version,
        to_version=right.version,
        performance_delta=delta,
        architecture_changes=tuple(architecture_changes(left, right)),
        config_changes=config_changes(left.training_config, right.training_config),
        weight_changes=moved,
        from_model=left.key,
        to_model=right.key,
        metadata_changes=metadata_changes(left, right),
        facts=_facts(left, right),
        missing=tuple(missing),
        warnings=(*conditions.warnings, *_warnings(left, right), *said),
        **when,
    )


def performance_delta(
    left: ModelSnapshot, right: ModelSnapshot, config: DifferentialDebuggingConfig, policy: Policy
) -> PerformanceDelta:
    """Return every metric's change, with direction, and an interval where there are samples."""
    sides = known(left), known(right)
    shared = {name: each.value for name, each in sides[0].items() if name in sides[1]}
    rules = rules_of(shared, config, policy)
    found = deltas_of(left, right, rules, settings_of(config))
    for name in ordered({*sides[0], *sides[1]} - set(found)):
        found[name] = _one_sided(name, *sides)
    gaps = {name: each.difference for name, each in found.items() if each.difference is not None}
    return PerformanceDelta(
        **{field: gaps.get(metric) for field, metric in _DELTAS.items()},
        custom_deltas={name: gap for name, gap in gaps.items() if name not in BUILTIN},
        deltas={name: found[name] for name in ordered(found)},
        missing=tuple(
            Missing(field, "--metrics", f"{metric} is not recorded of both versions")
            for field, metric in _DELTAS.items()
            if metric not in gaps
        ),
    )


def deltas_of(
    left: ModelSnapshot, right: ModelSnapshot, rules: Mapping[str, Rule], settings: Settings
) -> dict[str, MetricDelta]:
    """Compare every metric that both versions have; p-values are adjusted over all of them."""
    conditions = Conditions(left, right)
    every = trials(left, right, settings)
    open_trials = [each for each in every if not conditions.obstacle(each.metric)]
    made = {each.metric: each.compare(1 - settings.alpha) for each in open_trials if each.compare}
    ps = {metric: each.p for metric, each in made.items() if each.p is not None}
    adjusted = dict(zip(ps, holm(list(ps.values())), strict=True))
    return {
        each.metric: _delta(
            each,
            rules[each.metric],
            settings.alpha,
            adjusted.get(each.metric),
            conditions.obstacle(each.metric),
        )
        for each in every
    }


def _delta(
    trial: Trial, rule: Rule, alpha: float, adjusted: float | None, obstacle: str
) -> MetricDelta:
    made = trial.compare(1 - alpha) if trial.compare and not obstacle else None
    gap = made.difference if made else trial.right - trial.left
    change, note = _change(gap, rule), obstacle or trial.note or NO_REPEATS
    significant = None
    if obstacle:
        change = "not_testable"
    elif made is not None:
        decision = decide(made, rule.direction, rule.margin or None, alpha, trial.least)
        change = _WORDS[decision.word]
        if decision.word != "not_enough_data" and adjusted is not None:
            significant = adjusted < alpha
            if change in {"improved", "worse"} and not significant:
                change = "inconclusive"
        if rule.direction is None and significant:
            change = "changed"
        note = "; ".join(filter(None, (decision.reason, trial.note)))
    return MetricDelta(
        metric=trial.metric,
        left=trial.left,
        right=trial.right,
        difference=gap,
        relative=relative(trial.left, trial.right),
        direction=rule.direction,
        margin=rule.margin,
        change=change,
        interval=interval_of(made) if made else None,
        p=made.p if made else None,
        significant=significant,
        evidence=trial.source,
        note=note,
    )


def _change(gap: float, rule: Rule) -> Change:
    """Say what two single numbers say: beyond the margin or not, noise or not unknown."""
    if rule.direction is None:
        return "changed" if gap else "unchanged"
    if not gap or abs(gap) <= (rule.margin or 0.0):
        return "unchanged"
    return "improved" if (gap > 0) == (rule.direction == "higher") else "worse"


def _one_sided(name: str, left: Mapping[str, Known], right: Mapping[str, Known]) -> MetricDelta:
    side = "left" if name in left else "right"
    return MetricDelta(
        metric=name,
        left=left[name].value if name in left else None,
        right=right[name].value if name in right else None,
        note=f"recorded of the {side} version only",
    )


def _facts(left: ModelSnapshot, right: ModelSnapshot) -> dict[str, Any]:
    found = {"from_timestamp": left.timestamp, "to_timestamp": right.timestamp}
    for side, name in ((left, "from_commit"), (right, "to_commit")):
        if side.commit_hash:
            found[name] = side.commit_hash
    return found


def _warnings(left: ModelSnapshot, right: ModelSnapshot) -> Iterator[str]:
    if left.key == right.key:
        yield f"both sides are {left.key}"
    elif right.timestamp < left.timestamp:
        yield f"{right.key} was recorded before {left.key}"
