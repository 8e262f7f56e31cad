"""What may be wrong with a tensor of weights: one rule per code, each with a number and advice.

Limits depend on the kind of tensor: a bias of zeros is usual at the start of training, a matrix of
zeros is a fault. There are no absolute limits (a weight above 10), which would suit one kind only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from difflens.core.findings import Severity
from difflens.core.records import TensorInfo
from difflens.measure.extremes import LARGEST

from ..anatomy.roles import MATRICES, VECTORS, Kind
from .records import IssueCode, WeightConfig, WeightIssue, WeightStatistics
from .statistics import NORMAL_TAILS

ADVICE: dict[IssueCode, str] = {
    IssueCode.NON_FINITE: "do not use these weights: return to the last checkpoint without such "
    "values, and look for the step at which the loss or a gradient stopped being finite",
    IssueCode.SATURATED: "store or train it in a type with a wider range, such as BF16 or F32: "
    "larger values have been cut off",
    IssueCode.ALL_ZERO: "check whether it starts at zero on purpose and was not trained yet: "
    "is it in the optimizer, does a gradient reach it?",
    IssueCode.CONSTANT: "initialise it at random: units with equal weights get equal gradients "
    "and stay equal",
    IssueCode.DEAD_UNITS: "lower the learning rate, use an activation that does not die (leaky "
    "ReLU, GELU), or initialise these units anew",
    IssueCode.ZERO_ROWS: "if it was not pruned on purpose, record activations: they show whether "
    "these units are dead",
    IssueCode.MOSTLY_ZERO: "if it was not pruned on purpose, check weight decay and whether "
    "a gradient reaches it",
    IssueCode.SCALE: "compare it with the usual initialisation for its fan-in (He, Xavier), and "
    "check weight decay, the learning rate and the normalisation before it",
    IssueCode.EXTREME: "look at these weights: a damaged file has flipped bits, a spike in "
    "training leaves single large weights; clip gradients or use weight decay against those",
    IssueCode.SKEWED: "check whether one sign is intended (a gate, a count); if not, look at the "
    "initialisation and at the layer before",
    IssueCode.HEAVY_TAILED: "watch the gradient norms, and quantise by blocks or channels: one "
    "scale for the whole tensor would lose the small weights",
}
_ROUNDED = ("F16", "BF16", "F32", "F64")  # scaled formats reach their largest number on purpose


class Case(NamedTuple):
    """A tensor and everything that is known about it."""

    info: TensorInfo
    kind: Kind
    statistics: WeightStatistics
    constant: bool
    farthest: float | None  # the largest robust |z|
    gap: float  # how many times farther one of the farthest is than the next one
    zero_rows: int | None
    dead_units: int | None  # zero rows whose activations are zero; None: no activations
    rows: int | None
    scale_to_he: float | None
    config: WeightConfig


class _Fault(NamedTuple):
    """What a rule found: its severity, its text and its numbers."""

    severity: Severity
    text: str
    evidence: dict[str, float]


def find_issues(case: Case, layer_index: int) -> tuple[WeightIssue, ...]:
    """Apply all rules; after a tensor of equal values, or a mask, no further rule applies."""
    return tuple(
        WeightIssue(
            code=code,
            severity=fault.severity,
            text=fault.text,
            evidence=fault.evidence,
            advice=ADVICE[code],
            layer_index=layer_index,
            name=case.info.name,
        )
        for code, fault in _faults(case)
    )


def _faults(case: Case) -> Iterator[tuple[IssueCode, _Fault]]:
    for code, rule in RULES.items():
        if case.kind.word == "buffer" and code not in _OF_BUFFERS:
            continue
        fault = rule(case)
        if fault is not None:
            yield code, fault
            if code in _LAST or (code in _OF_MASKS and fault.severity == "info"):
                return


def _non_finite(case: Case) -> _Fault | None:
    statistics = case.statistics
    if not statistics.nonfinite:
        return None
    numbers: dict[str, float] = {
        "nan": statistics.nan,
        "positive_infinite": statistics.positive_infinite,
        "negative_infinite": statistics.negative_infinite,
        "count": statistics.count,
    }
    if _is_mask(case):
        return _Fault("info", "a constant or a mask: all its other values are equal", numbers)
    text = f"{statistics.nonfinite:,} of {statistics.count:,} values are NaN or infinite"
    return _Fault("critical", text, numbers)


def _is_mask(case: Case) -> bool:
    """Is it what hides positions in attention, or one number of a graph: infinite on purpose?"""
    statistics = case.statistics
    if statistics.nan or statistics.min != statistics.max:
        return False
    is_number = statistics.count == 1 and not case.info.shape
    return is_number or (not statistics.positive_infinite and case.kind.word not in VECTORS)


def _saturated(case: Case) -> _Fault | None:
    statistics, limit = case.statistics, LARGEST.get(case.info.dtype)
    if (
        statistics.max is None
        or statistics.min is None
        or limit is None
        or case.info.dtype not in _ROUNDED
    ):
        return None
    largest = max(statistics.max, -statistics.min)
    if largest < limit:
        return None
    numbers = {"largest": largest, "limit": limit}
    if statistics.max <= 0 and statistics.median in {0.0, -limit}:
        return _Fault("info", "a constant or a mask: zero and the smallest number", numbers)
    text = f"the largest magnitude is the largest number of {case.info.dtype}"
    return _Fault("critical", text, numbers)


def _all_zero(case: Case) -> _Fault | None:
    statistics = case.statistics
    if not statistics.count or statistics.zeros < statistics.count:
        return None
    usual = case.kind.word in VECTORS
    return _Fault("info" if usual else "high", "all values are zero", {"zeros": statistics.zeros})


def _constant(case: Case) -> _Fault | None:
    statistics = case.statistics
    finite = statistics.count - statistics.nonfinite
    if not case.constant or statistics.max is None or statistics.min is None or finite < 2:
        return None
    usual = case.kind.word in VECTORS
    numbers = {
        "min": statistics.min,
        "max": statistics.max,
        "tolerance": case.config.constant_tolerance,
    }
    return _Fault("info" if usual else "high", f"all values are {statistics.max:.4g}", numbers)


def _dead_units(case: Case) -> _Fault | None:
    if not case.dead_units or not case.rows:
        return None
    share = case.dead_units / case.rows
    numbers = {"dead_units": case.dead_units, "units": case.rows, "share": share}
    text = f"{case.dead_units:,} of {case.rows:,} units have zero weights and were never active"
    return _Fault(_by_share(share, case.config) or "low", text, numbers)


def _zero_rows(case: Case) -> _Fault | None:
    rest = (case.zero_rows or 0) - (case.dead_units or 0)
    if rest <= 0 or not case.rows:
        return None
    share = rest / case.rows
    severity = _by_share(share, case.config)
    if severity is None or case.kind.word == "embedding":  # rows of unused tokens
        severity = "info"
    numbers = {
        "zero_rows": rest,
        "rows": case.rows,
        "share": share,
        "tolerance": case.config.zero_tolerance,
    }
    text = f"all weights of {rest:,} of {case.rows:,} output units are zero"
    return _Fault(severity, text, numbers)


def _by_share(share: float, config: WeightConfig) -> Severity | None:
    words: tuple[Severity, ...] = ("low", "medium", "high")
    passed = [word for word, least in zip(words, config.zero_rows, strict=True) if share >= least]
    return passed[-1] if passed else None


def _mostly_zero(case: Case) -> _Fault | None:
    share = case.statistics.near_zero_fraction
    if case.kind.word not in MATRICES or share is None or share <= case.config.zero_fraction:
        return None
    numbers = {
        "near_zero_fraction": share,
        "zeros": case.statistics.zeros,
        "limit": case.config.zero_fraction,
    }
    return _Fault("low", f"{share:.0%} of the weights are zero", numbers)


def _scale(case: Case) -> _Fault | None:
    ratio, limit = case.scale_to_he, case.config.scale_ratio
    if ratio is None or case.kind.word not in MATRICES or 1 / limit <= ratio <= limit:
        return None
    text = f"the rms is {ratio:.3g} times the standard deviation of He initialisation (2015)"
    numbers = {"scale_to_he": ratio, "limit": limit, "fan_in": case.kind.fan_in or 0}
    is_high = ratio > limit * case.config.scale_high_ratio
    return _Fault("high" if is_high else "medium", text, numbers)


def _extreme(case: Case) -> _Fault | None:
    """Trained weights have far values in plenty; one far beyond the next is damage."""
    config = case.config
    limit = config.extreme_z_vectors if case.kind.word in VECTORS else config.extreme_z
    if case.farthest is None or case.farthest <= limit:
        return None
    text = f"the farthest value is {case.farthest:.3g} robust deviations from the median"
    numbers = {"robust_z": case.farthest, "limit": limit, "gap": case.gap}
    if case.gap < config.isolated_ratio:
        return _Fault("info", text, numbers)
    return _Fault("high", f"{text}, {case.gap:.3g} times as far as the next", numbers)


def _skewed(case: Case) -> _Fault | None:
    statistics, limit = case.statistics, case.config.skewness
    skewness = statistics.skewness_corrected
    if not _has_shape(case) or skewness is None or abs(skewness) <= limit:
        return None
    return _Fault("low", f"skewness {skewness:.3g}", {"skewness": skewness, "limit": limit})


def _heavy_tailed(case: Case) -> _Fault | None:
    statistics, limit = case.statistics, case.config.kurtosis
    kurtosis, tails = statistics.kurtosis_corrected, statistics.tail_ratio
    if not _has_shape(case) or kurtosis is None or tails is None or kurtosis <= limit:
        return None
    # One extreme value makes the kurtosis large, but not the tail: quantiles ignore it.
    wider = tails / NORMAL_TAILS
    if wider <= case.config.tail_ratio:
        return None
    text = f"excess kurtosis {kurtosis:.3g}, tails {wider:.3g} times as wide as normal"
    numbers = {
        "kurtosis": kurtosis,
        "limit": limit,
        "tail_ratio": tails,
        "normal_tail_ratio": NORMAL_TAILS,
    }
    return _Fault("low", text, numbers)


def _has_shape(case: Case) -> bool:
    return case.kind.word not in VECTORS and case.statistics.count >= case.config.shape_values


RULES: dict[IssueCode, Callable[[Case], _Fault | None]] = {
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
_OF_MASKS = frozenset({IssueCode.NON_FINITE, IssueCode.SATURATED})
_LAST = frozenset({IssueCode.ALL_ZERO, IssueCode.CONSTANT})
