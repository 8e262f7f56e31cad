"""The exponent of the tail of one side's eigenvalues, where a power law fits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...stats.tails import PowerLaw, power_law

SEED = 0
_FEWEST = 2  # resamples of a fit whose interval nobody sees


def heavy_tail(values: Sequence[float], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Fit the squared singular values; alpha is null, with a reason, where nothing was fitted.

    `weightwatcher_label` is what Martin & Mahoney's tool would call it, not a judgement of ours.
    """
    largest = max(values, default=0.0)
    squares = [(value / largest) ** 2 for value in values] if largest > 0 else []
    fit = power_law(squares, seed=SEED, resamples=_FEWEST)
    if fit is None:
        return {"alpha": None, "why": "fewer than four distinct eigenvalues"}
    told: dict[str, Any] = {
        "x_min": fit.x_min * largest**2,
        "tail": fit.tail,
        "distance": fit.distance,
        "lognormal_ratio": fit.lognormal_ratio,
        "lognormal_p": fit.lognormal_p,
    }
    if why := _doubt(fit, limits):
        return {"alpha": None, "why": why, **told}
    sure = power_law(squares, seed=SEED) or fit
    return {
        "alpha": fit.alpha,
        "low": sure.low,
        "high": sure.high,
        "standard_error": fit.standard_error,
        "weightwatcher_label": _label(fit.alpha, limits),
        **told,
    }


def _doubt(fit: PowerLaw, limits: Mapping[str, Any]) -> str:
    if fit.tail < limits["tail_least"]:
        return f"{fit.tail} eigenvalues in the tail, fewer than {limits['tail_least']}"
    if fit.distance > limits["tail_distance"]:
        return f"distance {fit.distance:.3g} from a power law, above {limits['tail_distance']:g}"
    if fit.lognormal_ratio < 0 and fit.lognormal_p < limits["lognormal_p"]:
        return f"a lognormal fits more closely (p = {fit.lognormal_p:.2g})"
    return ""


def _label(alpha: float, limits: Mapping[str, Any]) -> str:
    if alpha < limits["weightwatcher_low"]:
        return "over-trained"
    return "under-trained" if alpha > limits["weightwatcher_high"] else "none"
