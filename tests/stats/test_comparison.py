import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from difflens.stats.comparison import Comparison, below, quantile, two_sided
from difflens.stats.means import welch

LEFT, RIGHT = [1.0, 2.0, 4.0, 3.0, 2.5], [2.0, 3.5, 3.0, 5.0, 4.5, 4.0]


@given(st.floats(0.5, 0.999))
def test_the_interval_at_another_level_is_the_one_that_level_would_have_given(level):
    asked = welch(LEFT, RIGHT).interval(level)

    direct = welch(LEFT, RIGHT, level)
    assert asked == pytest.approx((direct.low, direct.high))


def test_its_own_level_gives_its_own_interval():
    found = welch(LEFT, RIGHT)

    assert found.interval(0.95) == (found.low, found.high)


def test_without_a_standard_error_a_wider_interval_stands_in_and_a_narrower_does_not():
    known = Comparison(1.0, 0.0, 2.0, 0.95, None, "bootstrap", 9, 9)

    assert known.interval(0.9) == (0.0, 2.0)
    assert known.interval(0.99) is None


def test_no_interval_is_no_interval_at_any_level():
    assert Comparison(1.0, None, None, 0.95, None, "welch", 1, 1).interval(0.5) is None


@given(st.floats(-6, 6), st.floats(1, 200))
def test_tails_and_quantiles_are_those_of_student(t, df):
    assert below(t, df) == pytest.approx(stats.t.cdf(t, df), abs=1e-12)
    assert two_sided(t, df) == pytest.approx(2 * stats.t.sf(abs(t), df), abs=1e-12)
    assert quantile(0.975, df) == pytest.approx(stats.t.ppf(0.975, df))


@given(st.floats(-6, 6))
def test_without_degrees_of_freedom_they_are_normal(z):
    assert below(z, None) == pytest.approx(stats.norm.cdf(z), abs=1e-12)
    assert two_sided(z, None) == pytest.approx(2 * stats.norm.sf(abs(z)), abs=1e-12)
    assert quantile(0.975, None) == pytest.approx(1.959963984540054)
