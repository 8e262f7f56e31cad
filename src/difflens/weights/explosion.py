"""Which gradients of a step explode: over the threshold, far above the other layers, not finite.

One scale for all: how many times the threshold a norm is, or how many times ten of its peers'
median, whichever is more. Layers are compared with the others after all were read, so their order
does not matter; a mean of those seen so far, itself included, can never be exceeded by much.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp, isfinite, ldexp, log, sqrt
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidConfig
from ..kept import Kept
from ..measure.values import Values
from ..records import Missing
from ..weight_results import (
    ExplodingLayer,
    ExplosionSeverity,
    GradientExplosionAnalysis,
    LayerGradient,
    WeightConfig,
)
from .handed import Tensors, opened
from .moments import Moments
from .outliers import scale_of
from .streaming import Counts, finite_of

_BANDS = (ExplosionSeverity.MEDIUM, ExplosionSeverity.HIGH, ExplosionSeverity.CRITICAL)
_ORDER = (ExplosionSeverity.NONE, ExplosionSeverity.LOW, *_BANDS)
_ACTIONS = {
    ExplosionSeverity.LOW: "watch it; clip gradients if it stays",
    ExplosionSeverity.MEDIUM: "clip gradients, or lower the learning rate",
    ExplosionSeverity.HIGH: "clip gradients and lower the learning rate",
    ExplosionSeverity.CRITICAL: "skip this step, clip gradients and lower the learning rate",
}


class Size(NamedTuple):
    """One gradient's size over its finite values."""

    name: str
    counts: Counts
    norm: float | None
    rms: float | None
    largest: float | None
    weight_norm: float | None = None


def explosion(
    gradients: Any,
    threshold: float,
    config: WeightConfig,
    *,
    weights: Any = None,
    history: Sequence[float] = (),
) -> GradientExplosionAnalysis:
    """Measure every gradient, compare each with the threshold and with the others, and judge."""
    limit = _threshold(threshold)
    norms = {} if weights is None else _weight_norms(weights)
    with opened(gradients) as tensors:
        sizes = [_size(tensors.values(info), norms.get(info.name)) for info in tensors.infos]
    layers = tuple(_layer(place, sizes, limit, config) for place in range(len(sizes)))
    found = tuple(each for each in (_exploding(each, config) for each in layers) if each)
    return _summary(tensors, layers, found, config, limit=limit, history=history)


def _threshold(given: Any) -> float:
    try:
        limit = float(given)
    except (TypeError, ValueError):
        raise InvalidConfig(f"threshold is {given!r}, not a number") from None
    if not isfinite(limit) or limit <= 0:
        raise InvalidConfig(f"threshold is {limit}; it must be a finite number above 0")
    return limit


def _weight_norms(weights: Any) -> dict[str, float | None]:
    with opened(weights) as tensors:
        return {info.name: _size(tensors.values(info), None).norm for info in tensors.infos}


def _size(values: Values, weight_norm: float | None) -> Size:
    counts, moments, largest = Counts(), Moments(), 0.0
    for piece in values.pieces():
        finite, some = finite_of(piece)
        counts = counts.plus(some)
        moments = moments.plus(Moments.of(finite))
        if finite.size:
            largest = max(largest, float(np.abs(finite).max()))
    if not counts.finite:
        return Size(values.info.name, counts, None, None, None, weight_norm)
    return Size(values.info.name, counts, moments.l2, moments.rms, largest, weight_norm)


def _layer(place: int, sizes: list[Size], limit: float, config: WeightConfig) -> LayerGradient:
    size = sizes[place]
    others = [each.norm for at, each in enumerate(sizes) if at != place and each.norm]
    ratio, z, stands_out = _among(size.norm, others, config)
    over = None if size.norm is None else _quotient(size.norm, limit)
    score = max(over or 0.0, ratio / config.peer_ratio if stands_out and ratio else 0.0)
    weight = size.weight_norm
    weighed = _quotient(size.norm, weight) if weight and size.norm is not None else None
    nonfinite = size.counts.total - size.counts.finite
    return LayerGradient(
        layer_index=place, name=size.name, gradient_norm=size.norm, rms=size.rms,
        max_abs=size.largest, count=size.counts.total, nonfinite=nonfinite,
        threshold_ratio=over, peer_ratio=ratio, peer_z=z, weight_norm=weight, weight_ratio=weighed,
        severity=_severity(size, over, score, weighed, config),
        missing=_reasons(size, others, config),
    )  # fmt: skip


