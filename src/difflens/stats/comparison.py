"""What comparing two samples shows: the difference, its interval, and the test behind it."""

from __future__ import annotations

from typing import NamedTuple


class Comparison(NamedTuple):
    """A difference, right minus left, with what is known of its uncertainty.

    `low` and `high` are None if no interval can be had, and `note` says why. `p` is two-sided.
    `standard_error` (with `df`; None is the normal law) is there where the interval is
    difference ± t·standard_error, so that it can be had at any level. `p_error` is the
    Monte-Carlo standard error of a resampled p.
    """

    difference: float
    low: float | None
    high: float | None
    level: float
    p: float | None
    method: str
    n_left: int
    n_right: int
    statistic: float | None = None
    df: float | None = None
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None
    clusters: int | None = None
    note: str = ""
    standard_error: float | None = None
    p_error: float | None = None

    def interval(self, level: float) -> tuple[float, float] | None:
        """Return the interval at a level, or a wider one where only that is known, or None.

        A wider interval is safe to decide on: it contains the one asked for.

        >>> Comparison(1.0, 0.0, 2.0, 0.95, None, "bootstrap", 9, 9).interval(0.9)
        (0.0, 2.0)
        >>> Comparison(1.0, 0.0, 2.0, 0.95, None, "bootstrap", 9, 9).interval(0.99) is None
        True
        """
        if self.low is None or self.high is None:
            return None
        if self.standard_error is None or level == self.level:
            return (self.low, self.high) if self.level >= level else None
        reach = quantile((1 + level) / 2, self.df) * self.standard_error
        return self.difference - reach, self.difference + reach


def by_t(  # noqa: PLR0917  what a t-test is made of
    difference: float, error: float, df: float, level: float, method: str, sizes: tuple[int, int]
) -> Comparison:
    """Compare by Student's t: difference ± t·error, with its two-sided p."""
    reach = quantile((1 + level) / 2, df) * error
    return Comparison(
        difference,
        difference - reach,
        difference + reach,
        level,
        two_sided(difference / error, df),
        method,
        *sizes,
        statistic=difference / error,
        df=df,
        standard_error=error,
    )


def quantile(probability: float, df: float | None) -> float:
    """Return a quantile of Student's t, or of the normal law where `df` is None."""
    from scipy.special import ndtri, stdtrit

    return float(ndtri(probability) if df is None else stdtrit(df, probability))


def two_sided(statistic: float, df: float | None) -> float:
    """Return P(|T| >= |statistic|) for Student's t, or for the normal law where `df` is None."""
    return 2 * below(-abs(statistic), df)


def below(statistic: float, df: float | None) -> float:
    """Return P(T <= statistic) for Student's t, or for the normal law where `df` is None."""
    from scipy.special import ndtr, stdtr

    return float(ndtr(statistic) if df is None else stdtr(df, statistic))


NO_REPEATS = "no repeat measurements: cannot separate change from noise"
