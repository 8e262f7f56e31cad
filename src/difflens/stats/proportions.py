"""Proportions: intervals where the normal approximation fails, and McNemar's test of flips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log
from typing import NamedTuple

from .comparison import Comparison, quantile, two_sided
from .samples import probability

PAIRED = "newcombe, paired"
_SMALL = 30  # values a side up to which the exact test of two proportions is used
_FARTHEST, _HALVINGS = 37.0, 60  # deviates: beyond it p is no number of a float64


class _Limits(NamedTuple):
    """A share between two limits."""

    value: float
    low: float
    high: float


class Proportion(NamedTuple):
    """A part of n, with an interval."""

    value: float
    low: float
    high: float
    level: float
    n: int
    method: str


def wilson(successes: int, n: int, level: float = 0.95) -> Proportion:
    """Return Wilson's interval, the default: (p + z²/2n ± z sqrt(pq/n + z²/4n²)) / (1 + z²/n).

    >>> round(wilson(30, 30).low, 4)
    0.8865
    """
    _counts(successes, n, level)
    return Proportion(*_scored(successes, n, _deviate(level)), level, n, "wilson")


def newcombe(
    left_successes: int, left_n: int, right_successes: int, right_n: int, level: float = 0.95
) -> Comparison:
    """Compare two independent proportions; the interval is Newcombe's hybrid (1998, method 10).

    p is Boschloo's exact one with up to 30 values a side, else that of the pooled score test.
    """
    _counts(left_successes, left_n, level)
    _counts(right_successes, right_n, level)
    counts = left_successes, left_n, right_successes, right_n
    low, high = apart_limits(counts, _deviate(level))
    exact = max(left_n, right_n) <= _SMALL
    statistic = _score(*counts)
    p = _boschloo(*counts) if exact else two_sided(statistic, None)
    method = "newcombe, boschloo" if exact else "newcombe, score test"
    difference = right_successes / right_n - left_successes / left_n
    return Comparison(difference, low, high, level, p, method, left_n, right_n, statistic=statistic)


def newcombe_paired(
    left_correct: Sequence[bool], right_correct: Sequence[bool], level: float = 0.95
) -> Comparison:
    """Compare right and wrong answers to the same questions; p is McNemar's mid-p.

    The interval is the square-and-add one with the correlation of the answers (Newcombe 1998,
    "Improved confidence intervals for the difference between binomial proportions based on
    paired data", method 10). It holds for few questions, and where no answer flips.
    """
    before, after = as_flags(left_correct, "left"), as_flags(right_correct, "right")
    flips, n = mcnemar(before, after), len(before)
    low, high = paired_limits(answers_of(before, after), _deviate(probability(level, "level")))
    return Comparison((flips.fixed - flips.broke) / n, low, high, level, flips.p_mid, PAIRED, n, n)


def agreeing(made: Comparison, limits: Callable[[float], tuple[float, float]]) -> Comparison:
    """Make p and interval say the same of zero: p is below 1 - level where it leaves zero out.

    `limits` are those of the interval at a normal deviate. p is the larger of the test's and the
    one at which the interval reaches zero; an interval that the test does not bear out ends there.
    """
    if made.p is None or made.low is None or made.high is None:
        return made
    p = max(made.p, _reached(limits))
    if p < 1 - made.level:
        return made._replace(p=p)
    return made._replace(p=p, low=min(made.low, 0.0), high=max(made.high, 0.0))


def _reached(limits: Callable[[float], tuple[float, float]]) -> float:
    """Return the p at which an interval reaches zero, by halving; 1 where it always holds zero."""
    inside, outside = _FARTHEST, 0.0
    low, high = limits(inside)
    if not low <= 0 <= high:
        return two_sided(inside, None)
    for _ in range(_HALVINGS):
        z = (inside + outside) / 2
        low, high = limits(z)
        inside, outside = (z, outside) if low <= 0 <= high else (inside, z)
    return two_sided(inside, None)


def apart_limits(counts: Sequence[float], z: float) -> tuple[float, float]:
    """Return Newcombe's limits of right minus left: successes and n of left, then of right."""
    left, right = _scored(counts[0], counts[1], z), _scored(counts[2], counts[3], z)
    return _square_and_add(left, right, 0.0)


def answers_of(before: Sequence[bool], after: Sequence[bool]) -> tuple[int, int, int, int]:
    """Count pairs of answers: right both times, broke, fixed, wrong both times."""
    pairs = list(zip(before, after, strict=True))
    both, broke = sum(was and now for was, now in pairs), sum(was > now for was, now in pairs)
    fixed = sum(was < now for was, now in pairs)
    return both, broke, fixed, len(pairs) - both - broke - fixed


def paired_limits(answers: Sequence[float], z: float) -> tuple[float, float]:
    """Return Newcombe's limits of right minus left, from the counts of `answers_of`."""
    both, broke, fixed, neither = answers
    n = both + broke + fixed + neither
    left, right = _scored(both + broke, n, z), _scored(both + fixed, n, z)
    return _square_and_add(left, right, _correlation(answers))


def as_flags(answers: Sequence[bool], name: str) -> list[bool]:
    """Return answers as true and false; refuse scores that are neither 0 nor 1."""
    odd = [each for each in answers if each not in (0, 1)]
    if odd:
        raise ValueError(f"{name} holds {odd[0]!r}; answers are right (1) or wrong (0)")
    if not len(answers):
        raise ValueError(f"{name} holds no values")
    return [bool(each) for each in answers]


def _deviate(level: float) -> float:
    return quantile((1 + level) / 2, None)


def _scored(successes: float, n: float, z: float) -> _Limits:
    """Return a share and its score limits at a normal deviate."""
    rate, shrunk = successes / n, 1 + z**2 / n
    centre = (rate + z**2 / (2 * n)) / shrunk
    reach = z * (rate * (1 - rate) / n + (z / (2 * n)) ** 2) ** 0.5 / shrunk
    # Exact at the ends, where rounding would leave the limit a hair inside.
    low = 0.0 if successes == 0 else max(centre - reach, 0.0)
    high = 1.0 if successes == n else min(centre + reach, 1.0)
    return _Limits(rate, low, high)


def _square_and_add(left: _Limits, right: _Limits, phi: float) -> tuple[float, float]:
    difference = right.value - left.value

    def reach(ours: float, others: float) -> float:
        return float(max(ours**2 - 2 * phi * ours * others + others**2, 0.0) ** 0.5)

    low = reach(right.value - right.low, left.high - left.value)
    high = reach(right.high - right.value, left.value - left.low)
    return difference - low, difference + high


def _correlation(answers: Sequence[float]) -> float:
    """Return φ of the 2x2 table with Newcombe's continuity correction; 0 at an empty margin."""
    both, broke, fixed, neither = answers
    n = both + broke + fixed + neither
    margins = (both + broke) * (fixed + neither) * (both + fixed) * (broke + neither)
    if not margins:
        return 0.0
    cross = both * neither - broke * fixed
    corrected = max(cross - n / 2, 0.0) if cross > 0 else float(cross)
    return float(corrected / margins**0.5)


def _score(left_successes: int, left_n: int, right_successes: int, right_n: int) -> float:
    pooled = (left_successes + right_successes) / (left_n + right_n)
    error = (pooled * (1 - pooled) * (1 / left_n + 1 / right_n)) ** 0.5
    return (right_successes / right_n - left_successes / left_n) / error if error else 0.0


def _boschloo(left_successes: int, left_n: int, right_successes: int, right_n: int) -> float:
    from scipy.stats import boschloo_exact

    if left_successes / left_n == right_successes / right_n:
        return 1.0  # scipy gives NaN or a hair above one here
    columns = (
        [left_successes, right_successes],
        [left_n - left_successes, right_n - right_successes],
    )
    return min(1.0, float(boschloo_exact(columns).pvalue))


def _counts(successes: int, n: int, level: float) -> None:
    probability(level, "level")
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} are no proportion")


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
    """Return the chance of so many heads, C(n, k)/2^n.

    Written out, since importing scipy.stats takes longer than the whole comparison.
    """
    from scipy.special import betaln

    return exp(-log(of + 1) - float(betaln(of - count + 1, count + 1)) - of * log(2))
