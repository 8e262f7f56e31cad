"""How a metric went over its past versions: its jumps, and alarms of a running watch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...evidences import Evidence
from ...records import Policy
from ...stats.change_points import change_points
from ...stats.cusum import LEAST, baseline, cusum
from .check import rule_of


def courses(evidence: Evidence, policy: Policy, *, alpha: float, seed: int) -> list[dict[str, Any]]:
    """Describe each metric of the history, right's own value last where it is known."""
    return list(_courses(evidence, policy, alpha, seed))


def _courses(
    evidence: Evidence, policy: Policy, alpha: float, seed: int
) -> Iterator[dict[str, Any]]:
    current = evidence.right.metrics or {}
    for metric in dict.fromkeys(each.metric for each in evidence.history):
        past = [each for each in evidence.history if each.metric == metric]
        versions = [each.version for each in past]
        values = [each.value for each in past]
        if metric in current:
            versions, values = [*versions, "right"], [*values, current[metric]]
        yield {
            "metric": metric,
            "direction": rule_of(metric, policy)[1],
            "versions": versions,
            "values": values,
            "change_points": _jumps(values, versions, alpha, seed),
            **_watched(values, versions),
        }


def _jumps(
    values: Sequence[float], versions: Sequence[str], alpha: float, seed: int
) -> list[dict[str, Any]]:
    found = change_points(values, alpha=alpha, seed=seed)
    return [
        {"version": versions[each.index], "before": each.before, "after": each.after, "p": each.p}
        for each in found
    ]


def _watched(values: Sequence[float], versions: Sequence[str]) -> dict[str, Any]:
    """Watch what follows a baseline of the first values; too short a history has none."""
    quiet = baseline(values[:LEAST])
    if quiet is None or len(values) <= LEAST:
        return {"cusum_alarms": None, "why": f"a watch needs more than {LEAST} values that vary"}
    seen = cusum(values[LEAST:], quiet.mean, quiet.deviation, phi=quiet.phi)
    return {
        "cusum_alarms": [versions[LEAST + at] for at in seen.alarms],
        "in_control_run_length": seen.in_control_run_length,
    }
