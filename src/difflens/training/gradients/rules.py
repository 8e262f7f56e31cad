"""The rules of a layer's health: each measures one thing, and says what it was held against.

One rule alone can be critical. Counting rules, three of which made a critical layer in the
reference, let a smooth norm of 10⁹ pass for a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log, log1p
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..records.gradients import FlowCharacteristics, LayerHealth, RiskFactor
from .comparison import Standing
from .flow import Jump, jumps, log_norms, risen
from .settings import GradientThresholds
from .signals import LayerSignal, broken, nonfinite_records, quantiles
from .verdicts import NO_VERDICT, Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Case(NamedTuple):
    """All that the rules look at: a layer over the whole run, and in its latest window."""

    whole: LayerSignal
    late: LayerSignal
    late_flow: FlowCharacteristics
    standing: Standing
    limits: GradientThresholds
    stability_threshold: float
    window: int
    thinned: bool = False
    verdict: Verdict = NO_VERDICT  # of `diagnose`, on the run

    @property
    def since(self) -> int:
        """The first step of the latest window."""
        return int(self.late.steps[0])


def risks(case: Case) -> tuple[RiskFactor, ...]:
    """Ask every rule; without records, or not trained, a layer has what `diagnose` says of it."""
    named = case.verdict.of_layer(case.whole.name)
    if not len(case.whole.norms) or not case.whole.trainable:
        return tuple(named)
    rules = (
        _nonfinite,
        _dead,
        _jumps,
        _absolute,
        _growing,
        _vanishing,
        _mostly_zero,
        _underflow,
        _unstable,
        _oscillating,
        _weight_growth,
    )
    return (*named, *(risk for rule in rules for risk in rule(case)))


def _risk(
    rule: str,
    severity: LayerHealth,
    text: str,
    measured: float,
    threshold: float,
    *,
    since: int | None = None,
    recent: bool = True,
    growing: bool = False,
) -> RiskFactor:
    both = measured > 0 and threshold > 0
    excess = abs(log(measured / threshold)) if both else log1p(abs(measured - threshold))
    return RiskFactor(
        rule=rule,
        severity=severity,
        text=text,
        measured=measured,
        threshold=threshold,
        excess=excess,
        since_step=since,
        recent=recent,
        growing=growing,
    )


def _nonfinite(case: Case) -> Iterator[RiskFactor]:
    count = nonfinite_records(case.whole)
    if not count:
        return
    odd = np.flatnonzero(broken(case.whole))
    first = int(case.whole.steps[odd[0]]) if len(odd) else case.whole.first_nonfinite
    text = f"not finite in {_records(count)}, first at step {first}"
    recent = bool(broken(case.late).any())
    yield _risk("non-finite", "Critical", text, count, 0, since=first, recent=recent)


def _dead(case: Case) -> Iterator[RiskFactor]:
    norms = case.whole.norms
    alive = np.flatnonzero(norms != 0)
    start = int(alive[-1]) + 1 if len(alive) else 0
    silent, least = len(norms) - start, case.limits.least_dead
    if silent < max(least, min(case.window, len(norms)) if len(alive) else least):
        return
    since = int(case.whole.steps[start])
    text = f"the gradient is exactly zero in the last {_records(silent)}, since step {since}"
    yield _risk("dead", "Critical", text, silent, least, since=since)


def _jumps(case: Case) -> Iterator[RiskFactor]:
    jumped = jumps(log_norms(case.whole), case.limits)
    if case.thinned:  # points of a long run are means; its latest frames show every jump
        known = {each.step for each in jumped}
        jumped += [e for e in jumps(log_norms(case.late), case.limits) if e.step not in known]
    lasting = [each for each in jumped if each.holds]
    if lasting:
        yield _jump("exploding", "Critical", lasting[0], "and stays there", case, recent=True)
        return
    climb = risen(log_norms(case.whole), log_norms(case.late), case.limits)
    if climb is not None:
        text = (
            f"since step {climb.step} the norm is far above its course, at the end "
            f"{climb.ratio:.3g} times the median of all records (robust z {climb.z:.3g})"
        )
        yield _risk(
            "exploding",
            "Critical",
            text,
            climb.ratio,
            case.limits.growth_critical,
            since=climb.step,
            growing=True,
        )
        return
    passing = sorted(jumped, key=lambda each: (each.step >= case.since, each.ratio))
    if passing:
        worst = passing[-1]
        recent = worst.step >= case.since
        often = f"{len(jumped)} such jumps" if len(jumped) > 1 else "and came down again"
        yield _jump("spike", "Warning", worst, often, case, recent=recent)


def _jump(
    rule: str, severity: LayerHealth, jump: Jump, after: str, case: Case, *, recent: bool
) -> RiskFactor:
    text = (
        f"at step {jump.step} the norm rose to {jump.ratio:.3g} times the median of the records "
        f"before it (robust z {jump.z:.3g}), {after}"
    )
    return _risk(
        rule,
        severity,
        text,
        jump.ratio,
        case.limits.jump_ratio,
        since=jump.step,
        recent=recent,
        growing=_rises(case),
    )


def _absolute(case: Case) -> Iterator[RiskFactor]:
    finite = case.late.norms[np.isfinite(case.late.norms)]
    limit = case.limits.absolute_norm
    if len(finite) and (middle := quantiles(finite, (0.5,))[0]) > limit:
        text = f"the median norm of the window is {middle:.3g}, above {limit:.3g}"
        yield _risk("absolute", "Critical", text, middle, limit, since=case.since)


def _growing(case: Case) -> Iterator[RiskFactor]:
    flow, limits = case.late_flow, case.limits
    if not _rises(case) or flow.growth is None or flow.growth < limits.growth_warning:
        return
    severe = flow.growth >= limits.growth_critical
    text = (
        f"the norm grows by {flow.trend_strength:.3g} of its logarithm per 100 steps, "
        f"{flow.growth:.3g} times over the window (q = {flow.trend_q:.2g})"
    )
    yield _risk(
        "growing",
        "Critical" if severe else "Warning",
        text,
        flow.growth,
        limits.growth_critical if severe else limits.growth_warning,
        since=case.since,
        growing=True,
    )


def _rises(case: Case) -> bool:
    flow = case.late_flow
    return (
        flow.trend_q is not None
        and flow.trend_q <= case.limits.level
        and (flow.trend_strength or 0) > 0
    )


def _vanishing(case: Case) -> Iterator[RiskFactor]:
    limits, standing = case.limits, case.standing
    share = standing.share_below(limits.vanishing)
    if share < limits.vanishing_share:
        return
    severe = standing.share_below(limits.vanishing_critical) >= limits.vanishing_share
    limit = limits.vanishing_critical if severe else limits.vanishing
    ratio = float(np.exp(np.median(standing.gaps)))
    text = (
        f"{standing.measure} is {ratio:.2g} of the median layer of its role, below {limit:g} in "
        f"{100 * share:.0f} % of the window"
    )
    flow = case.late_flow
    falls = flow.trend_q is not None and flow.trend_q <= limits.level
    yield _risk(
        "vanishing",
        "Critical" if severe else "Warning",
        text,
        ratio,
        limit,
        since=case.since,
        growing=falls and (flow.trend_strength or 0) < 0,
    )


def _mostly_zero(case: Case) -> Iterator[RiskFactor]:
    share = _median(case.late.zeros)
    # An embedding has a gradient only where a batch has its tokens.
    if share is None or share == 1 or "embedding" in case.whole.kind.lower():
        return
    if share > case.limits.zero_share:
        text = f"{100 * share:.4g} % of the gradient's elements are exactly zero"
        yield _risk("mostly-zero", "Warning", text, share, case.limits.zero_share, since=case.since)


def _underflow(case: Case) -> Iterator[RiskFactor]:
    if case.whole.dtype.upper() not in {"F16", "FLOAT16"} or case.late.max_abs is None:
        return
    largest = _median(case.late.max_abs)
    if largest is not None and 0 < largest < case.limits.underflow:
        text = f"the largest element is {largest:.2g}, below the least number of 16-bit floats"
        yield _risk("underflow", "Warning", text, largest, case.limits.underflow, since=case.since)


def _unstable(case: Case) -> Iterator[RiskFactor]:
    steady, limit = case.late_flow.stability_measure, case.stability_threshold
    if steady is None or case.late_flow.samples < case.limits.least_records or steady >= limit:
        return
    text = (
        f"{100 * steady:.0f} % of the norms lie within a factor 2 of their trend, "
        f"{100 * limit:g} % wanted"
    )
    yield _risk("unstable", "Warning", text, steady, limit, since=case.since, growing=_rises(case))


def _oscillating(case: Case) -> Iterator[RiskFactor]:
    flow = case.late_flow
    if not flow.is_oscillating or flow.oscillation_q is None:
        return
    period = (
        "" if flow.period_steps is None else f", strongest period {flow.period_steps:.3g} steps"
    )
    text = (
        f"the norm swings: lag-1 correlation {flow.lag1:.2g}{period} (q = {flow.oscillation_q:.2g})"
    )
    yield _risk(
        "oscillating", "Warning", text, flow.oscillation_q, case.limits.level, since=case.since
    )


def _weight_growth(case: Case) -> Iterator[RiskFactor]:
    weights = case.late.weight_norms
    # The first window of a run is where weights grow from nothing.
    if weights is None or len(case.whole.norms) < 2 * case.window:
        return
    known = weights[np.isfinite(weights)]
    part = max(1, len(known) // 10)
    if len(known) < case.limits.least_records or not (first := float(np.median(known[:part]))) > 0:
        return
    factor = float(np.median(known[-part:])) / first
    if factor >= case.limits.weight_growth:
        text = f"the weights grew {factor:.3g} times over the window"
        yield _risk(
            "weight-growth",
            "Warning",
            text,
            factor,
            case.limits.weight_growth,
            since=case.since,
            growing=True,
        )


def _median(values: NDArray[np.float64] | None) -> float | None:
    if values is None or not (known := values[np.isfinite(values)]).size:
        return None
    return float(np.median(known))


def _records(number: int) -> str:
    return f"{number} record{'' if number == 1 else 's'}"
