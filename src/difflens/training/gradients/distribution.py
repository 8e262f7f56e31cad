"""How gradients are distributed over the layers, and which pairs of layers move together.

Moments of a handful of layers have no shape to tell: the excess kurtosis of two numbers is always
-2. So the word for the shape is left out below twenty layers, and comes from tests, not from limits
on moments. Of pairs, the reference calls layers cooperative whose summary numbers are alike. Here
norms that move together are `co_moving` and no more; who helps whom depends on the directions of
the gradients, and only with their cosines does an interaction get that word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from difflens.core.findings import Interval, Missing
from difflens.stats.co_movement import FEWEST as LEAST_JOINT
from difflens.stats.co_movement import CoMovement, co_movements
from difflens.stats.distributions import FEWEST, dip_test
from difflens.stats.steadiness import correlated_mean

from ..records.network import (
    DistributionType,
    GradientDistribution,
    InteractionType,
    LayerInteraction,
)
from .series import because, blank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .series import Totals
    from .signals import LayerSignal, Signals

ALPHA = 0.025  # of each of the two tests that a normal shape must pass


def measure_distribution(signals: Signals) -> GradientDistribution:
    """Describe the layers' mean norms; norms that are not finite are counted and left out."""
    means, nonfinite = {}, 0
    for layer in signals.layers:
        finite = layer.norms[np.isfinite(layer.norms)]
        nonfinite += _nonfinite(layer, len(finite))
        means[layer.name] = float(finite.mean()) if len(finite) else None
    known = np.array([each for each in means.values() if each is not None])
    if not len(known):
        why = "no layer has a finite norm"
        return blank(
            GradientDistribution,
            "gradient norms",
            why,
            layer_gradient_ratios=means,
            nonfinite=nonfinite,
        )
    middle = float(known.mean())
    ratios = {
        name: mean / middle if mean is not None and middle > 0 else None
        for name, mean in means.items()
    }
    moments, reasons = _moments(known)
    shape, more = _shape(known)
    return GradientDistribution(
        mean_gradient_norm=middle,
        layer_gradient_ratios=ratios,
        n=len(known),
        nonfinite=nonfinite,
        missing=(*reasons, *more),
        **moments,
        **shape,
    )


def _nonfinite(layer: LayerSignal, finite: int) -> int:
    """Count what was not finite in the whole run, also where points were thinned out since."""
    seen = len(layer.norms) - finite
    ever = getattr(layer, "nonfinite_records", None)
    return seen if ever is None else max(seen, ever)


def _moments(values: NDArray[np.float64]) -> tuple[dict[str, Any], tuple[Missing, ...]]:
    spread = values - values.mean()
    variance = float((spread**2).mean())
    moments: dict[str, Any] = {"gradient_variance": variance}
    if len(values) < 3 or variance <= (1e-12 * float(np.abs(values).max())) ** 2:
        why = f"{len(values)} layers, or all the same"
        fields = ("gradient_skewness", "gradient_kurtosis")
        return moments, because("three layers that differ", why, *fields)
    scaled = spread / variance**0.5
    moments["gradient_skewness"] = float((scaled**3).mean())
    moments["gradient_kurtosis"] = float((scaled**4).mean()) - 3
    return moments, ()


_SHAPE = ("distribution_type", "log_skewness", "log_kurtosis", "dip", "dip_p", "normality_p")


def _shape(means: NDArray[np.float64]) -> tuple[dict[str, Any], tuple[Missing, ...]]:
    """Judge the ln norms: one hump by the dip, normal by Shapiro and Wilk (1965)."""
    logs = np.log(means[means > 0])
    if len(means) > 1 and np.ptp(means) <= 1e-9 * float(np.abs(means).max()):
        why = "all layers have the same norm"
        return (
            {"distribution_type": DistributionType.DEGENERATE},
            because("layers that differ", why, *_SHAPE[1:]),
        )
    if len(logs) < FEWEST:
        why = f"{len(logs)} layers have a norm above zero"
        return {}, because(f"{FEWEST} layers", why, *_SHAPE)
    from scipy.stats import kurtosis, shapiro, skew

    hump = dip_test(logs)
    normal = float(shapiro(logs).pvalue)
    fields = {
        "log_skewness": float(skew(logs)),
        "log_kurtosis": float(kurtosis(logs)),
        "dip": hump.dip if hump else None,
        "dip_p": hump.p if hump else None,
        "normality_p": normal,
    }
    word = _word(logs, hump.p if hump else 1.0, normal)
    if word is None:
        why = "not normal, yet neither skewed nor heavy-tailed nor of several humps"
        return fields, because("a word for this shape", why, "distribution_type")
    return {"distribution_type": word, **fields}, ()