def _among(
    norm: float | None, others: list[float], config: WeightConfig
) -> tuple[float | None, float | None, bool]:
    """Give the ratio to the others' median, the robust z of its logarithm, and whether it is far.

    z = 0.6745 (ln g - median) / MAD over the other layers (Iglewicz & Hoaglin 1993).
    """
    if not norm or len(others) < config.peers:
        return None, None, False
    logs = [log(each) for each in others]
    middle = median(logs)
    ratio = _quotient(norm, median(others))
    far = [abs(each - middle) for each in logs]
    scale = scale_of(middle, median(far), sum(far) / len(far))
    if scale is None:  # all others are equal: any ratio is far
        return ratio, None, True
    z = float(scale.z(log(norm)))
    return ratio, z, z > config.peer_z


def _severity(
    size: Size, over: float | None, score: float, weighed: float | None, config: WeightConfig
) -> ExplosionSeverity:
    if size.counts.finite < size.counts.total:
        return ExplosionSeverity.CRITICAL
    if over is None:  # nothing in it, or a norm beyond every number
        return ExplosionSeverity.CRITICAL if size.counts.finite else ExplosionSeverity.UNKNOWN
    further = [
        _quotient(measured, limit)
        for measured, limit in (
            (size.rms, config.rms_threshold), (weighed, config.weight_ratio_threshold)
        )
        if limit is not None and measured is not None
    ]  # fmt: skip
    passed = [each for each in (over, *further) if each is not None and each > 1]
    return banded(max([score, *passed]), config) if passed else ExplosionSeverity.NONE


def banded(score: float, config: WeightConfig) -> ExplosionSeverity:
    """Give the word for so many times the threshold."""
    found = ExplosionSeverity.LOW
    for word, least in zip(_BANDS, config.explosion_bands, strict=True):
        if score > least:
            found = word
    return found


def _exploding(layer: LayerGradient, config: WeightConfig) -> ExplodingLayer | None:
    if layer.severity in (ExplosionSeverity.NONE, ExplosionSeverity.UNKNOWN):
        return None
    over = [
        name
        for name, ratio, limit in (
            ("norm", layer.threshold_ratio, 1.0),
            ("rms", layer.rms, config.rms_threshold),
            ("weight_ratio", layer.weight_ratio, config.weight_ratio_threshold),
        )
        if ratio is not None and limit is not None and ratio > limit
    ]
    if layer.nonfinite:
        over.append("finite")
    elif layer.threshold_ratio is None:
        over.append("norm")  # so far that the ratio is no number
    return ExplodingLayer(
        layer_index=layer.layer_index, gradient_norm=layer.gradient_norm, severity=layer.severity,
        recommended_action=_action(layer), name=layer.name, nonfinite=layer.nonfinite,
        over=tuple(over),
        missing=_kept_reasons(layer, "gradient_norm"),
    )  # fmt: skip


def _kept_reasons(record: Kept, *fields: str) -> tuple[Missing, ...]:
    return tuple(each for each in getattr(record, "missing", ()) if each.field in fields)


def _action(layer: LayerGradient) -> str:
    """Say what to do, with the number that calls for it."""
    if layer.nonfinite:
        said = f"{layer.nonfinite:,} of {layer.count:,} values are NaN or infinite"
        return f"{said}: skip this step, and look for the first layer and step that is not finite"
    if layer.threshold_ratio is None:
        return "norm or ratio beyond every number of 64 bits: skip this step"
    said = f"norm {layer.gradient_norm:.3g}, {layer.threshold_ratio:.3g} times the threshold"
    if layer.peer_ratio is not None:
        said += f" and {layer.peer_ratio:.3g} times the median of the other layers"
    return f"{said}: {_ACTIONS[layer.severity]}"


