"""The layout of `report`: the state of a store, with the courses of its metrics."""

from __future__ import annotations

from difflens.versions.records.regressions import DifferentialDebuggingReport, MetricHistory

from ..document.document import Document, Line, Mood, Name, Part, part, table, unknown
from ..document.numbers import plural
from ..document.values import moment, moved, probability, signed, value
from .comparison import ranking, trade_offs
from .drawings import MOST_DRAWINGS, course
from .regressions import verdict

_COUNTS = {
    "comparison_count": "comparison",
    "ab_test_count": "A/B test",
    "version_diff_count": "version diff",
    "regression_detection_count": "regression check",
}


def report(result: DifferentialDebuggingReport) -> Document:
    """Lay out the report."""
    where = f" in {result.store}" if result.store else ""
    names = f" of {plural(result.total_names, 'model')}" if result.total_names else ""
    return Document(
        title="report",
        opening=f"report: {plural(result.total_models, 'snapshot')}{names}{where}",
        verdict=_verdict(result),
        word="State",
        mood=_mood(result),
        parts=(
            *part(
                "Best",
                [
                    Line(value(said), name.replace("_", " "))
                    for name, said in result.model_summary.items()
                    if name != "total_models"
                ],
            ),  # it counts snapshots, as the opening says
            *_histories(result.histories),
            *trade_offs(result.pareto),
            *ranking(result.ranks),
            *_regressions(result),
            *_comparisons(result),
            *_tests(result),
            *_diffs(result),
            *part(
                "No longer kept",
                [Line(value(number), kind) for kind, number in result.dropped.items() if number],
            ),
            *unknown(result.missing),
        ),
        tiles=(
            (value(result.total_models), "snapshots"),
            *(
                (value(getattr(result, field)), _word(plural(getattr(result, field), word)))
                for field, word in _COUNTS.items()
            ),
        ),
        warnings=result.warnings,
        footer=f"made {moment(result.timestamp)} UTC",
    )


def _word(counted: str) -> str:
    return counted.partition(" ")[2]


def _verdict(result: DifferentialDebuggingReport) -> str:
    counts = ", ".join(plural(getattr(result, field), word) for field, word in _COUNTS.items())
    changed = sum(bool(each.change_points) for each in result.histories)
    said = f"; the level of {plural(changed, 'metric')} changed over versions" if changed else ""
    return f"{counts}{said}"


def _mood(result: DifferentialDebuggingReport) -> Mood:
    latest = result.recent_regressions[:1]
    if latest and latest[0].overall_assessment.passed is False:
        return "bad"
    return "plain"


_COURSE = (
    "model, metric, better, versions, first -> last, slope, trend p, level changed at,"
    " drift alarm at"
)


def _histories(found: tuple[MetricHistory, ...]) -> list[Part]:
    drawn = [each for each in found if len(each.points) > 1]
    rows = table(_COURSE.split(", "), map(_history, found))
    more = len(drawn) - MOST_DRAWINGS
    lines = [Line(f"{plural(more, 'further course')} in the table alone")] if more > 0 else []
    return part("Metrics over versions", lines, rows, map(course, drawn[:MOST_DRAWINGS]))


def _history(found: MetricHistory) -> tuple[str, ...]:
    points = found.points
    versions = value(len(points)) + (
        f" of {len(points) + found.left_out}" if found.left_out else ""
    )
    return (
        Name(found.model),
        Name(found.metric),
        found.direction or "unknown",
        versions,
        moved(points[0].value, points[-1].value) if points else "unknown",
        "" if found.slope is None else signed(found.slope),
        "" if found.trend_p is None else probability(found.trend_p),
        Name(", ".join(each.version for each in found.change_points)),
        Name(", ".join(found.alarms)),
    )


def _regressions(result: DifferentialDebuggingReport) -> list[Part]:
    return part(
        "Latest regression checks",
        [
            Line(
                f"{verdict(each)} ({moment(each.timestamp)})",
                f"{each.current} against {each.baseline}",
                "-" if each.overall_assessment.passed is False else "",
            )
            for each in result.recent_regressions
        ],
    )


def _comparisons(result: DifferentialDebuggingReport) -> list[Part]:
    lines = []
    for each in result.recent_comparisons:
        best = each.summary.best_model
        said = f"best by {each.summary.criterion}: {best}" if best else "no best model"
        lines.append(Line(f"{said} ({moment(each.timestamp)})", ", ".join(each.models)))
    return part("Latest comparisons", lines)


def _tests(result: DifferentialDebuggingReport) -> list[Part]:
    return part(
        "Latest A/B tests",
        [
            Line(f"{each.conclusion.summary} ({moment(each.end_time)})", each.config.name)
            for each in result.recent_ab_tests
        ],
    )


def _diffs(result: DifferentialDebuggingReport) -> list[Part]:
    return part(
        "Latest version diffs",
        [
            Line(
                f"{plural(len(each.config_changes), 'setting')} and "
                f"{plural(len(each.architecture_changes), 'part')} of the build changed "
                f"({moment(each.timestamp)})",
                f"{each.from_model or each.from_version} to {each.to_model or each.to_version}",
            )
            for each in result.recent_version_diffs
        ],
    )
