"""Trends are told from autocorrelated noise."""

import numpy as np
import pymannkendall
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter
from scipy.stats import theilslopes
from simulation import replicates

from difflens.stats.trend import LONG, autocorrelation, mann_kendall, theil_sen

SERIES = st.lists(st.integers(-9, 9).map(float), min_size=3, max_size=30)


def autocorrelated(random: np.random.Generator, phi: float, n: int) -> np.ndarray:
    noise = random.standard_normal(n)
    noise[0] /= (1 - phi**2) ** 0.5
    return lfilter([1], [1, -phi], noise)


def rejections(phi: float, repeats: int, slope: float = 0.0) -> float:
    random = np.random.default_rng(21)
    trends = [
        mann_kendall(autocorrelated(random, phi, 100) + slope * np.arange(100), None, 199, seed)
        for seed in range(repeats)
    ]
    return sum(trend.p <= 0.05 for trend in trends) / repeats


@replicates
@pytest.mark.parametrize(("phi", "most"), [(0.0, 0.08), (0.5, 0.11), (0.8, 0.10)])
def test_no_trend_is_found_in_autocorrelated_noise(phi, most, repeats):
    assert rejections(phi, repeats) <= most


@replicates
def test_a_trend_of_a_fiftieth_deviation_a_step_is_found_in_three_of_four_series(repeats):
    # The deviation is that of the innovations.
    assert rejections(0.5, repeats, slope=0.02) == pytest.approx(0.77, abs=0.08)


def test_the_plain_test_would_cry_trend_at_half_of_all_noise():
    random = np.random.default_rng(8)
    plain = [pymannkendall.original_test(autocorrelated(random, 0.8, 100)).p for _ in range(200)]

    assert np.mean(np.array(plain) <= 0.05) > 0.35


@pytest.mark.parametrize(
    ("n", "p"), [(1, 1), (2, 1), (3, 1 / 3), (4, 1 / 12), (5, 1 / 60), (6, 1 / 360)]
)
def test_a_few_points_in_order_have_their_exact_p(n, p):
    trend = mann_kendall([float(x) for x in range(n)])

    assert trend.p == pytest.approx(p)
    assert trend.s == n * (n - 1) // 2


def test_an_exact_p_counts_ties():
    # Of the twelve orders of 1, 1, 2, 3 one rises throughout and one falls throughout.
    assert mann_kendall([1.0, 1.0, 2.0, 3.0]).p == pytest.approx(2 / 12)


def test_no_points_have_no_trend():
    assert mann_kendall([])[:4] == (0, 1.0, 0.0, 0)
    assert theil_sen([], []) is None
    assert theil_sen([1.0, 1.0], [2.0, 3.0]) is None


def test_strong_autocorrelation_in_a_short_series_is_said():
    swing = np.sin(np.linspace(0, 12, 60))

    assert mann_kendall(swing).note == "autocorrelation too strong for this length"
    assert "too few points" in mann_kendall(swing[:8]).note
    assert not mann_kendall(np.random.default_rng(2).standard_normal(60)).note


def test_a_straight_line_is_a_trend_without_autocorrelation():
    line = [0.1 * x + 7 for x in range(30)]
    trend = mann_kendall(line)

    assert (trend.phi, trend.p) == (0.0, 0.001)
    assert autocorrelation([1, 2, 3, 4], [1, 2, 1, 2]) == 0.0


def test_a_long_series_is_averaged_in_blocks_and_says_so():
    random = np.random.default_rng(3)
    values = random.standard_normal(3000) + np.arange(3000) * 2e-4
    trend, slope = mann_kendall(values), theil_sen(range(3000), values)

    assert trend.note == f"3000 points averaged in {LONG} blocks of neighbours"
    assert trend.p <= 0.01
    assert slope.n == trend.n == 3000
    assert slope.low < 2e-4 < slope.high


@given(SERIES)
def test_s_is_that_of_pymannkendall(values):
    assert mann_kendall(values, surrogates=19).s == pymannkendall.original_test(values).s


@given(SERIES)
def test_time_run_backwards_turns_the_sign_and_keeps_the_size(values):
    forward, backward = mann_kendall(values, surrogates=19), mann_kendall(values[::-1], None, 19)

    assert forward.s == -backward.s
    if len(values) <= 8:
        assert forward.p == backward.p


@given(SERIES)
def test_the_unit_of_the_values_does_not_matter(values):
    trend = mann_kendall(values, surrogates=19)

    assert mann_kendall([4 * x for x in values], surrogates=19) == trend


def test_points_may_come_in_any_order_of_their_times():
    times, values = [3.0, 1.0, 2.0, 4.0, 5.0], [30.0, 10.0, 20.0, 40.0, 50.0]

    assert mann_kendall(values, times).s == 10
    assert theil_sen(times, values)[:3] == (10.0, 10.0, 10.0)


def test_points_of_one_time_say_nothing_about_each_other():
    found = mann_kendall([5.0, 1.0, 9.0], [1.0, 1.0, 2.0])

    assert found.s == 2
    assert found.p == pytest.approx(2 / 3)


@pytest.mark.filterwarnings("ignore:invalid value")  # scipy, of values that are all tied
@given(SERIES, st.sampled_from([0.8, 0.9, 0.95]))
def test_a_slope_and_its_interval_are_those_of_scipy(values, level):
    times = np.arange(len(values)) // 2 if len(values) > 3 else np.arange(len(values))
    found, expected = theil_sen(times, values, level), theilslopes(values, times, alpha=level)

    assert (found.value, found.intercept) == pytest.approx((expected.slope, expected.intercept))
    if found.low is not None and np.isfinite(expected.low_slope):
        assert (found.low, found.high) == pytest.approx((expected.low_slope, expected.high_slope))


def test_a_slope_has_no_interval_where_no_order_could_reach_its_level():
    four, five = ([float(x * x) for x in range(n)] for n in (4, 5))

    assert theil_sen(range(4), four).low is None
    assert theil_sen(range(4), four, level=0.9).low is not None
    assert theil_sen(range(5), five)[:3] == (4.0, 1.0, 7.0)


@replicates
def test_the_interval_of_a_slope_covers_it(repeats):
    random = np.random.default_rng(4)
    slopes = [theil_sen(range(20), random.standard_normal(20)) for _ in range(repeats)]

    assert np.mean([slope.low <= 0 <= slope.high for slope in slopes]) >= 0.92


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_refused(odd):
    with pytest.raises(ValueError, match="not finite"):
        mann_kendall([1.0, 2.0, odd])


def test_times_must_be_as_many_as_values():
    with pytest.raises(ValueError, match="2 times for 3 values"):
        mann_kendall([1.0, 2.0, 3.0], [1.0, 2.0])
