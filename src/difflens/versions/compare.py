"""Two or more models side by side: every metric, every pair, how they are built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from difflens.core.errors import IncompatibleSnapshots, InsufficientData
from difflens.core.findings import Missing
from difflens.core.policy import Policy
from difflens.diffs.quality.margins import is_accuracy, is_loss
from difflens.models.anatomy.roles import is_parameter, role

from .differences import FIELDS, tensor_changes
from .metrics import ACCURACY, BUILTIN, LATENCY, LOSS, MEMORY, SIZE, Known, Rule, known, ordered
from .metrics import rules as rules_of
from .pairwise import Pairwise, pairwise_tests
from .records.comparisons import (
    Abilities,
    ArchitectureDiff,
    MetricComparison,
    ModelComparisonResult,
    PairwiseTest,
    PerformanceComparison,
    RankTest,
    StatisticalAnalysis,
    TensorChanges,
)
from .records.snapshots import DifferentialDebuggingConfig, ModelSnapshot, WeightsSummary
from .standings import equivalents, metric_comparison, pareto, ranked
from .summary import criterion_of, summarise
from .tasks import abilities, rank_test

_FIELDS = {
    "accuracy_comparison": ACCURACY,
    "loss_comparison": LOSS,
    "latency_comparison": LATENCY,
    "memory_comparison": MEMORY,
    "size_comparison": SIZE,
}
Values = Mapping[str, Mapping[str, float]]


def compare(
    models: Mapping[str, ModelSnapshot],
    config: DifferentialDebuggingConfig | None = None,
    policy: Policy | None = None,
    *,
    timestamp: str | None = None,
) -> ModelComparisonResult:
    """Compare models by the names they are called; the first named is the base of differences."""
    config = config or DifferentialDebuggingConfig()
    _refuse(models)
    facts = {name: known(model) for name, model in models.items()}
    values = _values(facts)
    rules = _rules(values, config, policy or Policy())
    tested = pairwise_tests(models, rules, config)
    compared = {
        metric: metric_comparison(
            metric, each, rules[metric], tested.tests, tested.sources.get(metric, "scalars")
        )
        for metric, each in values.items()
        if len(each) > 1
    }
    criterion = criterion_of(compared)
    same = {
        name: equivalents(test for test in tested.tests if test.metric == name) for name in compared
    }
    front = pareto({name: values[name] for name in compared}, rules, list(models), criterion, same)
    alpha = config.significance_threshold
    ranks = rank_test(values, rules, list(models), alpha)
    strengths = abilities(models, rules, alpha, config.seed)
    when: dict[str, Any] = {} if timestamp is None else {"timestamp": timestamp}
    return ModelComparisonResult(
        models=tuple(models),
        performance_comparison=_performance(compared),
        architecture_diff=architecture_diff(models),
        statistical_analysis=_statistics(tested, ranks, strengths, config),
        summary=summarise(compared, criterion, front, tested.tests, 1 - alpha),
        warnings=(*tested.warnings, *_notes(facts)),
        **when,
    )


def _refuse(models: Mapping[str, ModelSnapshot]) -> None:
    if len(models) < 2:
        raise InsufficientData(f"{len(models)} models; a comparison takes two or more")
    seen: dict[str, str] = {}
    for name, model in models.items():
        if model.key in seen:
            said = f"{seen[model.key]} and {name} are the same snapshot, {model.key}"
            raise IncompatibleSnapshots(said)
        seen[model.key] = name


def _values(facts: Mapping[str, Mapping[str, Known]]) -> dict[str, dict[str, float]]:
    """Turn the metrics of each model into the models of each metric."""
    names = ordered({metric for each in facts.values() for metric in each})
    return {
        metric: {model: each[metric].value for model, each in facts.items() if metric in each}
        for metric in names
    }


def _rules(values: Values, config: DifferentialDebuggingConfig, policy: Policy) -> dict[str, Rule]:
    """Judge each metric by its best value: what a percent is of."""
    first = {metric: next(iter(each.values())) for metric, each in values.items()}
    found = rules_of(first, config, policy)
    best = {}
    for metric, each in values.items():
        order = ranked(each, found[metric])
        best[metric] = each[order[0][0]] if order else first[metric]
    return rules_of(best, config, policy)


def _performance(compared: Mapping[str, MetricComparison]) -> PerformanceComparison:
    missing = [
        Missing(field, f"{metric} in --metrics", _why_absent(metric, compared))
        for field, metric in _FIELDS.items()
        if metric not in compared
    ]
    further = set(BUILTIN) - set(_FIELDS.values())
    return PerformanceComparison(
        **{field: compared.get(metric) for field, metric in _FIELDS.items()},
        custom_comparisons={n: each for n, each in compared.items() if n not in BUILTIN},
        further_comparisons={n: each for n, each in compared.items() if n in further},
        missing=tuple(missing),
    )


def _why_absent(metric: str, compared: Mapping[str, MetricComparison]) -> str:
    """Say why a built-in metric is not compared, and what of its kind is."""
    why = f"{metric} is recorded of fewer than two of the models"
    is_like = {ACCURACY: is_accuracy, LOSS: is_loss}.get(metric)
    others = [name for name in compared if is_like and name not in BUILTIN and is_like(name)]
    return f"{why}; {', '.join(others)} is compared beside it" if others else why


def _statistics(
    tested: Pairwise,
    ranks: RankTest | str,
    strengths: Abilities | str,
    config: DifferentialDebuggingConfig,
) -> StatisticalAnalysis:
    keyed = {_key(test): test for test in tested.tests}
    missing = [
        Missing(field, needs, said)
        for field, needs, said in (
            ("ranks", "three models and two metrics of your own that all of them have", ranks),
            ("abilities", "three models with --eval on the same examples", strengths),
        )
        if isinstance(said, str)
    ]
    if not tested.family:
        needs = "--eval, or replicates over seeds"
        why = "no two models have samples of the same metric: nothing can be tested"
        if tested.sources:
            needs = "samples that vary, five a side or more"
            why = f"too few samples, or none that vary, of {', '.join(tested.sources)}"
        missing.append(Missing("p_values", needs, why))
    return StatisticalAnalysis(
        p_values={key: test.p_adjusted for key, test in keyed.items()},
        effect_sizes={key: test.effect for key, test in keyed.items()},
        confidence_intervals={key: _ends(test) for key, test in keyed.items()},
        significance_summary={key: test.significant for key, test in keyed.items()},
        tests=tested.tests,
        ranks=None if isinstance(ranks, str) else ranks,
        abilities=None if isinstance(strengths, str) else strengths,
        correction=config.correction,
        family_size=tested.family,
        level=1 - config.significance_threshold,
        seed=config.seed,
        missing=tuple(missing),
    )


def _key(test: PairwiseTest) -> str:
    return f"{test.metric}: {test.left} vs {test.right}"


def _ends(test: PairwiseTest) -> tuple[float, float] | None:
    found = test.interval
    if found is None or found.low is None or found.high is None:
        return None
    return found.low, found.high


def _notes(facts: Mapping[str, Mapping[str, Known]]) -> list[str]:
    return [
        f"{model}, {metric}: {each.note}"
        for model, known_of in facts.items()
        for metric, each in known_of.items()
        if each.note
    ]


NOTABLE = 0.01  # of the base's parameters: a smaller difference gets no sentence
_NEEDS = "--weights or --config"


def architecture_diff(models: Mapping[str, ModelSnapshot]) -> ArchitectureDiff:
    """Compare every field of every model with the first, and every pair as a whole."""
    base, *others = models
    fields = {
        field: {name: getattr(model.architecture, field) for name, model in models.items()}
        for field in FIELDS
    }
    similarities: dict[str, dict[str, float | None]] = {name: {name: 1.0} for name in models}
    for left, right in combinations(models, 2):
        alike = similarity(models[left], models[right])
        similarities[left][right] = similarities[right][left] = alike
    pairs = [similarities[left][right] for left, right in combinations(models, 2)]
    known = [each for each in pairs if each is not None]
    tensors = {name: _tensors(models[base], models[name]) for name in others}
    return ArchitectureDiff(
        parameter_diff=_gaps(fields["parameter_count"], base),
        layer_diff=_gaps(fields["layer_count"], base),
        similarity_score=sum(known) / len(known) if known else None,
        notable_differences=tuple(
            sentence for name in others for sentence in _sentences(base, name, models, tensors)
        ),
        base=base,
        fields=fields,
        similarities=similarities,
        tensors={name: each for name, each in tensors.items() if each is not None},
        missing=_missing(fields, known),
    )


def similarity(left: ModelSnapshot, right: ModelSnapshot) -> float | None:
    """Say how alike two models are built, from 0 to 1; None if nothing is known of them.

    Of the tensors, where both list them: Σ min(parameters) / Σ max(parameters) over roles and
    shapes. Else the mean over fields of min/max, 0/0 being 1 and a field of one side only 0.
    """
    counts = [_parameters(side.weights_summary) for side in (left, right)]
    if all(counts):
        return (counts[0] & counts[1]).total() / (counts[0] | counts[1]).total()
    pairs = [
        (getattr(left.architecture, field), getattr(right.architecture, field)) for field in FIELDS
    ]
    ratios = [_ratio(one, other) for one, other in pairs if one is not None or other is not None]
    return sum(ratios) / len(ratios) if ratios else None


def _parameters(weights: WeightsSummary) -> Counter[tuple[str, tuple[int, ...]]]:
    counts: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for each in weights.tensors:
        if is_parameter(each.name, each.dtype) and each.count:
            counts[role(each.name), each.shape] += each.count
    return counts


def _ratio(left: int | str | None, right: int | str | None) -> float:
    if isinstance(left, int) and isinstance(right, int):
        return 1.0 if left == right else min(left, right) / max(left, right)
    return float(left == right)


def _gaps(values: Mapping[str, int | str | None], base: str) -> dict[str, int | None]:
    first = values[base]
    return {
        name: value - first if isinstance(value, int) and isinstance(first, int) else None
        for name, value in values.items()
        if name != base
    }


def _tensors(base: ModelSnapshot, other: ModelSnapshot) -> TensorChanges | None:
    return tensor_changes(base.weights_summary, other.weights_summary)


def _sentences(
    base: str,
    name: str,
    models: Mapping[str, ModelSnapshot],
    tensors: Mapping[str, TensorChanges | None],
) -> list[str]:
    """Name what differs, with both numbers."""
    before, after = models[base].architecture, models[name].architecture
    found = []
    for field in FIELDS:
        left, right = getattr(before, field), getattr(after, field)
        if left is None or right is None or left == right:
            continue
        small = field == "parameter_count" and abs(right - left) <= NOTABLE * left
        if not small:
            found.append(f"{name} against {base}: {field} {left} -> {right}")
    changes = tensors[name]
    counts = {
        kind: len(getattr(changes, kind))
        for kind in ("added", "removed", "reshaped", "recast", "renamed")
        if changes and getattr(changes, kind)
    }
    if counts:
        told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        found.append(f"{name} against {base}: tensors {told}")
    return found


def _missing(
    fields: Mapping[str, Mapping[str, int | str | None]], known: list[float]
) -> tuple[Missing, ...]:
    found = [
        Missing(what, _NEEDS, f"{field} is not known of every model")
        for what, field in (("parameter_diff", "parameter_count"), ("layer_diff", "layer_count"))
        if None in fields[field].values()
    ]
    if not known:
        found.append(Missing("similarity_score", _NEEDS, "nothing is known of the architectures"))
    return tuple(found)
