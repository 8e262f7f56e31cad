"""Several models on several tasks: ranks over tasks, and strengths from single examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations

from difflens.stats.ranking import standing

from .metrics import BUILTIN, Rule
from .records.comparisons import Abilities, RankTest
from .records.snapshots import ModelSnapshot

LEAST_MODELS, LEAST_TASKS = 3, 2
RESAMPLES = 499
_UNTESTED = (
    "metrics of one model are not independent tasks: ranks are shown, nothing is tested over them"
)


def task_names(
    values: Mapping[str, Mapping[str, float]], rules: Mapping[str, Rule], models: int
) -> list[str]:
    """List the metrics that are tasks: the user's own, of a known direction, that all models have.

    The built-in metrics are several views of one task, and costs are none.
    """
    return [
        metric
        for metric, each in values.items()
        if metric not in BUILTIN
        and rules[metric].direction
        and len(each) == models
        and not metric.startswith("latency_p")
    ]


def rank_test(
    values: Mapping[str, Mapping[str, float]],
    rules: Mapping[str, Rule],
    models: list[str],
    alpha: float,
) -> RankTest | str:
    """Rank the models over the metrics that all of them have, or say why not.

    Nothing is tested: metrics of one model are views of the same answers, not the independent
    tasks that Friedman's test and Nemenyi's critical difference are about.
    """
    tasks = task_names(values, rules, len(models))
    if len(models) < LEAST_MODELS or len(tasks) < LEAST_TASKS:
        counted = f"{len(tasks)} ({', '.join(tasks)})" if tasks else "none"
        return (
            f"{len(models)} models, and of the metrics that all of them have {counted} counts as a"
            f" task; it takes {LEAST_MODELS} models and {LEAST_TASKS} tasks; val_accuracy, val_loss"
            " and the like are views of one task"
        )
    scores = [
        [values[task][model] * (1 if rules[task].direction == "higher" else -1) for model in models]
        for task in tasks
    ]
    ranks = [_ranks(each) for each in scores]
    means = [sum(column) / len(tasks) for column in zip(*ranks, strict=True)]
    return RankTest(
        mean_ranks=dict(zip(models, means, strict=True)),
        tasks=tuple(tasks),
        level=1 - alpha,
        note=_UNTESTED,
    )


def _ranks(scores: list[float]) -> list[float]:
    """Rank scores, the highest first; equal scores share the mean of their places.

    >>> _ranks([0.5, 0.9, 0.5])
    [2.5, 1.0, 2.5]
    """
    return [
        sum(other > each for other in scores) + (sum(other == each for other in scores) + 1) / 2
        for each in scores
    ]


def abilities(
    models: Mapping[str, ModelSnapshot], rules: Mapping[str, Rule], alpha: float, seed: int
) -> Abilities | str:
    """Estimate strengths from who did better on each example (Bradley & Terry 1952)."""
    if len(models) < LEAST_MODELS:
        return f"{len(models)} models; it takes {LEAST_MODELS}"
    verdicts = _verdicts(models, rules)
    if not verdicts:
        return "no examples that two of the models answered"
    found = standing(verdicts, len(models), resamples=RESAMPLES, seed=seed, level=1 - alpha)
    if found is None:
        return "the examples do not connect the models: some never lose to the others"
    names = list(models)
    note = "; ".join(
        filter(None, ("examples of all metrics together, each as one game", found.note))
    )
    return Abilities(
        abilities=dict(zip(names, found.abilities, strict=True)),
        low=dict(zip(names, found.low, strict=True)),
        high=dict(zip(names, found.high, strict=True)),
        apart=tuple((names[one], names[other]) for one, other in found.apart),
        level=found.level,
        comparisons=len(verdicts),
        note=note,
    )


def _verdicts(
    models: Mapping[str, ModelSnapshot], rules: Mapping[str, Rule]
) -> list[tuple[object, int, int, float]]:
    """Let every two models that answered an example play one game: 1, 0 or 0.5 for a tie."""
    scores: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for place, model in enumerate(models.values()):
        for example in model.evals:
            scores[example.metric, example.id][place].append(example.score)
    found: list[tuple[object, int, int, float]] = []
    for (metric, name), answers in scores.items():
        rule = rules.get(metric)
        if rule is None or rule.direction is None:
            continue
        means = {place: sum(each) / len(each) for place, each in answers.items()}
        for one, other in combinations(sorted(means), 2):
            gap = means[one] - means[other]
            score = float((gap > 0) == (rule.direction == "higher")) if gap else 0.5
            found.append(((metric, name), one, other, score))
    return found
