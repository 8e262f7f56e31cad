from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from simulation import near, replicates

from difflens.stats.means import permutation, welch

small = st.lists(st.integers(-9, 9).map(float), min_size=2, max_size=4)


def studentised(left, right):
    error = (np.var(left, ddof=1) / len(left) + np.var(right, ddof=1) / len(right)) ** 0.5
    move = abs(np.mean(right) - np.mean(left))
    if error < 1e-12:
        return np.inf if move > 1e-12 else 0.0
    return move / error


def enumerated(left, right):
    """Split the values in every way, and count the splits that lie as far apart."""
    pool = [*left, *right]
    observed = studentised(left, right)
    found = []
    for chosen in combinations(range(len(pool)), len(right)):
        rest = [pool[i] for i in range(len(pool)) if i not in chosen]
        found.append(studentised(rest, [pool[i] for i in chosen]))
    return float(np.mean([each >= observed - 1e-9 for each in found]))


@given(small, small)
def test_few_values_are_split_in_every_way(left, right):
    found = permutation(left, right)

    assert found.p == pytest.approx(enumerated(left, right))
    assert found.method == "permutation, exact"
    assert found.p_error == 0.0


def test_eight_against_eight_are_all_looked_at():
    draw = np.random.default_rng(19)
    left, right = draw.normal(0, 1, 8), draw.normal(1, 1, 8)
    found = permutation(left, right)

    def t(x, y, axis):
        return stats.ttest_ind(x, y, equal_var=False, axis=axis).statistic

    expected = stats.permutation_test((right, left), t, vectorized=True, n_resamples=20_000)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.statistic == pytest.approx(expected.statistic)


def test_random_splits_come_close_to_all_of_them():
    draw = np.random.default_rng(20)
    left, right = draw.normal(0, 1, 9), draw.normal(0.8, 1, 9)
    every, some = permutation(left, right, resamples=50_000), permutation(left, right)

    assert every.method == "permutation, exact"
    assert some.method == "permutation, 9999 resamples, seed 0"
    assert abs(some.p - every.p) <= 4 * some.p_error


def test_the_smallest_p_is_one_over_the_resamples_and_one():
    found = permutation(np.arange(20.0), np.arange(1000.0, 1020.0), resamples=99)

    assert found.p == 0.01


def test_many_values_are_split_in_batches(monkeypatch):
    draw = np.random.default_rng(21)
    left, right = draw.normal(size=(2, 30))
    whole = permutation(left, right, resamples=999)
    monkeypatch.setattr("difflens.stats.means._AT_ONCE", 6000)

    assert permutation(left, right, resamples=999) == whole


def test_constant_sides_far_apart_have_no_finite_statistic():
    found = permutation([0.0] * 5, [1.0] * 5)

    assert found.statistic is None
    assert found.p == pytest.approx(2 / 252)


def test_one_value_on_a_side_has_no_test():
    found = permutation([1.0], [2.0, 3.0])

    assert (found.difference, found.p) == (1.5, None)


def test_a_far_away_origin_costs_no_digits():
    draw = np.random.default_rng(22)
    left, right = draw.normal(size=(2, 40))

    far = permutation(left + 1e8, right + 1e8, resamples=199)
    assert far.statistic == pytest.approx(welch(left, right).statistic, rel=1e-6)


@replicates
def test_false_alarms_keep_to_five_percent_under_unequal_variances(repeats):
    draw = np.random.default_rng(23)
    alarms = sum(
        permutation(draw.normal(0, 1, 40), draw.normal(0, 3, 20), resamples=199).p <= 0.05
        for _ in range(repeats)
    )

    assert near(alarms / repeats, 0.05, repeats, slack=0.005)
