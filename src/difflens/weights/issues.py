"""What may be wrong with a tensor of weights: one rule a code, each with its number and advice.

Limits depend on what a tensor is: a bias of zeros is how training begins, a matrix of zeros is a
fault. The seeds' absolute limits (a weight above 10) are not kept: they say nothing across kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..measure.extremes import LARGEST
from ..records import Severity, TensorInfo
from ..weight_results import IssueCode, WeightConfig, WeightIssue, WeightStatistics
from .kinds import MATRICES, VECTORS, Kind
from .statistics import NORMAL_TAILS

ADVICE: dict[IssueCode, str] = {
    IssueCode.NON_FINITE: "do not use these weights: go back to the last checkpoint that is finite,"
    " and look for the step at which the loss or a gradient stopped being so",
    IssueCode.SATURATED: "store or train it in a type with a wider range, such as BF16 or F32: "
    "what was larger has been cut off",
    IssueCode.ALL_ZERO: "see whether it was meant to begin at zero and has not been trained: "
    "is it in the optimiser, does a gradient reach it?",
    IssueCode.CONSTANT: "initialise it at random: units with equal weights get equal gradients "
    "and stay equal",
    IssueCode.DEAD_UNITS: "lower the learning rate, use an activation that does not die (leaky "
    "ReLU, GELU), or initialise these units anew",
    IssueCode.ZERO_ROWS: "if it was not pruned on purpose, record activations: they tell whether "
    "these units are dead",
    IssueCode.MOSTLY_ZERO: "if it was not pruned on purpose, look at weight decay and at whether "
    "a gradient reaches it",
    IssueCode.SCALE: "compare with the initialisation meant for its fan-in (He, Xavier), and look "
    "at weight decay, the learning rate and normalisation before it",
    IssueCode.EXTREME: "look at these weights: a damaged file flips bits, a spike in training "
    "leaves single large weights; clip gradients or decay weights where training made them",
    IssueCode.SKEWED: "see whether one sign is meant (a gate, a count); else look at the "
    "initialisation and at what precedes the layer",
    IssueCode.HEAVY_TAILED: "watch the gradients' norms, and quantise by blocks or channels: one "
    "scale for the whole tensor would lose the small weights",
}
_ROUNDED = ("F16", "BF16", "F32", "F64")  # scaled formats use their largest number on purpose


class Case(NamedTuple):
    """A tensor and all that is known of it."""

    info: TensorInfo
    kind: Kind
    statistics: WeightStatistics
    constant: bool
    farthest: float | None  # the largest robust |z|
    zero_rows: int | None
    dead_units: int | None  # of those zero rows that stayed silent; None: no activations
    rows: int | None
    scale_to_he: float | None
    config: WeightConfig


class Found(NamedTuple):
    """What a rule found: how bad, in words and in numbers."""

    severity: Severity
    text: str
    evidence: dict[str, float]


def issues(case: Case, place: int) -> tuple[WeightIssue, ...]:
    """Go through all rules; of values that are all equal nothing further is said."""
    found = list(_told(case))
    return tuple(
        WeightIssue(
            code=code, severity=each.severity, text=each.text, evidence=each.evidence,
            advice=ADVICE[code], layer_index=place, name=case.info.name,
        )
        for code, each in found
    )  # fmt: skip


def _told(case: Case) -> Iterator[tuple[IssueCode, Found]]:
    for code, rule in RULES.items():
        if case.kind.word == "buffer" and code not in _OF_BUFFERS:
            continue
        each = rule(case)
        if each is not None:
            yield code, each
            if code in _LAST:
                return


def _non_finite(case: Case) -> Found | None:
    told = case.statistics
    if not told.nonfinite:
        return None
    numbers: dict[str, float] = {"nan": told.nan, "positive_infinite": told.positive_infinite,
               "negative_infinite": told.negative_infinite, "count": told.count}  # fmt: skip
    text = f"{told.nonfinite:,} of {told.count:,} values are NaN or infinite"
    return Found("critical", text, numbers)


def _saturated(case: Case) -> Found | None:
    told, limit = case.statistics, LARGEST.get(case.info.dtype)
    if told.max is None or told.min is None or limit is None or case.info.dtype not in _ROUNDED:
        return None
    largest = max(told.max, -told.min)
    if largest < limit:
        return None
    text = f"the largest magnitude is the largest number {case.info.dtype} has"
    return Found("critical", text, {"largest": largest, "limit": limit})


def _all_zero(case: Case) -> Found | None:
    told = case.statistics
    if not told.count or told.zeros < told.count:
        return None
    usual = case.kind.word in VECTORS
    return Found("info" if usual else "high", "all values are zero", {"zeros": told.zeros})


def _constant(case: Case) -> Found | None:
    told = case.statistics
    finite = told.count - told.nonfinite
    if not case.constant or told.max is None or told.min is None or finite < 2:
        return None
    usual = case.kind.word in VECTORS
    numbers = {"min": told.min, "max": told.max, "tolerance": case.config.constant_tolerance}
    return Found("info" if usual else "high", f"all values are {told.max:.4g}", numbers)


def _dead_units(case: Case) -> Found | None:
    if not case.dead_units or not case.rows:
        return None
    share = case.dead_units / case.rows
    numbers = {"dead_units": case.dead_units, "units": case.rows, "share": share}
    text = f"{case.dead_units:,} of {case.rows:,} units have no weights and never were active"
    return Found(_by_share(share, case.config) or "low", text, numbers)


def _zero_rows(case: Case) -> Found | None:
    rest = (case.zero_rows or 0) - (case.dead_units or 0)
    if rest <= 0 or not case.rows:
        return None
    share = rest / case.rows
    severity = _by_share(share, case.config)
    if severity is None or case.kind.word == "embedding":  # rows of tokens that are not used
        severity = "info"
    numbers = {"zero_rows": rest, "rows": case.rows, "share": share,
               "tolerance": case.config.zero_tolerance}  # fmt: skip
    text = f"all weights of {rest:,} of {case.rows:,} output units are zero"
    return Found(severity, text, numbers)


def _by_share(share: float, config: WeightConfig) -> Severity | None:
    words: tuple[Severity, ...] = ("low", "medium", "high")
    passed = [word for word, least in zip(words, config.zero_rows, strict=True) if share >= least]
    return passed[-1] if passed else None


def _mostly_zero(case: Case) -> Found | None:
    share = case.statistics.near_zero_fraction
    if case.kind.word not in MATRICES or share is None or share <= case.config.zero_fraction:
        return None
    numbers = {"near_zero_fraction": share, "zeros": case.statistics.zeros,
               "limit": case.config.zero_fraction}  # fmt: skip
    return Found("low", f"{share:.0%} of the weights are zero", numbers)


def _scale(case: Case) -> Found | None:
    ratio, limit = case.scale_to_he, case.config.scale_ratio
    if ratio is None or case.kind.word not in MATRICES or 1 / limit <= ratio <= limit:
        return None
    text = f"the rms is {ratio:.3g} times the deviation that He et al. (2015) begin with"
    return Found("medium", text, {"scale_to_he": ratio, "limit": limit,
                                  "fan_in": case.kind.fan_in or 0})  # fmt: skip


def _extreme(case: Case) -> Found | None:
    config = case.config
    limit = config.extreme_z_vectors if case.kind.word in VECTORS else config.extreme_z
    if case.farthest is None or case.farthest <= limit:
        return None
    text = f"the farthest value is {case.farthest:.3g} robust deviations off the median"
    return Found("medium", text, {"robust_z": case.farthest, "limit": limit})


def _skewed(case: Case) -> Found | None:
    told, limit = case.statistics, case.config.skewness
    skewness = told.skewness_corrected
    if not _has_shape(case) or skewness is None or abs(skewness) <= limit:
        return None
    return Found("low", f"skewness {skewness:.3g}", {"skewness": skewness, "limit": limit})


def _heavy_tailed(case: Case) -> Found | None:
    told, limit = case.statistics, case.config.kurtosis
    kurtosis, tails = told.kurtosis_corrected, told.tail_ratio
    if not _has_shape(case) or kurtosis is None or tails is None or kurtosis <= limit:
        return None
    # One far value makes a large kurtosis and no heavy tail: quantiles do not notice it.
    wider = tails / NORMAL_TAILS
    if wider <= case.config.tail_ratio:
        return None
    text = f"excess kurtosis {kurtosis:.3g}, tails {wider:.3g} times as wide as a normal law's"
    return Found("low", text, {"kurtosis": kurtosis, "limit": limit, "tail_ratio": tails,
                               "normal_tail_ratio": NORMAL_TAILS})  # fmt: skip


def _has_shape(case: Case) -> bool:
    return case.kind.word not in VECTORS and case.statistics.count >= case.config.shape_values


RULES: dict[IssueCode, Callable[[Case], Found | None]] = {
    IssueCode.NON_FINITE: _non_finite,
    IssueCode.SATURATED: _saturated,
    IssueCode.ALL_ZERO: _all_zero,
    IssueCode.CONSTANT: _constant,
    IssueCode.DEAD_UNITS: _dead_units,
    IssueCode.ZERO_ROWS: _zero_rows,
    IssueCode.MOSTLY_ZERO: _mostly_zero,
    IssueCode.SCALE: _scale,
    IssueCode.EXTREME: _extreme,
    IssueCode.SKEWED: _skewed,
    IssueCode.HEAVY_TAILED: _heavy_tailed,
}
_OF_BUFFERS = frozenset({IssueCode.NON_FINITE})
_LAST = frozenset({IssueCode.ALL_ZERO, IssueCode.CONSTANT})
