"""Which gradients of a step explode: above the threshold, far above other layers, or not finite.

One scale for all: the ratio of a norm to the threshold, or a tenth of its ratio to the median of
the other layers, whichever is larger. Layers are compared after all were read, so their order does
not matter. A running mean that includes the layer itself can never be exceeded by much.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp, isfinite, ldexp, log, sqrt
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from difflens.core.errors import InvalidConfig
from difflens.core.findings import Missing
from difflens.measure.values import Values
from difflens.stats.moments import Moments, l2_norm

from .records import (
    ExplodingLayer,
    ExplosionSeverity,
    GradientExplosionAnalysis,
    LayerGradient,
    WeightConfig,
)
from .statistics import scale_of
from .streaming import Counts, Tensors, finite_of, open_tensors

_BANDS = (ExplosionSeverity.MEDIUM, ExplosionSeverity.HIGH, ExplosionSeverity.CRITICAL)
_ORDER = (ExplosionSeverity.NONE, ExplosionSeverity.LOW, *_BANDS)
_ACTIONS = {
    ExplosionSeverity.LOW: "watch it; clip gradients if it persists",
    ExplosionSeverity.MEDIUM: "clip gradients, or lower the learning rate",
    ExplosionSeverity.HIGH: "clip gradients and lower the learning rate",
    ExplosionSeverity.CRITICAL: "skip this step, clip gradients and lower the learning rate",
}


class GradientSize(NamedTuple):
    """The size of one gradient, over its finite values."""

    name: str
    counts: Counts
    norm: float | None
    rms: float | None
    largest: float | None
    weight_norm: float | None = None


def find_explosion(
    gradients: Any,
    threshold: float,
    config: WeightConfig,
    *,
    weights: Any = None,
    history: Sequence[float] = (),
) -> GradientExplosionAnalysis:
    """Measure every gradient, and compare it with the threshold and with the others."""
    limit = _threshold(threshold)
    norms = {} if weights is None else _weight_norms(weights)
    with open_tensors(gradients) as tensors:
        sizes = [_size(tensors.values(info), norms.get(info.name)) for info in tensors.infos]
    layers = tuple(_layer(place, sizes, limit, config) for place in range(len(sizes)))
    exploding = tuple(each for each in (_exploding(each, config) for each in layers) if each)
    return _summary(tensors, layers, exploding, config, limit=limit, history=history)


def _threshold(value: Any) -> float:
    try:
        limit = float(value)
    except (TypeError, ValueError):
        raise InvalidConfig(f"threshold is {value!r}, not a number") from None
    if not isfinite(limit) or limit <= 0:
        raise InvalidConfig(f"threshold is {limit}; it must be a finite number above 0")
    return limit


def _weight_norms(weights: Any) -> dict[str, float | None]:
    with open_tensors(weights) as tensors:
        return {info.name: _size(tensors.values(info), None).norm for info in tensors.infos}


def _size(values: Values, weight_norm: float | None) -> GradientSize:
    counts, moments, largest = Counts(), Moments(), 0.0
    for piece in values.pieces():
        finite, some = finite_of(piece)
        counts = counts.plus(some)
        moments = moments.plus(Moments.of(finite))
        if finite.size:
            largest = max(largest, float(np.abs(finite).max()))
    if not counts.finite:
        return GradientSize(values.info.name, counts, None, None, None, weight_norm)
    return GradientSize(values.info.name, counts, moments.l2, moments.rms, largest, weight_norm)


def _layer(
    place: int, sizes: list[GradientSize], limit: float, config: WeightConfig
) -> LayerGradient:
    size = sizes[place]
    others = [each.norm for at, each in enumerate(sizes) if at != place and each.norm]
    ratio, z, stands_out = _compare_with_others(size.norm, others, config)
    over = None if size.norm is None else _quotient(size.norm, limit)
    score = max(over or 0.0, ratio / config.peer_ratio if stands_out and ratio else 0.0)
    weight = size.weight_norm
    weight_ratio = _quotient(size.norm, weight) if weight and size.norm is not None else None
    nonfinite = size.counts.total - size.counts.finite
    return LayerGradient(
        layer_index=place,
        name=size.name,
        gradient_norm=size.norm,
        rms=size.rms,
        max_abs=size.largest,
        count=size.counts.total,
        nonfinite=nonfinite,
        threshold_ratio=over,
        peer_ratio=ratio,
        peer_z=z,
        weight_norm=weight,
        weight_ratio=weight_ratio,
        severity=_severity(size, over, score, weight_ratio, config),
        missing=_missing(size, others, config),
    )


def _compare_with_others(
    norm: float | None, others: list[float], config: WeightConfig
) -> tuple[float | None, float | None, bool]:
    """Return the ratio to the median of the others, its robust z, and whether it stands out.

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
    size: GradientSize,
    over: float | None,
    score: float,
    weight_ratio: float | None,
    config: WeightConfig,
) -> ExplosionSeverity:
    if size.counts.finite < size.counts.total:
        return ExplosionSeverity.CRITICAL
    if over is None:  # an empty tensor, or a norm too large for 64 bits
        return ExplosionSeverity.CRITICAL if size.counts.finite else ExplosionSeverity.UNKNOWN
    optional = ((size.rms, config.rms_threshold), (weight_ratio, config.weight_ratio_threshold))
    ratios = [
        _quotient(measured, limit)
        for measured, limit in optional
        if limit is not None and measured is not None
    ]
    exceeded = [each for each in (over, *ratios) if each is not None and each > 1]
    return band_of(max([score, *exceeded]), config) if exceeded else ExplosionSeverity.NONE


