"""The layout of `show --health`: what is wrong with which weights, then every tensor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from difflens.core.escape import visible
from difflens.models.health.records import (
    DistributionHealthStatus,
    LayerWeightAnalysis,
    WeightDistributionAnalysis,
    WeightIssue,
    WeightOutlier,
    WeightStatistics,
)

from ..document.document import Document, Line, Mood, Name, Part, part, table
from ..document.numbers import UNKNOWN, brackets, count, percent, plural, short
from ..document.values import value

_MOST_NAMES = 5  # tensors named of one issue
_MOST_OUTLIERS = 10
_GOOD = (DistributionHealthStatus.EXCELLENT, DistributionHealthStatus.GOOD)
_SIGNS = {"critical": "!", "high": "-", "medium": "-", "low": "~", "info": "?"}


def weight_health(found: WeightDistributionAnalysis) -> Document:
    """Lay out the health of a model's weights; what is not finite comes first."""
    layers, told = found.layer_analyses, found.distribution_health
    return Document(
        title="health",
        opening=f"{found.source}: {plural(len(layers), 'tensor')} of weights, "
        f"{count(found.parameters)} parameters",
        verdict=_verdict(found),
        word=told.status.value,
        mood=_mood(told.status),
        parts=(
            *part("Issues", _issues(found.health.issues, counting=True)),
            *part("What to do", map(Line, found.health.recommendations)),
            *part("All weights", _summary(found.overall_statistics)),
            *part("Tensors", rows=table(
                ("tensor", "kind", "shape", "mean", "std", "min", "max", "zeros", "skewness",
                 "kurtosis", "entropy", "outliers", "issues"), map(_row, layers))),
            *part("Farthest weights", rows=table(
                ("tensor", "index", "value", "robust z"),
                map(_outlier, found.outlier_detection[:_MOST_OUTLIERS]))),
            *part("Noted, and not counted", _issues(found.health.issues, counting=False)),
            *_skipped(found),
        ),
        tiles=(
            (_score(told.score), "health score"),
            (f"{found.overall_statistics.nonfinite:,}", "values not finite"),
            (str(len(found.health.deductions)), "tensors with an issue"),
            (f"{found.outlier_count:,}", "outliers"),
        ),
        warnings=found.warnings,
        footer="health score: 100 less the share of parameters in tensors with an issue, a low one"
        " weighing 5 %, a medium one 20 %; at most 74 with a high issue, 39 with a critical one",
    )  # fmt: skip


def _mood(status: DistributionHealthStatus) -> Mood:
    if status == DistributionHealthStatus.UNKNOWN:
        return "open"
    return "good" if status in _GOOD else "bad"


def _score(score: float | None) -> str:
    return UNKNOWN if score is None else f"{score:.1f}"


def _verdict(found: WeightDistributionAnalysis) -> str:
    told, layers = found.distribution_health, found.layer_analyses
    if told.score is None:
        return f"unknown: {told.reason}"
    said = f"{len(found.health.deductions)} of {plural(len(layers), 'tensor')} with an issue"
    if found.health.issues and found.health.issues[0].severity in {"critical", "high"}:
        first = found.health.issues[0]
        said = f"{told.reason}: {first.code.value} in {visible(first.name)}"
    return f"{told.status.value.lower()}: health {_score(told.score)} of 100; {said}"


def _issues(issues: Sequence[WeightIssue], *, counting: bool) -> list[Line]:
    """Write a line an issue, and one for many tensors with the same one."""
    chosen = [each for each in issues if (each.severity != "info") == counting]
    lines = []
    for (severity, code), group in groupby(chosen, key=lambda each: (each.severity, each.code)):
        same = list(group)
        sign = _SIGNS[severity]
        lines += [
            Line(f"{code.value} ({severity}): {each.text}", each.name, sign)  # type: ignore[arg-type]
            for each in same[:_MOST_NAMES]
        ]
        if len(same) > _MOST_NAMES:
            more = plural(len(same) - _MOST_NAMES, "further tensor")
            lines.append(Line(f"{code.value} ({severity}): {more}", "", sign))  # type: ignore[arg-type]
    return lines


def _summary(told: WeightStatistics) -> list[Line]:
    if told.mean is None:
        return [Line("no finite value")]
    exact = f"to {percent(told.quantile_error)}" if told.quantile_error else "exact"
    said = {
        "mean": value(told.mean),
        "std": value(told.std_dev),
        "min": value(told.min),
        "max": value(told.max),
        "median": f"{value(told.median)} ({exact})",
        "zeros": percent(told.zero_fraction),
        "skewness": value(told.skewness),
        "kurtosis": value(told.kurtosis),
        "entropy": f"{value(told.entropy)} bits over {told.entropy_bins:,} bins",
    }
    return [Line(", ".join(f"{name} {each}" for name, each in said.items()))]


def _row(layer: LayerWeightAnalysis) -> tuple[str, ...]:
    told = layer.statistics
    return (
        Name(layer.name),
        layer.kind,
        brackets(layer.shape),
        *(value(each) for each in (told.mean, told.std_dev, told.min, told.max)),
        percent(told.zero_fraction),
        *(
            UNKNOWN if each is None else short(each)
            for each in (told.skewness, told.kurtosis, told.entropy)
        ),
        UNKNOWN if layer.outlier_count is None else f"{layer.outlier_count:,}",
        ", ".join(each.code.value for each in layer.issues if each.severity != "info"),
    )


def _outlier(far: WeightOutlier) -> tuple[str, ...]:
    return Name(far.name), brackets(far.index), value(far.value), f"{far.z_score:+.4g}"


def _skipped(found: WeightDistributionAnalysis) -> list[Part]:
    lines = [Line(reason, name, "?") for name, reason in found.skipped.items()]
    if len(lines) > _MOST_OUTLIERS:
        more = plural(len(lines) - _MOST_OUTLIERS, "further tensor")
        lines = [*lines[:_MOST_OUTLIERS], Line(more)]
    return part("Left out", lines)
