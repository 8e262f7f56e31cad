import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from simulation import near, replicates
from stats.samples_of import SLEEP_FIRST, SLEEP_SECOND

from difflens.stats.means import welch

samples = st.lists(st.integers(-1000, 1000).map(float), min_size=2, max_size=12)


def test_students_sleep_data_give_the_published_figures():
    found = welch(SLEEP_SECOND, SLEEP_FIRST)

    assert found.statistic == pytest.approx(-1.86081, abs=5e-6)
    assert found.df == pytest.approx(17.77647, abs=5e-6)
    assert found.p == pytest.approx(0.079394, abs=5e-7)
    assert (found.low, found.high) == pytest.approx((-3.36548, 0.20548), abs=5e-6)
    assert found.effect == pytest.approx(-0.79694, abs=5e-6)
    assert (found.effect_low, found.effect_high) == pytest.approx((-1.7388, 0.0955), abs=5e-5)


@pytest.mark.filterwarnings("ignore:Precision loss")  # scipy, of constant sides
@given(samples, samples)
def test_it_agrees_with_scipy(left, right):
    found = welch(left, right)

    if np.ptp(left) == np.ptp(right) == 0:
        assert (found.low, found.high, found.p) == (None, None, None)
        assert "constant" in found.note
    else:
        expected = stats.ttest_ind(right, left, equal_var=False)
        assert found.statistic == pytest.approx(expected.statistic)
        assert found.df == pytest.approx(expected.df)
        assert found.p == pytest.approx(expected.pvalue)
        assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))


def test_one_value_on_a_side_tells_a_difference_and_no_more():
    found = welch([1.0], [3.0, 4.0])

    assert found.difference == 2.5
    assert (found.low, found.high, found.p) == (None, None, None)
    assert "fewer than two values" in found.note


@replicates
def test_false_alarms_keep_to_five_percent_under_unequal_sizes_and_variances(repeats):
    draw = np.random.default_rng(1)
    alarms = sum(
        welch(draw.normal(0, 1, 50), draw.normal(0, 5, 5)).p <= 0.05 for _ in range(repeats)
    )

    assert near(alarms / repeats, 0.05, repeats)


@pytest.mark.parametrize("power", [-400, -200, 250, 330])
def test_the_unit_does_not_matter_however_large_or_small(power):
    left, right = [1.0, 2.0, 4.0], [2.0, 3.0, 7.0, 8.0]
    found = welch([each * 2.0**power for each in left], [each * 2.0**power for each in right])

    plain = welch(left, right)
    assert (found.p, found.df, found.effect) == pytest.approx((plain.p, plain.df, plain.effect))