def band_of(score: float, config: WeightConfig) -> ExplosionSeverity:
    """Return the severity of a ratio to the threshold."""
    severity = ExplosionSeverity.LOW
    for word, least in zip(_BANDS, config.explosion_bands, strict=True):
        if score > least:
            severity = word
    return severity


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
        over.append("norm")  # the ratio is too large for 64 bits
    return ExplodingLayer(
        layer_index=layer.layer_index,
        gradient_norm=layer.gradient_norm,
        severity=layer.severity,
        recommended_action=_action(layer),
        name=layer.name,
        nonfinite=layer.nonfinite,
        over=tuple(over),
        missing=tuple(each for each in layer.missing if each.field == "gradient_norm"),
    )


def _action(layer: LayerGradient) -> str:
    """Return what to do, and the number that is the reason."""
    if layer.nonfinite:
        text = f"{layer.nonfinite:,} of {layer.count:,} values are NaN or infinite"
        return f"{text}: skip this step, and look for the first layer and step that is not finite"
    if layer.threshold_ratio is None:
        return "the norm or its ratio is larger than any number of 64 bits: skip this step"
    text = f"norm {layer.gradient_norm:.3g}, {layer.threshold_ratio:.3g} times the threshold"
    if layer.peer_ratio is not None:
        text += f" and {layer.peer_ratio:.3g} times the median of the other layers"
    return f"{text}: {_ACTIONS[layer.severity]}"


def _summary(
    tensors: Tensors,
    layers: tuple[LayerGradient, ...],
    exploding: tuple[ExplodingLayer, ...],
    config: WeightConfig,
    *,
    limit: float,
    history: Sequence[float],
) -> GradientExplosionAnalysis:
    norms = [each.gradient_norm for each in layers if each.gradient_norm is not None]
    global_norm = _global_norm(norms)
    finite = sum(each.count - each.nonfinite for each in layers)
    rms = None if global_norm is None or not finite else global_norm / sqrt(finite)
    clip, missing = _clip_value(history, config)
    severities = (each.severity for each in layers if each.severity in _ORDER)
    overall = max(severities, key=_ORDER.index, default=ExplosionSeverity.UNKNOWN)
    if config.global_norm_threshold is not None and global_norm is not None:
        ratio = global_norm / config.global_norm_threshold
        if ratio > 1:
            overall = max(overall, band_of(ratio, config), key=_rank)
    return GradientExplosionAnalysis(
        exploding_layers=exploding,
        explosion_ratio=len(exploding) / len(layers) if layers else None,
        overall_severity=overall,
        threshold=limit,
        layer_count=len(layers),
        clip_value=clip,
        mitigation_recommendations=_advice(layers, exploding, limit, clip, len(history)),
        nonfinite=sum(each.nonfinite for each in layers),
        layers=layers,
        skipped=tensors.skipped,
        missing=missing,
        global_norm=global_norm if norms else None,
        rms=rms if norms else None,
        **_norm_statistics(norms),
    )


