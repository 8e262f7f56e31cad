"""Evidence about quality for tests: examples, latencies, histories and numbers."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.evidence.records import Evidence, Example, Latency, Past, Side


def examples(
    scores: Iterable[float],
    metric: str = "accuracy",
    clusters: Sequence[str] | None = None,
    prefix: str = "q",
) -> tuple[Example, ...]:
    """Make one example a score, numbered."""
    return tuple(
        Example(f"{prefix}{i}", float(score), metric, clusters[i] if clusters else None)
        for i, score in enumerate(scores)
    )


def evals(left: Iterable[float], right: Iterable[float], **how: Any) -> Evidence:
    """Hand in the same examples of both sides."""
    return Evidence(
        left=Side(evals=examples(left, **how)), right=Side(evals=examples(right, **how))
    )


def latencies(left: Iterable[float], right: Iterable[float], runs: int = 0) -> Evidence:
    """Hand in latencies, in so many runs."""

    def side(values: Iterable[float]) -> Side:
        return Side(
            latency=tuple(
                Latency(float(ms), f"r{i % runs}" if runs else None) for i, ms in enumerate(values)
            )
        )

    return Evidence(left=side(left), right=side(right))


def history(values: Iterable[float], now: float, metric: str = "accuracy") -> Evidence:
    """Hand in past values and the newest one."""
    past = tuple(Past(f"v{i}", metric, float(value)) for i, value in enumerate(values))
    return Evidence(right=Side(metrics={metric: now}), history=past)


def numbers(left: dict[str, float], right: dict[str, float]) -> Evidence:
    """Hand in single numbers."""
    return Evidence(left=Side(metrics=left), right=Side(metrics=right))


def rules(**metrics: MetricRule) -> Policy:
    """Say what is asked of metrics."""
    return Policy(metrics=metrics)


def correct(
    random: np.random.Generator, n: int, rate: float, broke: float, fixed: float
) -> tuple[np.ndarray, np.ndarray]:
    """Draw right and wrong answers of two models: so many of all break, so many get fixed."""
    left = random.random(n) < rate
    flips = random.random(n)
    right = np.where(left, flips >= broke / rate, flips < fixed / (1 - rate))
    return left.astype(float), right.astype(float)
