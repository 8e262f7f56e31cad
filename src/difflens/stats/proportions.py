"""Intervals of proportions that hold where the normal approximation does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .comparison import Comparison, quantile, two_sided
from .samples import probability

_SMALL = 30  # values a side up to which the exact test of two proportions is used


class Proportion(NamedTuple):
    """A part of n, with an interval."""

    value: float
    low: float
    high: float
    level: float
    n: int
    method: str


def wilson(successes: int, n: int, level: float = 0.95) -> Proportion:
    """Give Wilson's interval, the default: (p + z²/2n ± z sqrt(pq/n + z²/4n²)) / (1 + z²/n).

    >>> round(wilson(30, 30).low, 4)
    0.8865
    """
    _counts(successes, n, level)
    z, rate = quantile((1 + level) / 2, None), successes / n
    shrunk = 1 + z**2 / n
    centre = (rate + z**2 / (2 * n)) / shrunk
    reach = z * (rate * (1 - rate) / n + (z / (2 * n)) ** 2) ** 0.5 / shrunk
    # Exact at the ends, where rounding would leave the limit a hair inside.
    low = 0.0 if successes == 0 else max(centre - reach, 0.0)
    high = 1.0 if successes == n else min(centre + reach, 1.0)
    return Proportion(rate, low, high, level, n, "wilson")


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> Proportion:
    """Give the interval whose coverage is never below its level (Clopper & Pearson 1934).

    >>> round(clopper_pearson(30, 30).low, 4)
    0.8843
    """
    from scipy.special import betaincinv

    _counts(successes, n, level)
    tail, failures = (1 - level) / 2, n - successes
    low = 0.0 if successes == 0 else float(betaincinv(successes, failures + 1, tail))
    high = 1.0 if failures == 0 else float(betaincinv(successes + 1, failures, 1 - tail))
    return Proportion(successes / n, low, high, level, n, "clopper-pearson")


def newcombe(
    left_successes: int, left_n: int, right_successes: int, right_n: int, level: float = 0.95
) -> Comparison:
    """Compare two independent proportions; the interval is Newcombe's hybrid (1998, method 10).

    p is Boschloo's exact one with up to 30 values a side, else that of the pooled score test.
    """
    left = wilson(left_successes, left_n, level)
    right = wilson(right_successes, right_n, level)
    low, high = _square_and_add(left, right, 0.0)
    counts = left_successes, left_n, right_successes, right_n
    exact = max(left_n, right_n) <= _SMALL
    statistic = _score(*counts)
    p = _boschloo(*counts) if exact else two_sided(statistic, None)
    method = "newcombe, boschloo" if exact else "newcombe, score test"
    return Comparison(
        right.value - left.value, low, high, level, p, method, left_n, right_n, statistic=statistic
    )


def newcombe_paired(
    left_correct: Sequence[bool], right_correct: Sequence[bool], level: float = 0.95
) -> Comparison:
    """Compare right and wrong answers to the same questions; p is McNemar's mid-p.

    The interval is the square-and-add one with the correlation of the answers (Newcombe 1998,
    "Improved confidence intervals for the difference between binomial proportions based on
    paired data", method 10). It holds for few questions, and where no answer flips.
    """
    from .mcnemar import mcnemar

    before, after = as_flags(left_correct, "left"), as_flags(right_correct, "right")
    flips, n = mcnemar(before, after), len(before)
    left, right = wilson(sum(before), n, level), wilson(sum(after), n, level)
    low, high = _square_and_add(left, right, _correlation(before, after))
    return Comparison(
        (flips.fixed - flips.broke) / n, low, high, level, flips.p_mid, "newcombe, paired", n, n
    )


def as_flags(answers: Sequence[bool], name: str) -> list[bool]:
    """Give answers as true and false; refuse scores that are neither 0 nor 1."""
    odd = [each for each in answers if each not in (0, 1)]
    if odd:
        raise ValueError(f"{name} holds {odd[0]!r}; answers are right (1) or wrong (0)")
    if not len(answers):
        raise ValueError(f"{name} holds no values")
    return [bool(each) for each in answers]


def _square_and_add(left: Proportion, right: Proportion, phi: float) -> tuple[float, float]:
    difference = right.value - left.value

    def reach(ours: float, others: float) -> float:
        return float(max(ours**2 - 2 * phi * ours * others + others**2, 0.0) ** 0.5)

    low = reach(right.value - right.low, left.high - left.value)
    high = reach(right.high - right.value, left.value - left.low)
    return difference - low, difference + high


def _correlation(before: list[bool], after: list[bool]) -> float:
    """Give φ of the 2x2 table, corrected for continuity as Newcombe does; 0 at an empty margin."""
    n = len(before)
    both = sum(was and now for was, now in zip(before, after, strict=True))
    neither = sum(not was and not now for was, now in zip(before, after, strict=True))
    broke, fixed = sum(before) - both, sum(after) - both
    margins = sum(before) * (n - sum(before)) * sum(after) * (n - sum(after))
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
