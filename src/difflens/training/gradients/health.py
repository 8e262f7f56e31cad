"""The norms of one layer in numbers, and how the layer is: the worst rule that it breaks now.

A layer is Unknown where too little was recorded. Statistics are of the finite norms; what was not
finite is counted first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from difflens.core.findings import Interval, Missing

from ..records.gradients import (
    FlowCharacteristics,
    GradientStatistics,
    LayerHealth,
    LayerHealthMetrics,
    RiskFactor,
)
from .rules import Case, risks
from .signals import LayerSignal, nonfinite_records, quantiles
from .verdicts import stands

if TYPE_CHECKING:
    from numpy.typing import NDArray


def statistics(signal: LayerSignal) -> GradientStatistics:
    """Return moments and quantiles of the finite norms.

    >>> from .signals import signals_of_histories
    >>> layer = signals_of_histories({"fc": [1.0, 2.0, 3.0, 4.0]}).layers[0]
    >>> found = statistics(layer)
    >>> found.percentile_5, found.median, found.percentile_95
    (1.15, 2.5, 3.8499999999999996)
    """
    finite = signal.norms[np.isfinite(signal.norms)]
    steps = signal.steps
    fields: dict[str, Any] = {
        "samples": len(finite),
        "nonfinite": nonfinite_records(signal),
        "zeros": int((finite == 0).sum()),
        "first_step": int(steps[0]) if len(steps) else None,
        "last_step": int(steps[-1]) if len(steps) else None,
    }
    if not len(finite):
        return _explained(GradientStatistics(**fields), "no finite norm was recorded")
    low, centre, high = quantiles(finite, (0.05, 0.5, 0.95))
    fields |= {
        "median": centre,
        "percentile_5": low,
        "percentile_95": high,
        "minimum": float(finite.min()),
        "maximum": float(finite.max()),
        **_moments(finite),
    }
    why = "one finite norm" if len(finite) == 1 else "the norms do not vary"
    return _explained(GradientStatistics(**fields), why)


def _moments(finite: NDArray[np.float64]) -> dict[str, float | None]:
    """Return mean, deviation and shape; scaled by the largest, so that squares stay in range."""
    n, scale = len(finite), float(finite.max())
    if scale == 0:
        return {"mean": 0.0, "std": 0.0, "variance": 0.0} if n > 1 else {"mean": 0.0}
    values = finite / scale
    mean = float(values.mean())
    rest = values - mean
    second = float((rest**2).mean())
    fields: dict[str, float | None] = {"mean": mean * scale}
    if n == 1:
        return fields
    std = (second * n / (n - 1)) ** 0.5 * scale
    fields |= {"std": std, "variance": _finite(std * std)}
    if second > (4 * np.finfo(float).eps) ** 2:
        fields |= {
            "skewness": float((rest**3).mean()) / second**1.5,
            "kurtosis": float((rest**4).mean()) / second**2 - 3,
        }
    return fields


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _explained(found: GradientStatistics, why: str) -> GradientStatistics:
    import msgspec

    reasons = tuple(Missing(field, "more finite norms", why) for field in found.unexplained())
    return msgspec.structs.replace(found, missing=reasons)


_FLOW = Missing(
    "information_flow_rate",
    "gradients of activations",
    "norms of parameter gradients do not say what flows through a layer; mean_absolute_change "
    "is what the reference computed under this name",
)


def health(case: Case, whole_flow: FlowCharacteristics) -> LayerHealthMetrics:
    """Judge one layer; what is over counts only where it was not finite.

    Of a run that `diagnose` calls healthy, signs are notes.
    """
    broken = risks(case)
    signs = tuple(each for each in broken if not case.verdict.is_healthy or stands(each))
    finite = int(np.isfinite(case.whole.norms).sum())
    enough = finite >= case.limits.least_records and case.whole.trainable
    falling, ends, reasons = _falling(case)
    active = _activity(case.late)
    missing = [_FLOW, *reasons]
    if active is None:
        missing.append(
            Missing(
                "neuron_activity_ratio",
                "dead_neurons_ratio or act_dead of each record",
                "which units are alive cannot be told from a norm",
            )
        )
    change = _change(case.whole)
    if change is None:
        missing.append(Missing("mean_absolute_change", "2 finite norms", f"{finite} finite norms"))
    stability = whole_flow.stability_measure
    if stability is None:
        of = {each.field: each for each in whole_flow.missing}["stability_measure"]
        missing.append(Missing("gradient_stability", of.needs, of.why))
    word = _worst(signs, enough=enough)
    if word == "Unknown":
        why = f"{finite} finite norms, {case.limits.least_records} are needed"
        missing.append(
            Missing(
                "overall_health",
                "more records",
                why if case.whole.trainable else "the layer is not trained",
            )
        )
    return LayerHealthMetrics(
        overall_health=word,
        gradient_stability=stability,
        neuron_activity_ratio=active,
        convergence_indicator=falling,
        convergence_interval=ends,
        risk_factors=tuple(f"{each.rule}: {each.text}" for each in signs),
        risks=signs,
        notes=tuple(f"{each.rule}: {each.text}" for each in broken if each not in signs),
        mean_absolute_change=change,
        missing=tuple(missing),
    )


def _worst(found: tuple[RiskFactor, ...], *, enough: bool) -> LayerHealth:
    now = {each.severity for each in found if each.recent or each.rule == "non-finite"}
    if "Critical" in now:
        return "Critical"
    if not enough:
        return "Unknown"
    return "Warning" if "Warning" in now else "Healthy"


def _falling(case: Case) -> tuple[float | None, Interval | None, list[Missing]]:
    """Return the fall of ln g per 100 steps in the latest window, where it is full."""
    flow = case.late_flow
    fields = ("convergence_indicator", "convergence_interval")
    if flow.trend_strength is None:
        of = {each.field: each for each in flow.missing}["trend_strength"]
        return None, None, [Missing(each, of.needs, of.why) for each in fields]
    if flow.samples < case.window:
        why = f"insufficient data: n={flow.samples}, need {case.window}"
        needs = f"{case.window} norms above zero"
        return None, None, [Missing(each, needs, why) for each in fields]
    ends = flow.trend_interval
    if ends is None or ends.low is None or ends.high is None:
        return (
            0.0 - flow.trend_strength,
            None,
            [Missing(fields[1], "more records", "too few for one")],
        )
    sides = Interval(0.0 - ends.high, 0.0 - ends.low, ends.level, ends.method, ends.n)
    return 0.0 - flow.trend_strength, sides, []


def _activity(late: LayerSignal) -> float | None:
    if late.dead_units is None:
        return None
    known = late.dead_units[np.isfinite(late.dead_units)]
    return float(1 - np.median(known)) if len(known) else None


def _change(whole: LayerSignal) -> float | None:
    finite = whole.norms[np.isfinite(whole.norms)]
    middle = quantiles(finite, (0.5,))[0] if len(finite) > 1 else 0.0
    if not middle > 0:
        return None
    with np.errstate(over="ignore"):
        change = float((np.abs(np.diff(finite)) / middle).mean())
    return change if np.isfinite(change) else None
