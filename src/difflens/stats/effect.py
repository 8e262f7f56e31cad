"""Standardised effects: Hedges' g with its interval, and the sample that a test needs to see one.

Power is planned before, or from the standard error after; never "observed power", which is the
p-value in other clothes (Hoenig & Heisey 2001).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from .comparison import quantile
from .samples import pairs, probability, sample, variance

_FARTHEST = 1e4  # beyond this t the library's non-central t is NaN in places that matter
_NEAREST = 1e-50


def below_noncentral(t: float, df: float, noncentrality: float) -> float:
    """Return P(T <= t). Far out in a tail the library says NaN, where it is 0 or 1."""
    from math import isnan

    from scipy.special import nctdtr

    # Nearer to zero than this the law is that at zero, and the library says NaN.
    found = float(nctdtr(df, noncentrality, t if abs(t) > _NEAREST else 0.0))
    return float(noncentrality <= t) if isnan(found) else found


def noncentral_interval(t: float, df: float, level: float) -> tuple[float, float]:
    """Return the non-centralities under which t is not too large and not too small.

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


class Effect(NamedTuple):
    """Cohen's d, Hedges' g = correction · d, and an interval of the effect both estimate."""

    d: float | None
    g: float | None
    correction: float | None
    low: float | None
    high: float | None


NOTHING = Effect(None, None, None, None, None)


def hedges_g(left: Sequence[float], right: Sequence[float], level: float = 0.95) -> Effect:
    """Return the difference of means in units of the pooled deviation (Hedges 1981).

    d = (r̄ - l̄) / s_pooled; d·sqrt(n_l n_r / (n_l + n_r)) follows the non-central t, which is
    inverted for the interval. All is None if no spread is known.
    """
    probability(level, "level")
    before, after = sample(left, "left"), sample(right, "right")
    df = before.size + after.size - 2
    if min(before.size, after.size) < 2:
        return NOTHING
    squares = (before.size - 1) * variance(before) + (after.size - 1) * variance(after)
    if not squares:
        return NOTHING
    d = float(after.mean() - before.mean()) / (squares / df) ** 0.5
    return _effect(d, df, (before.size * after.size / (before.size + after.size)) ** 0.5, level)


def paired_effect(left: Sequence[float], right: Sequence[float], level: float = 0.95) -> Effect:
    """Return the mean difference of pairs in units of the deviation of the differences."""
    probability(level, "level")
    before, after = pairs(left, right)
    moves = after - before
    if moves.size < 2:
        return NOTHING
    spread = variance(moves, float(max(abs(before).max(), abs(after).max())))
    if not spread:
        return NOTHING
    return _effect(float(moves.mean()) / spread**0.5, moves.size - 1, moves.size**0.5, level)


def small_sample_correction(df: float) -> float:
    """Return J = Γ(df/2) / (sqrt(df/2) Γ((df - 1)/2)) for df > 1: the mean bias factor of d.

    >>> round(small_sample_correction(18), 6)
    0.957646
    """
    from math import exp, lgamma, log

    return exp(lgamma(df / 2) - lgamma((df - 1) / 2) - log(df / 2) / 2)


def _effect(d: float, df: float, root: float, level: float) -> Effect:
    low, high = noncentral_interval(d * root, df, level)
    if df == 1:  # J is zero there: g would be zero whatever d is
        return Effect(d, None, None, low / root, high / root)
    correction = small_sample_correction(df)
    return Effect(d, correction * d, correction, low / root, high / root)


_ROUNDING = 1e-9  # 969.0000000001 is 969


def sample_size(
    effect: float, *, alpha: float = 0.05, power: float = 0.8, paired: bool = False
) -> int:
    """Return the n per arm (or of pairs) at which a two-sided t-test finds a standardised effect.

    >>> sample_size(0.2), sample_size(0.5), sample_size(0.8)
    (394, 64, 26)
    """
    from scipy.optimize import brentq

    _checked(alpha, power)
    if not 0 < abs(effect) < float("inf"):
        raise ValueError(f"effect is {effect!r}; only one that is not zero can be found")

    def lacking(n: float) -> float:
        return t_power(effect, n, n, alpha=alpha, paired=paired) - power

    most = 2.0
    while lacking(most) < 0:
        most *= 2
    exact = 2.0 if most == 2 else float(brentq(lacking, most / 2, most, xtol=1e-9))
    return ceil(exact - _ROUNDING)


def t_power(
    effect: float, n_left: float, n_right: float, *, alpha: float = 0.05, paired: bool = False
) -> float:
    """Return the chance that a two-sided t-test rejects under a standardised effect."""
    df = n_left - 1 if paired else n_left + n_right - 2
    weight = n_left if paired else n_left * n_right / (n_left + n_right)
    shift, critical = abs(effect) * weight**0.5, quantile(1 - alpha / 2, df)
    return 1 - below_noncentral(critical, df, shift) + below_noncentral(-critical, df, shift)


def minimal_difference(
    standard_error: float, df: float | None = None, *, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Return the difference a test would find: (t_{1-alpha/2} + t_{power}) · standard error.

    To stand beside every result that is not significant (Bloom 1995).
    """
    _checked(alpha, power)
    return (quantile(1 - alpha / 2, df) + quantile(power, df)) * standard_error


def _checked(alpha: float, power: float) -> None:
    probability(alpha, "alpha")
    probability(power, "power")
    if power <= alpha:
        raise ValueError(f"power {power!r} is no more than alpha {alpha!r}, which any test has")
