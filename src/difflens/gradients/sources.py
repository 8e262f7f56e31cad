"""What makes training unstable: the layers' broken rules gathered by kind, on one scale.

Which layers are affected is what their own health says, so that both never disagree. Only
stagnation is judged here: it takes the updates, which no rule of a gradient looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..network_results import InstabilitySource, InstabilityType
from ..stats.oscillation import FEWEST, oscillation
from .flow import log_norms
from .thresholds import GradientThresholds

if TYPE_CHECKING:
    from ..gradient_results import LayerGradientDetails
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
    """Gather one source a kind, its layers from the worst to the least; what is over is left out.

    A spike that came down before the window is no instability now; a norm that was not finite
    counts at any time.
    """
    found: dict[InstabilityType, list[_Affected]] = {}
    bounds = limits or GradientThresholds()
    for signal in signals.layers:
        if signal.name in details:
            for kind, affected in _broken(signal, details[signal.name], window, bounds):
                found.setdefault(kind, []).append(affected)
        still = _still(signal, window)
        if still is not None:
            found.setdefault(InstabilityType.STAGNATION, []).append(still)
    return tuple(_source(kind, found[kind]) for kind in InstabilityType if kind in found)


def _broken(
    signal: LayerSignal, detail: LayerGradientDetails, window: int, limits: GradientThresholds
) -> list[tuple[InstabilityType, _Affected]]:
    """Give each kind once, by the worst of its rules."""
    worst = {}
    for risk in getattr(detail.health_metrics, "risks", ()):
        kind = KINDS.get(risk.rule)
        if kind is None or kind in worst or not (risk.recent or risk.rule == "non-finite"):
            continue
        share = _SHARES[kind](signal, window, limits)
        worst[kind] = _Affected(signal.name, share, risk.text, risk.since_step)
    return list(worst.items())


def _share(flags: object, least: int) -> float:
    """Give the share of points; what was flagged shows at one point at least."""
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
    """Give the share of the variance that swings."""
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
    told = f"no update moves it since step {since}, although it has gradients"
    return _Affected(signal.name, share, told, since)


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
