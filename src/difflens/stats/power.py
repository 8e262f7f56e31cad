"""How many values a test needs, and how small a difference it can see.

Planned before, or from the standard error after; never "observed power", which is the p-value
in other clothes (Hoenig & Heisey 2001).
"""

from __future__ import annotations

from math import ceil

from .comparison import quantile
from .noncentral import below_noncentral
from .samples import probability

_ROUNDING = 1e-9  # 969.0000000001 is 969


def sample_size(
    effect: float, *, alpha: float = 0.05, power: float = 0.8, paired: bool = False
) -> int:
    """Give the n per arm (or of pairs) at which a two-sided t-test finds a standardised effect.

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


def minimal_effect(
    n_left: float,
    n_right: float | None = None,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    paired: bool = False,
) -> float:
    """Give the standardised effect that a two-sided t-test finds with this power.

    >>> round(minimal_effect(64), 2)
    0.5
    """
    from scipy.optimize import brentq

    _checked(alpha, power)
    other = n_left if n_right is None else n_right
    if min(n_left, other) < 2:
        raise ValueError("a test needs two values on each side")

    def lacking(effect: float) -> float:
        return t_power(effect, n_left, other, alpha=alpha, paired=paired) - power

    most = 0.01
    while lacking(most) < 0:
        most *= 2
    return float(brentq(lacking, 0, most, xtol=1e-10))


def t_power(
    effect: float, n_left: float, n_right: float, *, alpha: float = 0.05, paired: bool = False
) -> float:
    """Give the chance that a two-sided t-test rejects under a standardised effect."""
    df = n_left - 1 if paired else n_left + n_right - 2
    weight = n_left if paired else n_left * n_right / (n_left + n_right)
    shift, critical = abs(effect) * weight**0.5, quantile(1 - alpha / 2, df)
    return 1 - below_noncentral(critical, df, shift) + below_noncentral(-critical, df, shift)


def minimal_difference(
    standard_error: float, df: float | None = None, *, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Give the difference a test would find: (t_{1-alpha/2} + t_{power}) · standard error.

    To stand beside every result that is not significant (Bloom 1995).
    """
    _checked(alpha, power)
    return (quantile(1 - alpha / 2, df) + quantile(power, df)) * standard_error


def questions_needed(
    difference: float,
    between: float,
    *,
    within_left: float = 0.0,
    within_right: float = 0.0,
    samples_left: int = 1,
    samples_right: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
) -> int:
    """Give the questions a paired eval needs (Miller 2024, arXiv 2411.00640).

    n = (z_{1-alpha/2} + z_{power})² (ω² + s_l²/K_l + s_r²/K_r) / δ²; ω² is the variance of the
    difference between questions, s² that of repeated answers to one, K the repeats.

    >>> questions_needed(0.03, 1 / 9)
    969
    """
    _checked(alpha, power)
    if not difference:
        raise ValueError("difference is zero; only one that is not zero can be found")
    spread = between + within_left / samples_left + within_right / samples_right
    reach = quantile(1 - alpha / 2, None) + quantile(power, None)
    return ceil(reach**2 * spread / difference**2 - _ROUNDING)


def pairs_needed(broke: float, fixed: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Give the pairs that McNemar's test needs when these parts of the answers flip.

    n = (z_{1-alpha/2} sqrt(ψ) + z_{power} sqrt(ψ - δ²))² / δ², ψ = broke + fixed and
    δ = fixed - broke (Connor 1987).
    """
    _checked(alpha, power)
    flips, difference = broke + fixed, fixed - broke
    if min(broke, fixed) < 0 or flips > 1 or not difference:
        raise ValueError(f"{broke!r} broken and {fixed!r} fixed are no two different rates")
    outer = quantile(1 - alpha / 2, None) * flips**0.5
    inner = quantile(power, None) * float(flips - difference**2) ** 0.5
    return ceil(float((outer + inner) ** 2 / difference**2) - _ROUNDING)


def _checked(alpha: float, power: float) -> None:
    probability(alpha, "alpha")
    probability(power, "power")
    if power <= alpha:
        raise ValueError(f"power {power!r} is no more than alpha {alpha!r}, which any test has")