def _word(logs: NDArray[np.float64], dip_p: float, normal_p: float) -> DistributionType | None:
    from scipy.stats import kurtosistest, skewtest

    if dip_p <= ALPHA:
        return DistributionType.MULTIMODAL
    if normal_p > ALPHA:
        return DistributionType.NORMAL
    if float(skewtest(logs).pvalue) <= ALPHA:
        return DistributionType.SKEWED
    tails = kurtosistest(logs)
    heavy = float(tails.pvalue) <= ALPHA and float(tails.statistic) > 0
    return DistributionType.HEAVY_TAILED if heavy else None


TOP = 20  # pairs listed
LATEST = 4000  # points looked at

Directions = Mapping[tuple[str, str], Sequence[float]]

_IMPACT = Missing("impact_score", "runs with and without a layer", "nothing here estimates it")
_TYPE = Missing(
    "interaction_type",
    "cosines between the gradients of both on shared parameters",
    "norms have no direction",
)


class Moving(NamedTuple):
    """The pairs that are listed, and how many there are in all; why there are none."""

    interactions: tuple[LayerInteraction, ...]
    tested: int
    positive: int
    negative: int
    why: str = ""


def co_moving(
    found: Totals, directions: Directions | None = None, *, partial: bool = False
) -> Moving:
    """Screen all pairs; `partial` adds what is left of a correlation beside the global norm."""
    listed = _by_direction(directions or {})
    table = found.table[-LATEST:]
    common = found.gradient.values[-LATEST:] if partial else None
    moves = co_movements(table, TOP, common=common)
    if moves is None:
        why = (
            f"{table.shape[1]} layers with {len(table)} common points; "
            f"two layers that vary and {LEAST_JOINT} points are needed"
        )
        return Moving(tuple(listed.values()), 0, 0, 0, why)
    for pair in moves.pairs:
        names = found.names[pair.left], found.names[pair.right]
        listed[names] = _interaction(names, pair, listed.get(names), partial=partial)
    return Moving(tuple(listed.values()), moves.tested, moves.positive, moves.negative)


def _interaction(
    names: tuple[str, str], pair: CoMovement, known: LayerInteraction | None, *, partial: bool
) -> LayerInteraction:
    reasons = [_IMPACT]
    if known is None:
        reasons += [_TYPE, Missing("direction_cosine", _TYPE.needs, _TYPE.why)]
    if pair.partial is None:
        why = "the global norm explains both" if partial else "this depth leaves it out"
        reasons += because('depth="expert"', why, "partial_correlation")
    return LayerInteraction(
        layer1=names[0],
        layer2=names[1],
        interaction_strength=abs(pair.r),
        interaction_type=known.interaction_type if known else None,
        movement="co_moving" if pair.r > 0 else "counter_moving",
        correlation=pair.r,
        interval=Interval(pair.low, pair.high, 0.95, "Fisher z of ranks", int(pair.n_effective)),
        n_effective=pair.n_effective,
        p_value=pair.p,
        q_value=pair.q,
        partial_correlation=pair.partial,
        lag=pair.lag,
        direction_cosine=known.direction_cosine if known else None,
        missing=tuple(reasons),
    )


def _by_direction(directions: Directions) -> dict[tuple[str, str], LayerInteraction]:
    """Judge the pairs whose cosines are known: the interval of the mean on one side of zero."""
    interactions = {}
    for names, cosines in directions.items():
        mean = correlated_mean(cosines) if len(cosines) else None
        if mean is None or mean.low is None or mean.high is None:
            continue
        word = InteractionType.NEUTRAL
        if mean.low > 0:
            word = InteractionType.COOPERATIVE
        elif mean.high < 0:
            word = InteractionType.COMPETITIVE
        why = "their norms do not move together beyond chance"
        fields = (
            "interaction_strength",
            "correlation",
            "interval",
            "n_effective",
            "p_value",
            "q_value",
            "partial_correlation",
            "lag",
        )
        interactions[names] = LayerInteraction(
            layer1=names[0],
            layer2=names[1],
            interaction_type=word,
            direction_cosine=mean.value,
            missing=(_IMPACT, *because("norms that move together", why, *fields)),
        )
    return interactions
