"""McNemar's test: right and wrong answers to the same questions, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

from .proportions import as_flags

FEW = 25  # flips below which the exact test is the default


class McNemar(NamedTuple):
    """Answers that broke and answers that were fixed, and whether one kind prevails.

    `p` is the exact one where flips are few, else that of chi2 = (b - c)² / (b + c).
    """

    broke: int
    fixed: int
    p: float
    p_exact: float
    p_mid: float
    chi2: float | None
    chi2_corrected: float | None
    method: str
    n: int


def mcnemar(left_correct: Sequence[bool], right_correct: Sequence[bool]) -> McNemar:
    """Count the flips of pairs in one order, and test them (McNemar 1947).

    >>> mcnemar([True, True, False], [False, True, True])[:2]
    (1, 1)
    """
    before, after = as_flags(left_correct, "left"), as_flags(right_correct, "right")
    if len(before) != len(after):
        raise ValueError(f"left has {len(before)} answers, right {len(after)}; pairs need as many")
    broke = sum(was and not now for was, now in zip(before, after, strict=True))
    fixed = sum(now and not was for was, now in zip(before, after, strict=True))
    return from_flips(broke, fixed, len(before))


def from_flips(broke: int, fixed: int, n: int) -> McNemar:
    """Test counted flips: under the null each is as likely to break as to fix.

    The mid-p counts the outcome itself by half (Fagerland, Lydersen & Laake 2013).
    """
    from scipy.special import bdtr, chdtrc

    if min(broke, fixed) < 0 or broke + fixed > n:
        raise ValueError(f"{broke} broken and {fixed} fixed do not fit into {n} pairs")
    flips = broke + fixed
    if not flips:
        return McNemar(0, 0, 1.0, 1.0, 1.0, None, None, "exact", n)
    fewer = min(broke, fixed)
    tail, point = float(bdtr(fewer, flips, 0.5)), _chance(fewer, flips)
    exact, mid = min(1.0, 2 * tail), min(1.0, 2 * tail - point)
    gap = abs(broke - fixed)
    plain, corrected = gap**2 / flips, max(gap - 1, 0) ** 2 / flips
    if flips < FEW:
        return McNemar(broke, fixed, exact, exact, mid, plain, corrected, "exact", n)
    p = float(chdtrc(1, plain))
    return McNemar(broke, fixed, p, exact, mid, plain, corrected, "chi-square", n)


def _chance(count: int, of: int) -> float:
    """Give the chance of so many heads, C(n, k)/2^n.

    Written out, since importing scipy.stats takes longer than the whole comparison.
    """
    from scipy.special import betaln

    return exp(-log(of + 1) - float(betaln(of - count + 1, count + 1)) - of * log(2))
