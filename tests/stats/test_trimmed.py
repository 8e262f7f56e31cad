import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from simulation import near, replicates

from difflens.stats.means import welch, yuen

samples = st.lists(st.integers(-1000, 1000).map(float), min_size=5, max_size=20, unique=True)


@given(samples, samples)
def test_it_agrees_with_scipy(left, right):
    found = yuen(left, right)

    expected = stats.ttest_ind(right, left, equal_var=False, trim=0.2)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.df == pytest.approx(expected.df)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))


@given(samples, samples)
def test_without_trimming_it_is_welch(left, right):
    found, plain = yuen(left, right, trim=0), welch(left, right)

    assert found.difference == pytest.approx(plain.difference)
    assert (found.p, found.df) == pytest.approx((plain.p, plain.df))


@pytest.mark.parametrize(
    ("left", "right"), [([1.0], [2.0, 3.0]), ([1.0] * 5, [2.0] * 5), ([1, 2, 3], [1, 2, 3])]
)
def test_without_spread_there_is_a_difference_and_no_test(left, right):
    found = yuen(left, right, trim=0.4)

    assert (found.low, found.p) == (None, None)
    assert "no spread" in found.note


@pytest.mark.parametrize("trim", [-0.1, 0.5])
def test_trimming_half_or_less_than_nothing_is_refused(trim):
    with pytest.raises(ValueError, match="trim"):
        yuen([1.0, 2.0], [1.0, 2.0], trim=trim)


@replicates
def test_false_alarms_keep_to_five_percent_where_a_few_values_are_wild(repeats):
    draw = np.random.default_rng(2)
    alarms = sum(
        yuen(draw.standard_t(2, 40), draw.standard_t(2, 40)).p <= 0.05 for _ in range(repeats)
    )

    assert near(alarms / repeats, 0.05, repeats, slack=0.005)
