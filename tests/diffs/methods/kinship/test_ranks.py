from math import lgamma, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from difflens.diffs.methods.kinship import bonferroni, fisher, log10_p_of_rank_correlation, spearman


@given(order=st.permutations(range(20)))
def test_spearman_is_that_of_scipy(order):
    expected = stats.spearmanr(range(20), order).statistic

    assert spearman(np.arange(20), np.array(order)) == pytest.approx(expected, abs=1e-12)


@given(rho=st.floats(-0.999, 0.999), n=st.integers(10, 400))
def test_p_is_that_of_scipy_wherever_it_is_a_float(rho, n):
    t = abs(rho) * np.sqrt((n - 2) / (1 - rho * rho))
    expected = 2 * stats.t.sf(t, n - 2)
    floor = (log(2) - lgamma(n + 1)) / log(10)

    if expected > 1e-280:
        found = log10_p_of_rank_correlation(rho, n)
        assert found == pytest.approx(max(np.log10(expected), floor), abs=1e-6)


def test_a_p_too_small_for_a_float_joins_on_smoothly():
    # ln p falls by about (n - 2) / 2 x -ln(1 - rho²) as n grows: no jump where the formula changes.
    found = [log10_p_of_rank_correlation(0.8, n) for n in range(500, 1800, 10)]

    steps = np.diff(found)
    assert found[0] > -200 > -350 > found[-1]
    assert np.ptp(steps) < 0.05


def test_a_perfect_match_is_as_rare_as_one_order_in_all():
    assert log10_p_of_rank_correlation(1.0, 10) == pytest.approx(np.log10(2 / 3628800))


@given(ps=st.lists(st.floats(1e-12, 1), min_size=1, max_size=30))
def test_fisher_is_that_of_scipy(ps):
    expected = stats.combine_pvalues(ps, "fisher").pvalue

    assert fisher([np.log10(p) for p in ps]) == pytest.approx(np.log10(expected), abs=1e-8)


def test_bonferroni_never_exceeds_one():
    assert bonferroni([-0.1, -0.2]) == 0
    assert bonferroni([-10.0, -1.0]) == pytest.approx(-10 + np.log10(2))