def _norm_statistics(norms: list[float]) -> dict[str, Any]:
    if not norms:
        return {}
    exponent = frexp(max(norms))[1]  # the squares of norms may overflow
    scaled = np.ldexp(np.array(norms), -exponent)
    return {
        "max_gradient_norm": max(norms),
        "median_gradient_norm": median(norms),
        "mean_gradient_norm": ldexp(float(scaled.mean()), exponent),
        "std_gradient_norm": ldexp(float(scaled.std()), exponent),
    }


def _rank(word: ExplosionSeverity) -> int:
    return _ORDER.index(word) if word in _ORDER else -1


def _global_norm(norms: list[float]) -> float | None:
    """Compute √Σ‖g‖² over the layers; None if it is too large for 64 bits."""
    norm = l2_norm(np.array(norms)) if norms else None
    return norm if norm is not None and isfinite(norm) else None


def _clip_value(
    history: Sequence[float], config: WeightConfig
) -> tuple[float | None, tuple[Missing, ...]]:
    """Return a quantile of past global norms, which only few steps exceeded."""
    past = [float(each) for each in history if isfinite(float(each)) and float(each) >= 0]
    if len(past) < config.clip_history:
        needs = f"global norms of {config.clip_history} past steps (history=)"
        return None, (Missing("clip_value", needs, f"there are {len(past)}"),)
    return float(np.quantile(past, config.clip_quantile)), ()


def _advice(
    layers: tuple[LayerGradient, ...],
    exploding: tuple[ExplodingLayer, ...],
    limit: float,
    clip: float | None,
    past: int,
) -> tuple[str, ...]:
    """List what would help, with the numbers measured; empty if nothing explodes."""
    texts = []
    bad = [each.name for each in exploding if each.nonfinite]
    if bad:
        texts.append(f"find where values stop being finite: {len(bad)} layers, first {bad[0]}")
    over = [each for each in exploding if "norm" in each.over]
    if over:
        is_most = 2 * len(over) > len(layers)
        action = "lower the learning rate" if is_most else f"look at {over[0].name} first"
        texts.append(f"{len(over)} of {len(layers)} layers exceed the norm of {limit:g}: {action}")
        if clip is not None:
            texts.append(f"clip the global norm at {clip:.3g}: few of {past} past steps exceed it")
        else:
            texts.append("clip the global norm; pass past global norms (history=) to get a value")
    return tuple(texts)


def _quotient(part: float, total: float | None) -> float | None:
    """Divide; None if the quotient is too large for 64 bits."""
    if not total:
        return None
    try:
        ratio = part / total
    except OverflowError:
        return None
    return ratio if isfinite(ratio) else None


def _missing(size: GradientSize, others: list[float], config: WeightConfig) -> tuple[Missing, ...]:
    reasons = []
    if size.weight_norm is None:
        reason = ("weights= with an array of this name", "there is none")
        reasons += [("weight_norm", *reason), ("weight_ratio", *reason)]
    if len(others) < config.peers:
        reason = (f"{config.peers} other layers with a gradient", f"there are {len(others)}")
        reasons += [("peer_ratio", *reason), ("peer_z", *reason)]
    elif size.norm:
        reasons.append(("peer_z", "other layers that differ", "their norms are all equal"))
    return tuple(Missing(*each) for each in reasons)
