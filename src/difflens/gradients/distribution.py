"""How the layers' gradients are spread: moments of their mean norms, and the shape of the ln norms.

Moments of a handful of layers have no shape to tell: the excess kurtosis of two numbers is always
-2. So the word is left out below twenty layers, and comes from tests, not from limits on moments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..network_results import DistributionType, GradientDistribution
from ..records import Missing
from ..stats.modality import FEWEST, dip_test
from .reasons import because, blank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .signals import LayerSignal, Signals

ALPHA = 0.025  # of each of the two tests that a normal shape must pass


def distribution(signals: Signals) -> GradientDistribution:
    """Describe the layers' mean norms; norms that are not finite are counted and left out."""
    means, nonfinite = {}, 0
    for layer in signals.layers:
        finite = layer.norms[np.isfinite(layer.norms)]
        nonfinite += _nonfinite(layer, len(finite))
        means[layer.name] = float(finite.mean()) if len(finite) else None
    known = np.array([each for each in means.values() if each is not None])
    if not len(known):
        why = "no layer has a finite norm"
        return blank(GradientDistribution, "gradient norms", why, layer_gradient_ratios=means,
                     nonfinite=nonfinite)  # fmt: skip
    middle = float(known.mean())
    ratios = {
        name: mean / middle if mean is not None and middle > 0 else None
        for name, mean in means.items()
    }
    told, reasons = _moments(known)
    shape, more = _shape(known)
    return GradientDistribution(
        mean_gradient_norm=middle, layer_gradient_ratios=ratios, n=len(known), nonfinite=nonfinite,
        missing=(*reasons, *more), **told, **shape,
    )  # fmt: skip


def _nonfinite(layer: LayerSignal, finite: int) -> int:
    """Count what was not finite in the whole run, also where points were thinned out since."""
    seen = len(layer.norms) - finite
    ever = getattr(layer, "nonfinite_records", None)
    return seen if ever is None else max(seen, ever)


def _moments(values: NDArray[np.float64]) -> tuple[dict[str, Any], tuple[Missing, ...]]:
    spread = values - values.mean()
    variance = float((spread**2).mean())
    told: dict[str, Any] = {"gradient_variance": variance}
    if len(values) < 3 or variance <= (1e-12 * float(np.abs(values).max())) ** 2:
        why = f"{len(values)} layers, or all the same"
        fields = ("gradient_skewness", "gradient_kurtosis")
        return told, because("three layers that differ", why, *fields)
    scaled = spread / variance**0.5
    told["gradient_skewness"] = float((scaled**3).mean())
    told["gradient_kurtosis"] = float((scaled**4).mean()) - 3
    return told, ()


_SHAPE = ("distribution_type", "log_skewness", "log_kurtosis", "dip", "dip_p", "normality_p")


def _shape(means: NDArray[np.float64]) -> tuple[dict[str, Any], tuple[Missing, ...]]:
    """Judge the ln norms: one hump by the dip, normal by Shapiro and Wilk (1965)."""
    logs = np.log(means[means > 0])
    if len(means) > 1 and np.ptp(means) <= 1e-9 * float(np.abs(means).max()):
        why = "all layers have the same norm"
        return ({"distribution_type": DistributionType.DEGENERATE},
                because("layers that differ", why, *_SHAPE[1:]))  # fmt: skip
    if len(logs) < FEWEST:
        why = f"{len(logs)} layers have a norm above zero"
        return {}, because(f"{FEWEST} layers", why, *_SHAPE)
    from scipy.stats import kurtosis, shapiro, skew

    hump = dip_test(logs)
    normal = float(shapiro(logs).pvalue)
    told = {
        "log_skewness": float(skew(logs)), "log_kurtosis": float(kurtosis(logs)),
        "dip": hump.dip if hump else None, "dip_p": hump.p if hump else None,
        "normality_p": normal,
    }  # fmt: skip
    word = _word(logs, hump.p if hump else 1.0, normal)
    if word is None:
        why = "not normal, yet neither skewed nor heavy-tailed nor of several humps"
        return told, because("a word for this shape", why, "distribution_type")
    return {"distribution_type": word, **told}, ()


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
