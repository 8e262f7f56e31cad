"""What changed from one version to the other: metrics, architecture, settings, weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..analyses.quality.settings import Settings
from ..analyses.quality.trials import Trial
from ..comparisons import ArchitectureChange, Change, MetricDelta, PerformanceDelta, VersionDiff
from ..records import Missing, Policy
from ..snapshots import DifferentialDebuggingConfig, ModelSnapshot
from ..sources.handed import Model
from ..stats.adjust import holm
from ..stats.decision import decide
from ..stats.scalars import NO_REPEATS
from .architecture import FIELDS
from .evaluation import Conditions
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
from .settings_diff import config_changes, metadata_changes
from .tensors import tensor_changes
from .trials import trials
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
    "better": "improved", "worse": "worse", "equivalent": "unchanged",
    "non_inferior": "inconclusive", "inconclusive": "inconclusive",
    "not_enough_data": "inconclusive",
}  # fmt: skip
_TITLES = {"parameter_count": "Parameter Count", "layer_count": "Layer Count"}


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
    """Hold two versions against each other; weights through their files where those are there."""
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
        warnings=(*conditions.warnings, *_oddities(left, right), *said),
        **when,
    )


def performance_delta(
    left: ModelSnapshot, right: ModelSnapshot, config: DifferentialDebuggingConfig, policy: Policy
) -> PerformanceDelta:
    """Give every metric's change, with direction, and an interval where there are samples."""
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
            each, rules[each.metric], settings.alpha, adjusted.get(each.metric),
            conditions.obstacle(each.metric),
        )
        for each in every
    }  # fmt: skip


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


def architecture_changes(left: ModelSnapshot, right: ModelSnapshot) -> Iterator[ArchitectureChange]:
    """Yield every field that differs, then what became of the tensors by name."""
    for field in FIELDS:
        before, after = (getattr(side.architecture, field) for side in (left, right))
        if before == after or (before is None and after is None):
            continue
        yield ArchitectureChange(
            change_type=_TITLES.get(field, field.replace("_", " ").title()),
            description=f"{field} from {_shown(before)} to {_shown(after)}",
            impact=_impact(field, before, after),
            field=field,
            left=before,
            right=after,
        )
    changes = tensor_changes(left.weights_summary, right.weights_summary)
    for kind in ("added", "removed", "reshaped", "recast", "renamed"):
        names = list(getattr(changes, kind)) if changes else []
        if names:
            some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            yield ArchitectureChange(
                change_type=f"Tensors {kind.title()}",
                description=f"{len(names)} tensors {kind}: {some}",
                field=f"tensors.{kind}",
                right=len(names),
            )


def _shown(value: int | str | None) -> str:
    return "not known" if value is None else str(value)


def _impact(field: str, before: int | str | None, after: int | str | None) -> str | None:
    """Say what arithmetic alone says of it."""
    if field != "parameter_count" or not isinstance(before, int) or not isinstance(after, int):
        return None
    return f"{after / before:.4g} times as many weights to hold and to read" if before else None


def _facts(left: ModelSnapshot, right: ModelSnapshot) -> dict[str, Any]:
    found = {"from_timestamp": left.timestamp, "to_timestamp": right.timestamp}
    for side, name in ((left, "from_commit"), (right, "to_commit")):
        if side.commit_hash:
            found[name] = side.commit_hash
    return found


def _oddities(left: ModelSnapshot, right: ModelSnapshot) -> Iterator[str]:
    if left.key == right.key:
        yield f"both sides are {left.key}"
    elif right.timestamp < left.timestamp:
        yield f"{right.key} was recorded before {left.key}"
