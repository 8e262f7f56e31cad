"""From issues to a score: 100·(1 - share of parameters in tensors with an issue), told as coverage.

No weights by kind of issue: how much worse a skewed tensor is than a sparse one nobody has
measured, so the score says how much of the model is concerned and the issues say by what.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..weight_results import (
    Deduction,
    DistributionHealth,
    DistributionHealthStatus,
    IssueCode,
    LayerWeightAnalysis,
    WeightHealth,
    WeightIssue,
)

_CODES = tuple(IssueCode)
_SEVERITIES = ("critical", "high", "medium", "low", "info")
_STATUSES = (
    (90.0, DistributionHealthStatus.EXCELLENT),
    (75.0, DistributionHealthStatus.GOOD),
    (60.0, DistributionHealthStatus.FAIR),
    (40.0, DistributionHealthStatus.POOR),
)


def counting(issues: Iterable[WeightIssue]) -> tuple[WeightIssue, ...]:
    """Give the issues that count against the health."""
    return tuple(each for each in issues if each.severity != "info")


def layer_score(parameters: int, issues: Sequence[WeightIssue]) -> float | None:
    """Score one tensor: all of its parameters are concerned, or none."""
    return None if not parameters else 0.0 if counting(issues) else 100.0


def advice(issues: Iterable[WeightIssue]) -> tuple[str, ...]:
    """Give the advice of issues that count, each once."""
    return tuple(dict.fromkeys(each.advice for each in counting(issues)))


def health(layers: Sequence[LayerWeightAnalysis]) -> WeightHealth:
    """Put all issues together, the worst first, and say what each tensor takes off the score."""
    total = sum(each.statistics.count for each in layers)
    every = sorted(
        (issue for layer in layers for issue in layer.issues),
        key=lambda each: (_SEVERITIES.index(each.severity), _CODES.index(each.code)),
    )
    deductions = [
        Deduction(
            name=layer.name, codes=tuple(each.code for each in found),
            parameters=layer.statistics.count, points=100 * layer.statistics.count / total,
        )
        for layer in layers
        if (found := counting(layer.issues)) and total
    ]  # fmt: skip
    concerned = sum(each.parameters for each in deductions)
    return WeightHealth(
        score=100 * (1 - concerned / total) if total else None,
        issues=tuple(every),
        recommendations=advice(every),
        deductions=tuple(deductions),
    )


def status(found: WeightHealth) -> DistributionHealth:
    """Say it in one word; a critical issue outdoes the score."""
    if found.score is None:
        reason = "no tensor of weights was given"
        return DistributionHealth(
            score=None, status=DistributionHealthStatus.UNKNOWN, reason=reason
        )
    critical = sum(each.severity == "critical" for each in found.issues)
    if critical:
        word, reason = DistributionHealthStatus.CRITICAL, f"{critical} critical issues"
    else:
        passed = (word for least, word in _STATUSES if (found.score or 0) >= least)
        word = next(passed, DistributionHealthStatus.CRITICAL)
        reason = "the share of parameters in tensors without an issue"
    return DistributionHealth(score=found.score, status=word, reason=reason)
