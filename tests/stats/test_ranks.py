import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from simulation import near, replicates
from stats.samples_of import PAIN_FIRST, PAIN_SECOND
from statsmodels.stats.nonparametric import rank_compare_2indep

from difflens.stats.ranking import brunner_munzel, mann_whitney

tied = st.lists(st.integers(0, 6).map(float), min_size=3, max_size=15)


def test_the_published_pain_scores_give_the_published_figures():
    found = brunner_munzel(PAIN_FIRST, PAIN_SECOND)

    assert found.statistic == pytest.approx(3.13747, abs=5e-6)
    assert found.df == pytest.approx(17.6828, abs=5e-5)
    assert found.p == pytest.approx(0.0057862, abs=5e-8)
    assert found.effect == pytest.approx(0.788961, abs=5e-7)
    assert (found.effect_low, found.effect_high) == pytest.approx((0.595217, 0.982705), abs=5e-7)


def test_the_pain_scores_agree_with_statsmodels():
    found = brunner_munzel(PAIN_FIRST, PAIN_SECOND)

    expected = rank_compare_2indep(PAIN_SECOND, PAIN_FIRST)
    assert found.effect == pytest.approx(expected.prob1)
    assert (found.effect_low, found.effect_high) == pytest.approx(expected.conf_int())


@given(tied, tied)
def test_it_agrees_with_scipy_and_counts_pairs(left, right):
    found = brunner_munzel(left, right)

    compared = np.sign(np.subtract.outer(right, left))
    assert found.difference == pytest.approx(compared.mean(), abs=1e-12)
    if found.statistic is not None:
        expected = stats.brunnermunzel(left, right)
        assert found.p == pytest.approx(expected.pvalue, abs=1e-12)
        assert -1 <= found.low <= found.difference <= found.high <= 1


def test_samples_that_do_not_overlap_fall_back_on_mann_whitney():
    found = brunner_munzel([1, 2, 3, 4], [5, 6, 7, 8])

    assert (found.effect, found.low) == (1.0, None)
    assert found.p == pytest.approx(2 / 70)
    assert found.method.startswith("mann-whitney")


def test_constant_samples_are_not_told_apart():
    found = brunner_munzel([1, 1, 1], [1, 1, 1])

    assert (found.difference, found.effect, found.p) == (0.0, 0.5, 1.0)


def test_one_value_on_a_side_has_no_test():
    found = brunner_munzel([1.0], [2.0, 3.0])

    assert (found.effect, found.p, found.low) == (1.0, None, None)
    assert "fewer than two" in found.note


@given(st.lists(st.floats(-9, 9), min_size=6, max_size=10, unique=True))
def test_mann_whitney_without_ties_is_exact(values):
    found = mann_whitney(values[:3], values[3:])

    expected = stats.mannwhitneyu(values[3:], values[:3], method="exact")
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.method == "mann-whitney, exact"


@given(tied, tied)
def test_mann_whitney_with_ties_is_normal_and_counts_pairs(left, right):
    found = mann_whitney(left, right)

    compared = np.subtract.outer(right, left)
    assert found.statistic == (compared > 0).sum() + (compared == 0).sum() / 2
    assert 0 <= found.p <= 1


@replicates
def test_false_alarms_keep_to_five_percent_under_unequal_spread(repeats):
    draw = np.random.default_rng(4)
    alarms = sum(
        brunner_munzel(draw.normal(0, 1, 40), draw.normal(0, 4, 20)).p <= 0.05
        for _ in range(repeats)
    )

    assert near(alarms / repeats, 0.05, repeats, slack=0.005)
