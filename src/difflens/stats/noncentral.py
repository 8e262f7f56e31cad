"""The non-central t: what a standardised effect makes of Student's t."""

from __future__ import annotations

_FARTHEST = 1e4  # beyond this t the library's non-central t is NaN in places that matter
_NEAREST = 1e-50


def below_noncentral(t: float, df: float, noncentrality: float) -> float:
    """Give P(T <= t). Far out in a tail the library says NaN, where it is 0 or 1."""
    from math import isnan

    from scipy.special import nctdtr

    # Nearer to zero than this the law is that at zero, and the library says NaN.
    found = float(nctdtr(df, noncentrality, t if abs(t) > _NEAREST else 0.0))
    return float(noncentrality <= t) if isnan(found) else found


def noncentral_interval(t: float, df: float, level: float) -> tuple[float, float]:
    """Give the non-centralities under which t is not too large and not too small.

    P(T <= t | low) = (1 + level)/2 and P(T <= t | high) = (1 - level)/2. Beyond |t| = 10,000 it
    is t ± z·sqrt(1 + t²/(2 df)) (Hedges & Olkin 1985).
    """
    from scipy.special import ndtri

    if abs(t) > _FARTHEST:
        reach = float(ndtri((1 + level) / 2)) * (1 + t**2 / (2 * df)) ** 0.5
        return t - reach, t + reach
    return _noncentrality(t, df, (1 + level) / 2), _noncentrality(t, df, (1 - level) / 2)


def _noncentrality(t: float, df: float, probability: float) -> float:
    from scipy.optimize import brentq

    def excess(noncentrality: float) -> float:
        return below_noncentral(t, df, noncentrality) - probability

    reach = 8.0
    while not excess(t - reach) >= 0 >= excess(t + reach):
        reach *= 2
    return float(brentq(excess, t - reach, t + reach, xtol=1e-10))
