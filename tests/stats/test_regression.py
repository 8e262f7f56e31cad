import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from simulation import near, replicates

from difflens.stats.regression import regression

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(8, 40), st.sampled_from([1e-6, 1.0, 1e6]))
def test_it_agrees_with_statsmodels(seed, n, scale):
    random = np.random.default_rng(seed)
    columns = random.normal(size=(2, n)) * np.array([[1.0], [scale]])
    outcome = 1 + columns[0] + random.normal(size=n) * np.abs(columns[0])

    found = regression(outcome, columns)

    theirs = sm.OLS(outcome, sm.add_constant(columns.T)).fit(cov_type="HC3", use_t=True)
    assert found.intercept == pytest.approx(theirs.params[0], rel=1e-6, abs=1e-9)
    for at, each in enumerate(found.coefficients, 1):
        assert each.value == pytest.approx(theirs.params[at], rel=1e-6, abs=1e-12)
        assert each.standard_error == pytest.approx(theirs.bse[at], rel=1e-6)
        assert each.p == pytest.approx(theirs.pvalues[at], rel=1e-4, abs=1e-12)
        assert (each.low, each.high) == pytest.approx(theirs.conf_int()[at], rel=1e-6, abs=1e-12)


def test_columns_that_depend_on_each_other_are_refused():
    column = [1.0, 2.0, 3.0, 4.0, 5.0]

    found = regression([1.0, 2.0, 2.5, 4.0, 5.5], [column, [2 * each + 1 for each in column]])

    assert found.coefficients == ()
    assert "cannot be told apart" in found.note


def test_a_constant_column_is_refused():
    assert regression([1.0, 2.0, 4.0, 3.0], [[7.0] * 4]).coefficients == ()


def test_as_many_coefficients_as_values_are_refused():
    assert "nothing to judge" in regression([1.0, 2.0], [[0.0, 1.0]]).note


def test_a_value_that_decides_alone_has_no_known_error():
    found = regression([1.0, 2.0, 1.5, 9.0], [[0.0, 0.0, 0.0, 1.0]])

    assert "alone" in found.note


@replicates
def test_intervals_cover_where_errors_are_unequal(repeats):
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(repeats):
        column = random.normal(size=30)
        outcome = 2 * column + random.normal(size=30) * (0.2 + np.abs(column))
        (found,) = regression(outcome, [column]).coefficients
        covered += found.low <= 2 <= found.high

    assert near(covered / repeats, 0.95, repeats, slack=0.015)
