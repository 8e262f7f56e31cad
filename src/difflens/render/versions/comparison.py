"""The layout of `compare`: every metric, who is told apart, trade-offs, how they are built."""

from __future__ import annotations

from collections.abc import Iterator

from difflens.versions.records.comparisons import (
    Abilities,
    ArchitectureDiff,
    MetricComparison,
    ModelComparisonResult,
    PairwiseTest,
    ParetoPoint,
    PerformanceComparison,
    RankTest,
    StatisticalAnalysis,
)

from ..document.document import Document, Line, Name, Part, Table, part, table, unknown
from ..document.numbers import plural
from ..document.values import answer, interval, moment, probability, signed, value
from .drawings import pareto_drawings, rank_drawing

_MOST_COLUMNS = 5
_FIXED = {
    "accuracy_comparison": "val_accuracy",
    "loss_comparison": "val_loss",
    "latency_comparison": "inference_latency_ms",
    "memory_comparison": "memory_usage_mb",
    "size_comparison": "model_size_mb",
}


def comparison(result: ModelComparisonResult) -> Document:
    """Lay out a comparison."""
    metrics = dict(_metrics(result.performance_comparison))
    summary, tested = result.summary, result.statistical_analysis
    return Document(
        title="compare",
        opening=f"compare: {', '.join(result.models)}",
        verdict=_verdict(result),
        word=f"Best by {summary.criterion}" if summary.best_model else "No best model",
        mood="good" if summary.separated else "plain",
        parts=(
            *part("Metrics", rows=_values(metrics, result.models)),
            *part("Who is best", rows=_best(metrics)),
            *part("Findings", [Line(text) for text in summary.key_findings]),
            *part("Recommendations", [Line(text) for text in summary.recommendations]),
            *part("Tests", rows=_tests(tested.tests)),
            *_untested(tested),
            *ranking(tested.ranks),
            *_abilities(tested.abilities),
            *trade_offs(summary.pareto, tuple(summary.objectives)),
            *_architecture(result.architecture_diff, result.models),
            *unknown(
                result.performance_comparison.missing,
                result.architecture_diff.missing,
                tested.missing,
                summary.missing,
                result.missing,
            ),
        ),
        tiles=_tiles(result),
        warnings=result.warnings,
        footer=f"made {moment(result.timestamp)} UTC, {tested.correction} over "
        f"{plural(tested.family_size, 'test')}",
    )


def _verdict(result: ModelComparisonResult) -> str:
    summary = result.summary
    why = next((each.why for each in summary.missing if each.field == "best_model"), "")
    if not summary.best_model and summary.criterion and why:
        return f"no best model: {why}"
    if not summary.best_model:
        return "no best model: no metric of known direction is shared by two of them"
    apart = {
        True: "told apart from every other model",
        False: "not told apart from every other model",
        None: "whether that is more than noise cannot be tested: no samples",
    }
    return f"{summary.best_model} is best by {summary.criterion}; {apart[summary.separated]}"


def _tiles(result: ModelComparisonResult) -> tuple[tuple[str, str], ...]:
    tests = result.statistical_analysis.tests
    return (
        (str(len(result.models)), "models"),
        (str(sum(test.p is not None for test in tests)), "tests"),
        (str(sum(bool(test.significant) for test in tests)), "told apart"),
        (value(result.architecture_diff.similarity_score), "similarity of build"),
    )


def _metrics(found: PerformanceComparison) -> Iterator[tuple[str, MetricComparison]]:
    for field, name in _FIXED.items():
        metric = getattr(found, field)
        if metric is not None:
            yield metric.metric or name, metric
    yield from found.further_comparisons.items()
    yield from found.custom_comparisons.items()


def _values(metrics: dict[str, MetricComparison], models: tuple[str, ...]) -> Table:
    """Return a column to each model, or to each metric where there are many models."""
    if len(models) <= _MOST_COLUMNS:
        heads = ("metric", "better", *models)
        return table(
            heads,
            (
                (Name(name), each.direction or "unknown", *(_cell(each, model) for model in models))
                for name, each in metrics.items()
            ),
        )
    shown = list(metrics.items())[:_MOST_COLUMNS]
    heads = ("model", *(name for name, _ in shown))
    return table(
        heads, ((Name(model), *(_cell(each, model) for _, each in shown)) for model in models)
    )


def _cell(metric: MetricComparison, model: str) -> str:
    letters = metric.letters.get(model, "")
    if model not in metric.values:
        return "unknown"
    return f"{value(metric.values[model])} {letters}".rstrip()


