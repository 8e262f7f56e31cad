"""What the parameters of the two models buy: metrics per doubling, and how much is in use."""

from __future__ import annotations

from functools import cache
from math import exp, log, log2, sqrt
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from difflens.core.dtypes import FLOATS, OPAQUE, bits
from difflens.core.findings import Interval
from difflens.core.policy import Threshold
from difflens.core.records import TensorInfo
from difflens.measure.spectrum import SideSpectrum
from difflens.models.anatomy.network import is_lookup
from difflens.models.anatomy.roles import is_parameter

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.networks import infos, network
from ..methods.roofline import active_share
from ..methods.weights import Weights, shared, stored, weights
from ..quality.check import Difference, differences
from . import analysis

if TYPE_CHECKING:
    from numpy.typing import NDArray


Side = Literal["left", "right"]
_SIDES: tuple[Side, Side] = ("left", "right")
_METRICS = "--eval-left/--eval-right or --metrics-left/--metrics-right"


@analysis(
    needs="tensors",
    thresholds={
        "matrices": Threshold(8, "matrices of each side whose spectrum is taken, evenly spread")
    },
    fields={
        "efficiency_ratio": "(metric right - metric left) / log2(parameters right / parameters"
        " left)",
        "pareto": "right against left on active parameters, operations and the metric",
        "parameters": "elements of float tensors that are no buffers",
        "utilization": "",
        "active_parameters": "parameters without the experts a token does not reach",
        "category": "",
        "matrices": "spectrum, zeros, repeated rows and entropy of the sampled matrices",
    },
)
def param_efficiency_analysis(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """What a doubling of parameters bought, and how much of the weights is in use."""
    summed = {side: weights(infos(diff, side), shared(diff, side)) for side in _SIDES}
    active = {side: _active(diff, evidence, side, summed[side]) for side in _SIDES}
    answer.say(
        "parameters", {side: each.parameters for side, each in summed.items()}, uncertainty="exact"
    )
    answer.either(
        "active_parameters",
        None if None in active.values() else active,
        uncertainty="exact",
        needs="--config-left/--config-right",
        why="how many experts a token reaches is in no weight",
    )
    found = differences(evidence, answer.policy)
    _ratio(answer, found, summed)
    flops = answer.ask("inference_speed_estimate").fields.get("flops")
    costs = [each for each in (active, flops) if each and None not in each.values()]
    _pareto(answer, found, costs)
    _say_used(answer, diff)
    answer.lack(
        "category",
        needs="runs of several sizes on the same data",
        why="neither weights nor one metric tell whether a model is too large or too small",
    )


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
        uncertainty=_spread(found, doublings),
        needs=_METRICS if not found else "models of different size",
        why=why,
    )


def _spread(found: list[Difference], doublings: float) -> Interval | str:
    """Return the interval of the only metric, divided as the metric is."""
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


def _say_used(answer: Answer, diff: Diff) -> None:
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
        uncertainty="exact",
    )
    answer.assume(
        f"{answer['matrices']} matrices of each side at most, evenly spread, were looked at"
    )


def _median(table: list[Used]) -> float | None:
    known = [each.utilization for each in table if each.utilization is not None]
    return median(known) if known else None


_LEAST = 16  # rows and columns below which singular values say little
_LARGEST = 1 << 25  # elements: larger matrices are left out of the sample
_SAMPLED = 1 << 20  # elements whose bits are counted


class Used(NamedTuple):
    """One matrix; None is unknown."""

    name: str
    effective_rank: float | None
    utilization: float | None  # effective rank / that of a random matrix of its size
    stable_rank_ratio: float | None
    zero_share: float
    duplicate_rows: int
    entropy_bits: float | None  # of the stored codes, where they have 16 bits or fewer
    stored_bits: float


def random_effective_rank(rows: int, columns: int) -> float:
    """Return the effective rank of independent Gaussian numbers: n exp(ln E[s] - E[s ln s] / E[s]).

    s is a singular value under the Marchenko-Pastur law of β = n / m, n <= m; the rank is that of
    Roy & Vetterli (2007).

    >>> round(random_effective_rank(1000, 1000) / 1000, 3)
    0.805
    """
    small, large = sorted((rows, columns))
    return small * _part(small / large)


def random_stable_rank(rows: int, columns: int) -> float:
    """Return the stable rank of independent Gaussian numbers: m n / (√m + √n)²."""
    return rows * columns / (sqrt(rows) + sqrt(columns)) ** 2


@cache
def _part(beta: float) -> float:
    import numpy as np

    # x = 1 + β - 2 √β cos t makes the density's roots at both ends smooth.
    angles = (np.arange(20_000) + 0.5) * np.pi / 20_000
    places = 1 + beta - 2 * sqrt(beta) * np.cos(angles)
    weight = np.sin(angles) ** 2 / places
    weight /= weight.sum()
    sigma = np.sqrt(places)
    mean = float((weight * sigma).sum())
    return exp(log(mean) - float((weight * sigma * np.log(sigma)).sum()) / mean)


def sample(diff: Diff, side: Side, count: int) -> list[TensorInfo]:
    """Choose matrices evenly spread over the model, in its order; tables of words are not among."""
    fit = [info for info in infos(diff, side) if _is_candidate(info)]
    if len(fit) <= count:
        return fit
    return [fit[index * len(fit) // count] for index in range(count)]


def used(diff: Diff, side: Side, info: TensorInfo) -> Used:
    """Look at one matrix of one side, once a diff."""
    found: Used = diff.remember(("used", side, info.name), lambda: _used(diff, side, info))
    return found


def _used(diff: Diff, side: Side, info: TensorInfo) -> Used:
    values = diff.values(side, info.name)
    spectrum = SideSpectrum.of(values, None)
    rank = spectrum.left_effective_rank if spectrum else None
    stable = spectrum.left_stable_rank if spectrum else None
    rows, columns = info.shape[0], info.count // info.shape[0]
    zeros, duplicates = _counted(values)
    width = 8 * stored(info).bytes / info.count
    return Used(
        name=info.name,
        effective_rank=rank,
        utilization=None if rank is None else rank / random_effective_rank(rows, columns),
        stable_rank_ratio=None if stable is None else stable / random_stable_rank(rows, columns),
        zero_share=zeros / info.count,
        duplicate_rows=duplicates,
        entropy_bits=_entropy(values) if width <= 16 else None,
        stored_bits=width,
    )


def _is_candidate(info: TensorInfo) -> bool:
    numbers = info.dtype in FLOATS and info.dtype not in OPAQUE and bits(info.dtype) < 64
    if not numbers or len(info.shape) not in (2, 4) or not info.count or is_lookup(info):
        return False
    rows = info.shape[0]
    plain = is_parameter(info.name, info.dtype)
    return plain and min(rows, info.count // rows) >= _LEAST and info.count <= _LARGEST


def _counted(values: Any) -> tuple[int, int]:
    """Count the zeros, and the rows that repeat an earlier one."""
    zeros, rows = 0, 0
    seen: set[int] = set()
    for part in values.rows():
        zeros += int((part == 0).sum())
        rows += len(part)
        seen.update(hash(row.tobytes()) for row in part)
    return zeros, rows - len(seen)


def _entropy(values: Any) -> float:
    """Return the entropy of the values of some rows, in bits: -Σ p log2 p."""
    import numpy as np

    first: NDArray[Any] = next(iter(values.rows(_SAMPLED)))
    _, counts = np.unique(first, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum()) + 0.0