def _summary(
    tensors: Tensors,
    layers: tuple[LayerGradient, ...],
    found: tuple[ExplodingLayer, ...],
    config: WeightConfig,
    *,
    limit: float,
    history: Sequence[float],
) -> GradientExplosionAnalysis:
    norms = [each.gradient_norm for each in layers if each.gradient_norm is not None]
    whole = _together(norms)
    finite = sum(each.count - each.nonfinite for each in layers)
    facts: dict[str, Any] = {}
    if norms:
        exponent = frexp(max(norms))[1]  # the squares of norms may overflow
        scaled = np.ldexp(np.array(norms), -exponent)
        facts = {
            "max_gradient_norm": max(norms), "median_gradient_norm": median(norms),
            "mean_gradient_norm": ldexp(float(scaled.mean()), exponent),
            "std_gradient_norm": ldexp(float(scaled.std()), exponent), "global_norm": whole,
            "rms": None if whole is None or not finite else whole / sqrt(finite),
        }  # fmt: skip
    clip, why = _clip_value(history, config)
    overall = max((each.severity for each in layers if each.severity in _ORDER), key=_ORDER.index,
                  default=ExplosionSeverity.UNKNOWN)  # fmt: skip
    if config.global_norm_threshold is not None and whole is not None:
        times = whole / config.global_norm_threshold
        if times > 1:
            overall = max(overall, banded(times, config), key=_rank)
    return GradientExplosionAnalysis(
        exploding_layers=found, explosion_ratio=len(found) / len(layers) if layers else None,
        overall_severity=overall, threshold=limit, layer_count=len(layers), clip_value=clip,
        mitigation_recommendations=_advice(layers, found, limit, clip, len(history)),
        nonfinite=sum(each.nonfinite for each in layers), layers=layers,
        skipped=tensors.skipped, missing=why, **facts,
    )  # fmt: skip


def _rank(word: ExplosionSeverity) -> int:
    return _ORDER.index(word) if word in _ORDER else -1


def _together(norms: list[float]) -> float | None:
    """√Σ‖g‖² over the layers; None where it is beyond every number."""
    from .moments import l2_norm

    whole = l2_norm(np.array(norms)) if norms else None
    return whole if whole is not None and isfinite(whole) else None


def _clip_value(
    history: Sequence[float], config: WeightConfig
) -> tuple[float | None, tuple[Missing, ...]]:
    """Give the quantile of past global norms that only few steps are above."""
    past = [float(each) for each in history if isfinite(float(each)) and float(each) >= 0]
    if len(past) < config.clip_history:
        needs = f"global norms of {config.clip_history} past steps (history=)"
        return None, (Missing("clip_value", needs, f"there are {len(past)}"),)
    return float(np.quantile(past, config.clip_quantile)), ()


def _advice(
    layers: tuple[LayerGradient, ...],
    found: tuple[ExplodingLayer, ...],
    limit: float,
    clip: float | None,
    past: int,
) -> tuple[str, ...]:
    """Say what would help, each with what was measured; nothing where nothing explodes."""
    said = []
    bad = [each.name for each in found if each.nonfinite]
    if bad:
        said.append(f"find where values stop being finite: {len(bad)} layers, first {bad[0]}")
    over = [each for each in found if "norm" in each.over]
    if over:
        said.append(f"{len(over)} of {len(layers)} layers are over the norm of {limit:g}: "
                    + ("lower the learning rate" if 2 * len(over) > len(layers)
                       else f"look at {over[0].name} first"))  # fmt: skip
        if clip is not None:
            said.append(f"clip the global norm at {clip:.3g}: few of {past} past steps were above")
        else:
            said.append("clip the global norm; past global norms would tell at which value")
    return tuple(said)


def _quotient(part: float, whole: float | None) -> float | None:
    """Divide; None where the quotient is no number of 64 bits."""
    if not whole:
        return None
    try:
        ratio = part / whole
    except OverflowError:
        return None
    return ratio if isfinite(ratio) else None


def _reasons(size: Size, others: list[float], config: WeightConfig) -> tuple[Missing, ...]:
    reasons = []
    if size.weight_norm is None:
        told = ("weights= with an array of this name", "there is none")
        reasons += [("weight_norm", *told), ("weight_ratio", *told)]
    if len(others) < config.peers:
        told = (f"{config.peers} other layers with a gradient", f"there are {len(others)}")
        reasons += [("peer_ratio", *told), ("peer_z", *told)]
    elif size.norm:
        reasons.append(("peer_z", "other layers that differ", "their norms are all equal"))
    return tuple(Missing(*each) for each in reasons)
