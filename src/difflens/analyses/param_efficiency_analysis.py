"""What the parameters of the two models buy: metrics a doubling, and how much of them is in use."""

from __future__ import annotations

from math import log2
from statistics import median
from typing import Any, Literal

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.spectrum import SideSpectrum
from ..records import Envelope, Interval, Policy, Threshold
from . import analyse, analysis
from .anatomy.network import infos, network
from .cost.quality import Difference, differences
from .cost.roofline import active_share
from .cost.shared import shared
from .cost.utilisation import Used, sample, used
from .cost.weights import Weights, weights

NAME = "param_efficiency_analysis"
THRESHOLDS = {
    "matrices": Threshold(8, "matrices of each side whose spectrum is taken, evenly spread"),
}
_FIELDS = (
    "efficiency_ratio", "pareto", "utilization", "matrices", "parameters", "active_parameters",
    "category",
)  # fmt: skip
Side = Literal["left", "right"]
_SIDES: tuple[Side, Side] = ("left", "right")
_METRICS = "--eval-left/--eval-right or --metrics-left/--metrics-right"


@analysis(needs=[SideSpectrum], thresholds=THRESHOLDS)
def param_efficiency_analysis(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """What a doubling of parameters bought, and how much of the weights is in use."""
    answer = Answer(NAME, policy, THRESHOLDS)
    if not diff.pairs:
        for field in _FIELDS:
            answer.lack(field, needs="tensors", why="neither model holds any")
        return answer.envelope("not_applicable")
    summed = {side: weights(infos(diff, side), shared(diff, side)) for side in _SIDES}
    active = {side: _active(diff, evidence, side, summed[side]) for side in _SIDES}
    answer.say(
        "parameters",
        {side: each.parameters for side, each in summed.items()},
        basis="elements of float tensors that are no buffers",
        uncertainty="exact",
    )
    answer.either(
        "active_parameters",
        None if None in active.values() else active,
        basis="parameters without the experts a token does not reach",
        uncertainty="exact",
        needs="--config-left/--config-right",
        why="how many experts a token reaches is in no weight",
    )
    found = differences(evidence, policy)
    _ratio(answer, found, summed)
    flops = analyse("inference_speed_estimate", diff, evidence, policy).fields["flops"]
    costs = [each for each in (active, flops) if each and None not in each.values()]
    _pareto(answer, found, costs)
    _used(answer, diff)
    answer.lack(
        "category",
        needs="runs of several sizes on the same data",
        why="neither weights nor one metric tell whether a model is too large or too small",
    )
    return answer.envelope()


def _active(diff: Diff, evidence: Evidence, side: Side, summed: Weights) -> float | None:
    if not summed.expert_parameters:
        return float(summed.parameters)
    share = active_share(network(diff, evidence, side))
    if share is None:
        return None
    return summed.parameters - summed.expert_parameters * (1 - share)


def _ratio(answer: Answer, found: list[Difference], summed: dict[Side, Weights]) -> None:
    left, right = summed["left"].parameters, summed["right"].parameters
    doublings = log2(right / left) if left and right else 0.0
    why = "no metric is known" if not found else "both models have as many parameters"
    values = {each.metric: each.change / doublings for each in found} if doublings else {}
    answer.either(
        "efficiency_ratio",
        values or None,
        basis="(metric right - metric left) / log2(parameters right / parameters left)",
        uncertainty=_spread(found, doublings),
        needs=_METRICS if not found else "models of different size",
        why=why,
    )


def _spread(found: list[Difference], doublings: float) -> Interval | str:
    """Give the interval of the only metric, divided as the metric is."""
    one = found[0].interval if len(found) == 1 else None
    if one is None or one.low is None or one.high is None or not doublings:
        return "none_available: one interval a metric is in regression_test, or no examples are"
    low, high = sorted((one.low / doublings, one.high / doublings))
    return Interval(low, high, one.level, one.method, one.n)


def _pareto(answer: Answer, found: list[Difference], costs: list[Any]) -> None:
    known = [each for each in found if each.direction]
    answer.either(
        "pareto",
        {each.metric: _statement(each, costs) for each in known} or None,
        basis="right against left on active parameters, operations and the metric",
        uncertainty="none_available: a statement on the observed values",
        needs=_METRICS if not found else "the direction of the metric in --policy",
        why="no metric is known" if not found else "which way is better is unknown",
    )


def _statement(difference: Difference, costs: list[Any]) -> str:
    """Say how right stands to left: no worse in anything and different in something dominates."""
    sign = 1 if difference.direction == "higher" else -1
    gains = [sign * difference.change, *(cost["left"] - cost["right"] for cost in costs)]
    if not any(gains):
        return "equal"
    if min(gains) >= 0:
        return "right dominates left"
    return "left dominates right" if max(gains) <= 0 else "trade-off"


def _used(answer: Answer, diff: Diff) -> None:
    basis = "effective rank / that of a random matrix (0.804 n where it is square), median"
    if not diff.has_values:
        for field in ("utilization", "matrices"):
            answer.lack(field, needs="tensor values", why="only headers were read")
        return
    tables = {
        side: [used(diff, side, info) for info in sample(diff, side, answer["matrices"])]
        for side in _SIDES
    }
    each = {side: _median(table) for side, table in tables.items()}
    answer.either(
        "utilization",
        {**each, "proxy": True} if None not in each.values() else None,
        basis=f"{basis} over {' and '.join(str(len(each)) for each in tables.values())} matrices",
        uncertainty="none_available: a sample of the matrices, no law of it is known",
        needs="finite matrices of 16 rows and columns or more on both sides",
        why="one side holds none",
    )
    answer.say(
        "matrices",
        {side: [each._asdict() for each in table] for side, table in tables.items()},
        basis="spectrum, zeros, repeated rows and entropy of the sampled matrices",
        uncertainty="exact",
    )
    answer.assume(
        f"{answer['matrices']} matrices of each side at most, evenly spread, were looked at"
    )


def _median(table: list[Used]) -> float | None:
    known = [each.utilization for each in table if each.utilization is not None]
    return median(known) if known else None
