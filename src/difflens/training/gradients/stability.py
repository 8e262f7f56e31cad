"""What makes training unstable, by kind and on one scale; and what the gradient norm will do next.

Which layers are affected is what their own health says, so that both never disagree. Only
stagnation is judged here: it takes the updates, which no rule of a gradient looks at. The outlook
is of the ln norm over all layers. Its level is 80 %, so that the interval of a norm that goes on as
before lies inside the band of 5 to 95 % of its past; at 90 % it would fill it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from difflens.core.findings import Interval
from difflens.stats.forecast import FEWEST as LEAST_POINTS
from difflens.stats.forecast import Forecast, forecast
from difflens.stats.oscillation import FEWEST, oscillation

from ..records.network import (
    InstabilitySource,
    InstabilityType,
    OutlookForecast,
    StabilityForecast,
    StabilityOutlook,
)
from .flow import log_norms
from .series import because, blank
from .settings import GradientThresholds

if TYPE_CHECKING:
    from ..records.gradients import LayerGradientDetails
    from .series import Series
    from .signals import LayerSignal, Signals

KINDS: dict[str, InstabilityType] = {
    "non-finite": InstabilityType.GRADIENT_EXPLOSION,
    "exploding": InstabilityType.GRADIENT_EXPLOSION,
    "spike": InstabilityType.GRADIENT_EXPLOSION,
    "absolute": InstabilityType.GRADIENT_EXPLOSION,
    "growing": InstabilityType.GRADIENT_EXPLOSION,
    "dead": InstabilityType.GRADIENT_VANISHING,
    "vanishing": InstabilityType.GRADIENT_VANISHING,
    "mostly-zero": InstabilityType.GRADIENT_VANISHING,
    "underflow": InstabilityType.GRADIENT_VANISHING,
    "oscillating": InstabilityType.OSCILLATION,
}
STILL = 0.99  # share of the window without any update that makes a layer stagnate
_LEAST = 3  # points of such a window


class _Affected(NamedTuple):
    layer: str
    severity: float
    text: str
    since: int | None


def instability_sources(
    signals: Signals,
    details: Mapping[str, LayerGradientDetails],
    window: int,
    limits: GradientThresholds | None = None,
) -> tuple[InstabilitySource, ...]:
    """Gather one source per kind, its layers from the worst to the least; what is over is left out.

    A spike that came down before the window is no instability now; a norm that was not finite
    counts at any time.
    """
    affected_by: dict[InstabilityType, list[_Affected]] = {}
    bounds = limits or GradientThresholds()
    for signal in signals.layers:
        if signal.name in details:
            for kind, affected in _broken(signal, details[signal.name], window, bounds):
                affected_by.setdefault(kind, []).append(affected)
        still = _still(signal, window)
        if still is not None:
            affected_by.setdefault(InstabilityType.STAGNATION, []).append(still)
    return tuple(
        _source(kind, affected_by[kind]) for kind in InstabilityType if kind in affected_by
    )


def _broken(
    signal: LayerSignal, detail: LayerGradientDetails, window: int, limits: GradientThresholds
) -> list[tuple[InstabilityType, _Affected]]:
    """Return each kind once, by the worst of its rules."""
    worst = {}
    for risk in getattr(detail.health_metrics, "risks", ()):
        kind = KINDS.get(risk.rule)
        if kind is None or kind in worst or not (risk.recent or risk.rule == "non-finite"):
            continue
        share = _SHARES[kind](signal, window, limits)
        worst[kind] = _Affected(signal.name, share, risk.text, risk.since_step)
    return list(worst.items())


def _share(flags: object, least: int) -> float:
    """Return the share of points; what was flagged shows at one point at least."""
    array = np.asarray(flags, bool)
    return max(float(array.mean()), 1 / max(least, 1)) if array.size else 1.0


def _exploded(signal: LayerSignal, window: int, limits: GradientThresholds) -> float:
    """Count points that are not finite, or above ten times the median before the window."""
    late, before = signal.norms[-window:], signal.norms[:-window]
    past = before[np.isfinite(before)]
    if not len(past):
        past = late[np.isfinite(late)][: max(1, len(late) // 4)]
    bound = limits.jump_ratio * float(np.median(past)) if len(past) else np.inf
    bound = min(bound if bound > 0 else np.inf, limits.absolute_norm)
    with np.errstate(invalid="ignore"):
        return _share(~np.isfinite(late) | (late > bound), len(late))


def _vanished(signal: LayerSignal, window: int, limits: GradientThresholds) -> float:
    """Count points of zero norm, or with nearly all elements zero; all of them where it is ratios.

    The rule of ratios to other layers asks for 80 % of the window by itself.
    """
    late = signal.norms[-window:]
    silent = late == 0
    if signal.zeros is not None:
        silent |= signal.zeros[-window:] > limits.zero_share
    return _share(silent, len(late)) if silent.any() else limits.vanishing_share


def _swinging(signal: LayerSignal, window: int, limits: GradientThresholds) -> float:
    """Return the share of the variance that swings."""
    del limits
    values = log_norms(signal).values
    for part in (values[-window:], values):
        share = oscillation(part).share if len(part) >= FEWEST else None
        if share:
            return min(share, 1.0)
    return 1 / max(window, 1)


_SHARES: dict[InstabilityType, Callable[[LayerSignal, int, GradientThresholds], float]] = {
    InstabilityType.GRADIENT_EXPLOSION: _exploded,
    InstabilityType.GRADIENT_VANISHING: _vanished,
    InstabilityType.OSCILLATION: _swinging,
}


def _still(signal: LayerSignal, window: int) -> _Affected | None:
    """Find a layer that is trained, has gradients, and is not moved by them."""
    if signal.update_norms is None or not signal.trainable:
        return None
    updates, norms = signal.update_norms[-window:], signal.norms[-window:]
    known = np.isfinite(updates)
    if known.sum() < _LEAST or not (norms[known] > 0).any():
        return None
    share = float((updates[known] == 0).mean())
    if share < STILL:
        return None
    moved = np.flatnonzero(signal.update_norms != 0)
    since = int(
        signal.steps[moved[-1] + 1 if len(moved) and moved[-1] + 1 < len(signal.steps) else 0]
    )
    text = f"no update moves it since step {since}, although it has gradients"
    return _Affected(signal.name, share, text, since)


def _source(kind: InstabilityType, affected: list[_Affected]) -> InstabilitySource:
    worst = sorted(affected, key=lambda each: -each.severity)  # ties stay in network order
    began = [each.since for each in affected if each.since is not None]
    rest = "" if len(worst) == 1 else f"; and {len(worst) - 1} more"
    return InstabilitySource(
        source_type=kind,
        affected_layers=tuple(each.layer for each in worst),
        severity=worst[0].severity,
        description=f"{worst[0].layer}: {worst[0].text}{rest}",
        since_step=min(began) if began else None,
        evidence={"layers": len(worst), "worst_layer": worst[0].layer, "worst": worst[0].text},
    )


LEVEL = 0.8
LATEST = 2000  # points forecast from
WIDER = 2.0  # by which the far interval may be wider than the near one and still be of one band
EXPLODED = log(10.0)  # above the median of the window before


def outlook(gradient: Series, window: int, *, thinned: bool) -> StabilityForecast:
    """Forecast a hundredth and a tenth of the series ahead, and say what that means."""
    values = gradient.last(LATEST).values
    n = len(values)
    if n < LEAST_POINTS:
        why = f"{n} points at which every layer has a norm, {LEAST_POINTS} are needed"
        return blank(StabilityForecast, "a longer run", why)
    before = values[:-window] if n >= 2 * window else values
    bound = float(np.median(before[-window:])) + EXPLODED
    low, high = (float(each) for each in np.quantile(values, (0.05, 0.95)))
    near, far = (forecast(values, max(1, n // part), LEVEL) for part in (100, 10))
    now = float(values[-1])
    words = [_word(each, now, (low, high), bound) for each in (near, far)]
    if words[1] == StabilityOutlook.STABLE and near and far and _spreads(near, far):
        words[1] = StabilityOutlook.UNCERTAIN
    return StabilityForecast(
        short_term_outlook=words[0],
        long_term_outlook=words[1],
        confidence_level=LEVEL,
        recommended_monitoring=_monitoring(words, near, far, gradient.gap, thinned=thinned),
        empirical_coverage=near.empirical_coverage if near else None,
        short_term=_public(near),
        long_term=_public(far),
        band=(low, high),
        explosion_bound=bound,
    )


def _word(
    made: Forecast | None, now: float, band: tuple[float, float], bound: float
) -> StabilityOutlook | None:
    if made is None:
        return None
    if not made.is_calibrated:
        return StabilityOutlook.UNCERTAIN
    if made.low > bound:
        return StabilityOutlook.DETERIORATING
    if now > bound > made.high:
        return StabilityOutlook.IMPROVING
    if band[0] <= made.low and made.high <= band[1]:
        return StabilityOutlook.STABLE
    return StabilityOutlook.UNCERTAIN


def _spreads(near: Forecast, far: Forecast) -> bool:
    """Does the interval widen with the horizon, as where nothing pulls a norm back to its past?"""
    return far.high - far.low > WIDER * (near.high - near.low)


def _public(made: Forecast | None) -> OutlookForecast | None:
    if made is None:
        return None
    ends = Interval(made.low, made.high, made.level, "adaptive conformal", made.n)
    return OutlookForecast(
        horizon=made.horizon,
        method=made.method,
        value=made.value,
        interval=ends,
        empirical_coverage=made.empirical_coverage,
        origins=made.origins,
    )


def _monitoring(
    words: list[StabilityOutlook | None],
    near: Forecast | None,
    far: Forecast | None,
    gap: float,
    *,
    thinned: bool,
) -> tuple[str, ...]:
    """Say what to look at and when: only what the forecast gives a reason for."""
    lines = []
    for word, made in zip(words, (near, far), strict=True):
        if made is None or word in {None, StabilityOutlook.STABLE}:
            continue
        ahead = f"within {made.horizon * gap:.0f} steps"
        interval = f"{made.low:.3g} to {made.high:.3g}"
        lines.append(f"the gradient norm {ahead}: its logarithm is forecast at {interval}")
    if thinned and lines:
        lines.append("the latest frames one by one: these points stand for several frames each")
    return tuple(lines)


def no_outlook(needs: str, why: str) -> StabilityForecast:
    """Say that nothing was forecast."""
    made = StabilityForecast()
    fields = [each.field for each in made.missing]
    return StabilityForecast(missing=because(needs, why, *fields))
