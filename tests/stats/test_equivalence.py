import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation import near, replicates
from statsmodels.stats.weightstats import ttost_ind, ttost_paired

from difflens.stats.comparison import Comparison
from difflens.stats.decision import degradation, equivalence, non_inferior
from difflens.stats.means import welch
from difflens.stats.paired import paired

LEFT, RIGHT = [1.0, 2.0, 4.0, 3.0, 2.5], [2.0, 3.5, 3.0, 5.0, 4.5, 4.0]
BARE = Comparison(0.5, -1.0, 2.0, 0.95, None, "bootstrap", 50, 50)
UNKNOWN = Comparison(0.5, None, None, 0.95, None, "welch", 1, 1)
margins = st.floats(0.01, 10)


@given(margins)
def test_two_independent_samples_agree_with_statsmodels(margin):
    found = equivalence(welch(LEFT, RIGHT), margin)

    expected = ttost_ind(RIGHT, LEFT, -margin, margin, usevar="unequal")[0]
    assert found.p == pytest.approx(expected)
    assert found.holds == (expected < 0.05)


@given(margins)
def test_pairs_agree_with_statsmodels(margin):
    found = equivalence(paired(LEFT, RIGHT[:5]), margin)

    expected = ttost_paired(np.array(RIGHT[:5]), np.array(LEFT), -margin, margin)[0]
    assert found.p == pytest.approx(expected)
    assert found.holds == (expected < 0.05)


@given(margins, st.sampled_from(["higher", "lower"]), st.sampled_from([0.01, 0.05, 0.2]))
def test_non_inferiority_holds_exactly_where_its_p_is_below_alpha(margin, direction, alpha):
    found = non_inferior(welch(LEFT, RIGHT), margin, direction, alpha)

    assert found.holds == (found.p < alpha) == (found.limit < margin)


def test_a_degradation_is_positive_when_worse():
    worse = degradation(BARE, "higher")

    assert (worse.difference, worse.low, worse.high) == (-0.5, -2.0, 1.0)
    assert degradation(BARE, "lower") == BARE
    assert degradation(UNKNOWN, "higher").high is None


def test_a_wider_interval_decides_without_a_p():
    found = equivalence(BARE, 2.5)

    assert (found.holds, found.p, found.low, found.high) == (True, None, -1.0, 2.0)
    assert non_inferior(BARE, 1.5, "higher").holds
    assert non_inferior(BARE, 1.5, "higher").p is None


def test_without_an_interval_nothing_is_known():
    assert equivalence(UNKNOWN, 1.0).holds is None
    assert non_inferior(UNKNOWN, 1.0, "lower").holds is None


@pytest.mark.parametrize("margin", [0, -1, float("inf"), float("nan")])
def test_a_margin_that_is_none_is_refused(margin):
    with pytest.raises(ValueError, match="margin"):
        equivalence(BARE, margin)


def test_an_alpha_of_a_half_is_refused():
    with pytest.raises(ValueError, match="alpha"):
        non_inferior(BARE, 1.0, "lower", 0.5)


@replicates
def test_at_the_boundary_it_errs_in_five_percent_and_at_zero_it_finds_sixty(repeats):
    """Fifty values a side, a margin of half a deviation."""
    draw = np.random.default_rng(29)
    wrong = found = 0
    for _ in range(repeats):
        left, right = draw.normal(size=(2, 50))
        wrong += equivalence(welch(left, right + 0.5), 0.5).holds
        found += equivalence(welch(left, right), 0.5).holds

    assert near(wrong / repeats, 0.05, repeats)
    assert near(found / repeats, 0.60, repeats)


@replicates
def test_not_significant_is_what_small_samples_say_of_a_true_effect(repeats):
    """Ten values a side and an effect of half a deviation: silence in 82 % of the cases."""
    draw = np.random.default_rng(30)
    silent = sum(
        welch(draw.normal(size=10), draw.normal(0.5, 1, 10)).p > 0.05 for _ in range(repeats)
    )

    assert near(silent / repeats, 0.82, repeats)
