"""Standardised differences: Hedges' g, with an interval from the non-central t."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .noncentral import noncentral_interval
from .samples import pairs, probability, sample, variance


class Effect(NamedTuple):
    """Cohen's d, Hedges' g = correction · d, and an interval of the effect both estimate."""

    d: float | None
    g: float | None
    correction: float | None
    low: float | None
    high: float | None


NOTHING = Effect(None, None, None, None, None)


def hedges_g(left: Sequence[float], right: Sequence[float], level: float = 0.95) -> Effect:
    """Give the difference of means in units of the pooled deviation (Hedges 1981).

    d = (r̄ - l̄) / s_pooled; d·sqrt(n_l n_r / (n_l + n_r)) follows the non-central t, which is
    inverted for the interval. All is None where no spread is known.
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
    """Give the mean difference of pairs in units of the deviation of the differences."""
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
    """Give J = Γ(df/2) / (sqrt(df/2) Γ((df - 1)/2)) for df > 1, by which d is too large on average.

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
