"""Two or more models side by side: every metric, every pair, how they are built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..comparisons import (
    Abilities,
    MetricComparison,
    ModelComparisonResult,
    PairwiseTest,
    PerformanceComparison,
    RankTest,
    StatisticalAnalysis,
)
from ..errors import IncompatibleSnapshots, InsufficientData
from ..records import Missing, Policy
from ..snapshots import DifferentialDebuggingConfig, ModelSnapshot
from .architecture import architecture_diff
from .metrics import ACCURACY, BUILTIN, LATENCY, LOSS, MEMORY, SIZE, Known, Rule, known, ordered
from .metrics import rules as rules_of
from .pairwise import Pairwise, pairwise_tests
from .pareto import pareto
from .standings import metric_comparison, ranked
from .summary import criterion_of, summarised
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
    front = pareto({name: values[name] for name in compared}, rules, list(models), criterion)
    alpha = config.significance_threshold
    ranks = rank_test(values, rules, list(models), alpha)
    strengths = abilities(models, rules, alpha, config.seed)
    when: dict[str, Any] = {} if timestamp is None else {"timestamp": timestamp}
    return ModelComparisonResult(
        models=tuple(models),
        performance_comparison=_performance(compared),
        architecture_diff=architecture_diff(models),
        statistical_analysis=_statistics(tested, ranks, strengths, config),
        summary=summarised(compared, criterion, front, tested.tests, 1 - alpha),
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
        Missing(field, "--metrics", f"{metric} is recorded of fewer than two of the models")
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


def _statistics(
    tested: Pairwise,
    ranks: RankTest | str,
    strengths: Abilities | str,
    config: DifferentialDebuggingConfig,
) -> StatisticalAnalysis:
    keyed = {_key(test): test for test in tested.tests}
    missing = [
        Missing(field, "three models on two tasks", said)
        for field, said in (("ranks", ranks), ("abilities", strengths))
        if isinstance(said, str)
    ]
    if not tested.family:
        why = "no two models have samples of the same metric: nothing can be tested"
        missing.append(Missing("p_values", "--eval, or replicates over seeds", why))
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
