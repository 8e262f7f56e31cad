"""How a layer is: the worst rule that it breaks now, or Unknown where too little was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..gradient_results import (
    FlowCharacteristics,
    LayerHealth,
    LayerHealthMetrics,
    RiskFactor,
)
from ..records import Interval, Missing
from .rules import Case, risks
from .statistics import quantiles

if TYPE_CHECKING:
    from .signals import LayerSignal

_FLOW = Missing(
    "information_flow_rate",
    "gradients of activations",
    "norms of parameter gradients do not say what flows through a layer; mean_absolute_change "
    "is what the reference computed under this name",
)


def health(case: Case, whole_flow: FlowCharacteristics) -> LayerHealthMetrics:
    """Judge one layer; what is over counts only where it was not finite."""
    found = risks(case)
    finite = int(np.isfinite(case.whole.norms).sum())
    enough = finite >= case.limits.least_records and case.whole.trainable
    falling, ends, reasons = _falling(case)
    active = _activity(case.late)
    told = [_FLOW, *reasons]
    if active is None:
        told.append(
            Missing("neuron_activity_ratio", "dead_neurons_ratio or act_dead of each record",
                    "which units are alive cannot be told from a norm")
        )  # fmt: skip
    change = _change(case.whole)
    if change is None:
        told.append(Missing("mean_absolute_change", "2 finite norms", f"{finite} finite norms"))
    stability = whole_flow.stability_measure
    if stability is None:
        of = {each.field: each for each in whole_flow.missing}["stability_measure"]
        told.append(Missing("gradient_stability", of.needs, of.why))
    word = _worst(found, enough=enough)
    if word == "Unknown":
        why = f"{finite} finite norms, {case.limits.least_records} are needed"
        told.append(
            Missing("overall_health", "more records",
                    why if case.whole.trainable else "the layer is not trained")
        )  # fmt: skip
    return LayerHealthMetrics(
        overall_health=word,
        gradient_stability=stability,
        neuron_activity_ratio=active,
        convergence_indicator=falling,
        convergence_interval=ends,
        risk_factors=tuple(f"{each.rule}: {each.text}" for each in found),
        risks=found,
        mean_absolute_change=change,
        missing=tuple(told),
    )


def _worst(found: tuple[RiskFactor, ...], *, enough: bool) -> LayerHealth:
    now = {each.severity for each in found if each.recent or each.rule == "non-finite"}
    if "Critical" in now:
        return "Critical"
    if not enough:
        return "Unknown"
    return "Warning" if "Warning" in now else "Healthy"


def _falling(case: Case) -> tuple[float | None, Interval | None, list[Missing]]:
    """Give the fall of ln g per 100 steps in the latest window, where it is full."""
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