def _best(metrics: dict[str, MetricComparison]) -> Table:
    heads = ("metric", "best", "told apart", "worst", "margin", "judged by")
    return table(
        heads,
        (
            (
                Name(name),
                Name(_place(each.ranking[:1], each.best_model)),
                answer(each.separated),
                Name(_place(each.ranking[1:][-1:], each.worst_model)),
                "" if each.margin is None else value(each.margin),
                each.evidence,
            )
            for name, each in metrics.items()
        ),
    )


def _place(groups: tuple[tuple[str, ...], ...], alone: str | None) -> str:
    """Name who has a place: one model, all that share it, or none if another is as good."""
    shared = groups and len(groups[0]) > 1
    return alone or (" = ".join(groups[0]) if shared else "")


def _tests(tests: tuple[PairwiseTest, ...]) -> Table:
    heads = ("metric", "left", "right", "difference", "interval", "adjusted p", "effect", "told")
    return table(
        heads,
        (
            (
                Name(test.metric),
                Name(test.left),
                Name(test.right),
                signed(test.difference),
                interval(test.interval),
                probability(test.p_adjusted),
                "" if test.effect is None else f"{value(test.effect)} {test.effect_name}".rstrip(),
                test.word.replace("_", " "),
            )
            for test in tests
            if test.p is not None
        ),
    )


def _untested(found: StatisticalAnalysis) -> list[Part]:
    reasons: dict[str, list[str]] = {}
    for test in found.tests:
        if test.p is None:
            reasons.setdefault(test.reason or "no samples", []).append(test.metric)
    lines = [
        Line(reason, ", ".join(dict.fromkeys(metrics)), "?") for reason, metrics in reasons.items()
    ]
    return part("Not tested", lines)


def ranking(ranks: RankTest | None) -> list[Part]:
    """Lay out the ranks of several models over several tasks."""
    if ranks is None:
        return []
    ordered = sorted(ranks.mean_ranks.items(), key=lambda each: (each[1], each[0]))
    lines = [
        *(
            [Line(f"Friedman p {probability(ranks.p)} over {plural(len(ranks.tasks), 'task')}")]
            if ranks.p is not None
            else []
        ),
        *(
            [
                Line(
                    f"critical difference {value(ranks.critical_difference)} "
                    f"(Nemenyi, {100 * ranks.level:g}%)"
                )
            ]
            if ranks.critical_difference is not None
            else []
        ),
        *(Line("not told apart", ", ".join(group)) for group in ranks.groups if len(group) > 1),
        *([Line(ranks.note)] if ranks.note else []),
    ]
    rows = table(("model", "mean rank"), ((Name(name), value(rank)) for name, rank in ordered))
    return part("Ranks over tasks", lines, rows, [rank_drawing(ranks)])


def _abilities(found: Abilities | None) -> list[Part]:
    if found is None:
        return []
    ordered = sorted(found.abilities.items(), key=lambda each: (-each[1], each[0]))
    rows = table(
        ("model", "strength", "low", "high"),
        (
            (Name(name), value(strength), value(found.low.get(name)), value(found.high.get(name)))
            for name, strength in ordered
        ),
    )
    lines = [Line(f"stronger than {weak}", strong) for strong, weak in found.apart]
    lines += [Line(found.note)] if found.note else []
    return part("Strengths (Bradley-Terry)", lines, rows)


def trade_offs(points: tuple[ParetoPoint, ...], objectives: tuple[str, ...] = ()) -> list[Part]:
    """Lay out who is beaten in everything, and by whom."""
    names = objectives or tuple(dict.fromkeys(name for each in points for name in each.values))
    rows = table(
        ("model", *names, "on the front", "beaten by"),
        (
            (
                Name(each.model),
                *(value(each.values.get(name)) for name in names),
                "yes" if each.on_front else "no",
                Name(", ".join(each.dominated_by)),
            )
            for each in points
        ),
    )
    return part("Trade-offs", rows=rows, drawings=pareto_drawings(points, names))


def _architecture(found: ArchitectureDiff, models: tuple[str, ...]) -> list[Part]:
    shown = models[:_MOST_COLUMNS]
    rows = table(
        ("field", *shown),
        (
            (Name(field), *(value(values.get(model)) for model in shown))
            for field, values in found.fields.items()
            if any(values.get(model) is not None for model in models)
        ),
    )
    lines = [Line(text, sign="~") for text in found.notable_differences]
    if found.similarity_score is not None:
        lines.append(Line(f"similarity {value(found.similarity_score)} (mean over all pairs)"))
    return part("How they are built", lines, rows)
