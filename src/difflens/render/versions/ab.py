"""The layout of `ab`: both arms, the tests, and the one sentence that follows."""

from __future__ import annotations

from difflens.versions.records.ab import (
    ABTestResult,
    SequentialResult,
    StatisticalTestResult,
    SummaryStats,
)

from ..document.document import Document, Line, Mood, Name, Part, Table, part, table, unknown
from ..document.values import answer, ends, interval, moment, probability, signed, value

_MOODS: dict[str, Mood] = {
    "a_better": "good",
    "b_better": "good",
    "equivalent": "good",
    "non_inferior": "good",
    "different": "plain",
}


def ab(result: ABTestResult) -> Document:
    """Lay out an A/B test."""
    config, end = result.config, result.conclusion
    tests = result.statistical_tests
    return Document(
        title="ab",
        opening=f"ab: A (left) is {config.model_a}, B (right) is {config.model_b}; "
        "differences are A minus B",
        verdict=end.summary,
        word=end.verdict.replace("_", " "),
        mood=_MOODS.get(end.verdict, "open"),
        parts=(
            *part("Arms", rows=_arms(result)),
            *part("Tests", rows=_tests(tests)),
            *_sequential(result.sequential),
            *part("Findings", [Line(text, sign="~") for text in result.findings]),
            *part("Conclusion", _conclusion(result)),
            *part("By other methods", rows=_other_tests(tests), folded=True),
            *part(
                "Assumptions",
                [
                    Line(text, name)
                    for name, test in tests.items()
                    for text in (*test.assumptions, test.note)
                    if text
                ],
                folded=True,
            ),
            *unknown(result.missing, end.missing, *(test.missing for test in tests.values())),
        ),
        tiles=(
            (value(result.model_a_results.sample_size), "observations of A"),
            (value(result.model_b_results.sample_size), "observations of B"),
            (answer(end.practical_significance).replace("not testable", "unclear"), "matters"),
            (f"{100 * end.confidence:g}%", "level of the intervals"),
        ),
        warnings=result.warnings,
        footer=f"made {moment(result.end_time)} UTC, alpha {config.alpha:g}, "
        f"{config.correction} over {len(tests)} metrics",
    )


def _arms(result: ABTestResult) -> Table:
    heads = ("metric", "arm", "n", "mean", "std", "min", "q25", "median", "q75", "max")
    arms = (("A", result.model_a_results), ("B", result.model_b_results))
    return table(
        heads,
        (
            _arm(name, side, stats)
            for name in result.statistical_tests
            for side, arm in arms
            for stats in [arm.summary_stats.get(name)]
            if stats
        ),
    )


def _arm(name: str, side: str, stats: SummaryStats) -> tuple[str, ...]:
    figures = (stats.mean, stats.std_dev, stats.min, stats.q25, stats.median, stats.q75, stats.max)
    return (Name(name), side, value(stats.n), *map(value, figures))


def _tests(tests: dict[str, StatisticalTestResult]) -> Table:
    heads = ("metric", "test", "difference", "interval", "p", "adjusted p", "effect", "verdict")
    return table(
        heads,
        (
            (
                Name(name),
                test.test_type,
                signed(test.difference),
                ends(*(test.confidence_interval or (None, None))),
                probability(test.p_value),
                probability(test.p_adjusted),
                _effect(test),
                test.verdict.replace("_", " "),
            )
            for name, test in tests.items()
        ),
    )


def _effect(test: StatisticalTestResult) -> str:
    if test.effect_size is None:
        return "unknown"
    said = (value(test.effect_size), test.effect_name, interval(test.effect_interval))
    return " ".join(filter(None, said))


def _other_tests(tests: dict[str, StatisticalTestResult]) -> Table:
    heads = ("metric", "method", "statistic", "p", "estimate", "interval", "note")
    return table(
        heads,
        (
            (
                Name(name),
                each.test_type,
                value(each.statistic),
                probability(each.p_value),
                f"{value(each.estimate)} {each.estimate_name}".rstrip(),
                ends(*(each.confidence_interval or (None, None))),
                each.note,
            )
            for name, test in tests.items()
            for each in test.further
        ),
    )


def _sequential(found: SequentialResult | None) -> list[Part]:
    if found is None:
        return []
    decided = (
        f"decided after {value(found.stopped_at)} observations"
        if found.stopped_at is not None
        else "not decided yet; looking again later is fine"
    )
    span = f"{ends(found.low, found.high)} {100 * found.level:g}%, valid at every look"
    lines = [Line(span, found.method), Line(decided)]
    return part("Sequential", [*lines, *([Line(found.note)] if found.note else [])])


def _conclusion(result: ABTestResult) -> list[Line]:
    end = result.conclusion
    lines = [Line(f"{end.winner}", "winner", "+") if end.winner else Line("none", "winner")]
    if end.rule:
        lines.append(Line(end.rule, "rule"))
    if end.minimal_detectable_effect is not None:
        said = f"{value(end.minimal_detectable_effect)} with power {result.config.power:g}"
        lines.append(Line(said, "smallest difference these samples would show"))
    if end.required_sample_size is not None:
        lines.append(
            Line(f"{value(end.required_sample_size)} an arm", "observations that would decide")
        )
    if end.underpowered:
        lines.append(Line("the samples are too small for the effect asked about", sign="~"))
    return [*lines, Line(end.recommendation)] if end.recommendation else lines
