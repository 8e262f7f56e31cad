"""Several models on several tasks: ranks over tasks, and strengths from single examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations

from ..comparisons import Abilities, RankTest
from ..snapshots import ModelSnapshot
from ..stats.equivalence import Direction
from ..stats.ranking import friedman, standing
from .metrics import BUILTIN, Rule

LEAST_MODELS, LEAST_TASKS = 3, 2
RESAMPLES = 499
_FEW = 10  # tasks below which the law of Friedman's statistic is rough


def task_names(
    values: Mapping[str, Mapping[str, float]], rules: Mapping[str, Rule], models: int
) -> list[str]:
    """List the metrics that are tasks: the user's own, of a known direction, that all models have.

    The metrics of the contract are several views of one task, and costs are none.
    """
    return [
        metric
        for metric, each in values.items()
        if metric not in BUILTIN and rules[metric].direction and len(each) == models
        and not metric.startswith("latency_p")
    ]  # fmt: skip


def rank_test(
    values: Mapping[str, Mapping[str, float]],
    rules: Mapping[str, Rule],
    models: list[str],
    alpha: float,
) -> RankTest | str:
    """Test whether any model ranks better over tasks (Friedman 1937), or say why not."""
    tasks = task_names(values, rules, len(models))
    if len(models) < LEAST_MODELS or len(tasks) < LEAST_TASKS:
        known = f"{len(models)} models on {len(tasks)} tasks that all of them have"
        return f"{known}; it takes {LEAST_MODELS} on {LEAST_TASKS}"
    scores = [
        [values[task][model] * (1 if rules[task].direction == "higher" else -1)
         for model in models]
        for task in tasks
    ]  # fmt: skip
    found = friedman(scores, alpha)
    ranks = dict(zip(models, found.ranks, strict=True))
    note = f"{len(tasks)} tasks are few: p is rough" if len(tasks) < _FEW else ""
    return RankTest(
        mean_ranks=ranks,
        tasks=tuple(tasks),
        chi_square=found.chi2,
        f=found.f,
        p=found.p,
        critical_difference=found.critical_difference,
        level=1 - alpha,
        groups=_groups(ranks, found.critical_difference),
        note=note,
    )


def _groups(ranks: Mapping[str, float], critical: float) -> tuple[tuple[str, ...], ...]:
    """Give the largest sets of models whose mean ranks lie within the critical difference."""
    order = sorted(ranks, key=lambda name: ranks[name])
    found: list[tuple[str, ...]] = []
    for at, first in enumerate(order):
        group = tuple(name for name in order[at:] if ranks[name] - ranks[first] < critical)
        if not (found and set(group) <= set(found[-1])):
            found.append(group)
    return tuple(found)


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
    note = "; ".join(filter(None, (
        "examples of all metrics together, each as one game", found.note
    )))  # fmt: skip
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
            score = _score(means[one], means[other], rule.direction)
            found.append(((metric, name), one, other, score))
    return found


def _score(one: float, other: float, better: Direction) -> float:
    if one == other:
        return 0.5
    return float((one > other) == (better == "higher"))
