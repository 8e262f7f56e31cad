"""The layout of `regressions`: what got worse than it may, by how much, judged by what."""

from __future__ import annotations

from difflens.core.findings import Interval
from difflens.versions.records.regressions import (
    Improvement,
    MetricVerdict,
    Regression,
    RegressionAssessment,
    RegressionDetectionResult,
)

from ..document.document import Document, Line, Mood, Name, Part, part, table, unknown
from ..document.numbers import plural
from ..document.values import ends, interval, moment, moved, probability, value
from .drawings import course

_WORDS = {True: "Passed", False: "Failed", None: "Cannot tell"}
_MOODS: dict[bool | None, Mood] = {True: "good", False: "bad", None: "open"}


def regressions(result: RegressionDetectionResult) -> Document:
    """Lay out the search for regressions; the first line names both roles."""
    end = result.overall_assessment
    return Document(
        title="regressions",
        opening=f"regressions: current is {result.current} (right), "
        f"baseline is {result.baseline} (left)",
        verdict=verdict(result),
        word=_WORDS[end.passed],
        mood=_MOODS[end.passed],
        parts=(
            *part("Regressions", [line for each in result.regressions for line in _worse(each)]),
            *part("Improvements", [_better(each) for each in result.improvements]),
            *part(
                "Every metric",
                rows=table(
                    (
                        "metric",
                        "left -> right",
                        "worse by",
                        "interval",
                        "margin",
                        "adjusted p",
                        "judged by",
                        "outcome",
                    ),
                    map(_row, result.verdicts),
                ),
            ),
            *_notes(result.verdicts),
            *part(
                "Past versions", drawings=[course(each) for each in result.histories if each.points]
            ),
            *part("What else differs", [Line(text, sign="~") for text in result.observed_changes]),
            *part("What to do", [Line(end.recommendation)] if end.recommendation else []),
            *unknown(end.missing, result.missing),
        ),
        tiles=(
            (str(len(result.regressions)), "regressions"),
            (str(len(result.improvements)), "improvements"),
            (str(end.inconclusive), "inconclusive"),
            (value(end.health_score), "health score"),
        ),
        warnings=result.warnings,
        footer=f"made {moment(result.timestamp)} UTC, level {100 * result.level:g}%",
    )


def verdict(result: RegressionDetectionResult) -> str:
    """Say in one line what the exit code says, and why."""
    end = result.overall_assessment
    counted = [f"{number} {word}" for word, number in end.by_severity.items() if number]
    many = len(result.regressions)
    said = [
        f"{plural(many, 'regression')} ({', '.join(counted)})"
        if counted and many
        else plural(many, "regression")
    ]
    worst = ", ".join(each.metric for each in result.regressions[:5])
    said[0] += f": {worst}" if worst else ""
    said.append(f"{plural(end.checked, 'metric')} checked")
    said += _rest(end)
    return f"{_WORDS[end.passed].lower()}: {'; '.join(said)}"


def _rest(end: RegressionAssessment) -> list[str]:
    said = [f"{end.inconclusive} inconclusive"] if end.inconclusive else []
    said += [f"{end.unknown} unknown"] if end.unknown else []
    return [*said, f"health {value(end.health_score)}"]


def _worse(found: Regression) -> list[Line]:
    limits = _limits(found.interval, found.margin)
    basis = "" if found.statistical else "; a limit of the policy passed, not a test"
    said = f"{moved(found.previous_value, found.current_value)}, worse by {value(found.magnitude)}"
    rule = f"; {found.rule}" if found.rule else ""
    first = Line(f"{found.severity.value}: {said}{limits}{rule}{basis}", found.metric, "-")
    causes = [Line(text, "  together with") for text in found.possible_causes]
    fixes = [Line(text, "  to try") for text in found.suggested_fixes]
    notes = [Line(found.note, "  note")] if found.note else []
    return [first, *causes, *fixes, *notes]


def _better(found: Improvement) -> Line:
    said = f"{moved(found.previous_value, found.current_value)}, better by {value(found.magnitude)}"
    return Line(f"{said}{_limits(found.interval, found.margin)}", found.metric, "+")


def _limits(sure: Interval | None, margin: float | None) -> str:
    parts = [
        interval(sure) if sure else "",
        f"margin {value(margin)}" if margin is not None else "",
    ]
    said = ", ".join(filter(None, parts))
    return f" ({said})" if said else ""


def _row(found: MetricVerdict) -> tuple[str, ...]:
    sure = found.interval
    return (
        Name(found.metric),
        moved(found.previous_value, found.current_value),
        value(found.degradation),
        ends(sure.low, sure.high) if sure else "",
        "" if found.margin is None else value(found.margin),
        "" if found.p_adjusted is None else probability(found.p_adjusted),
        found.basis,
        found.outcome,
    )


def _notes(verdicts: tuple[MetricVerdict, ...]) -> list[Part]:
    lines = [Line(each.note, each.metric) for each in verdicts if each.note]
    return part("Notes", lines)
