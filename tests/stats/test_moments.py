"""Moments that add up: equal to those of the whole, however it was cut, and out of overflow."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from difflens.stats.moments import Moments, corrected_kurtosis, corrected_skewness, l2_norm

NUMBERS = st.lists(st.integers(-1000, 1000).map(lambda each: each / 8), min_size=4, max_size=60)


def merged(values: np.ndarray, cuts: list[int]) -> Moments:
    whole = Moments()
    for part in np.split(values, sorted(cuts)):
        whole = whole.plus(Moments.of(part))
    return whole


@given(NUMBERS, st.lists(st.integers(0, 60), max_size=5))
def test_parts_merge_to_the_moments_of_the_whole_wherever_it_is_cut(numbers, cuts):
    values = np.array(numbers)

    found = merged(values, [min(cut, len(values)) for cut in cuts])

    assert found.n == len(values)
    assert found.true_mean == pytest.approx(values.mean(), abs=1e-10)
    assert found.std == pytest.approx(values.std(), rel=1e-10, abs=1e-10)
    if values.std() > 1e-6:
        assert found.skewness == pytest.approx(stats.skew(values), abs=1e-8)
        assert found.kurtosis == pytest.approx(stats.kurtosis(values), abs=1e-8)


@given(NUMBERS, NUMBERS)
def test_merging_does_not_care_for_the_order(left, right):
    one, other = Moments.of(np.array(left)), Moments.of(np.array(right))

    assert tuple(one.plus(other)) == pytest.approx(tuple(other.plus(one)), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("size", [1e200, 1e-200, 1e300, 1e-300])
def test_huge_and_tiny_values_neither_overflow_nor_vanish(size):
    values = np.array([1.0, -2.0, 4.0, 0.5])

    found = Moments.of(values * size).plus(Moments.of(np.array([3.0 * size])))

    whole = np.append(values, 3.0)
    assert found.std == pytest.approx(whole.std() * size, rel=1e-12)
    assert found.l2 == pytest.approx(np.linalg.norm(whole) * size, rel=1e-12)
    assert found.kurtosis == pytest.approx(stats.kurtosis(whole), rel=1e-9)


def test_huge_and_ordinary_values_merge():
    found = Moments.of(np.array([1.0, 2.0])).plus(Moments.of(np.array([1e200])))

    assert found.true_mean == pytest.approx(1e200 / 3)
    assert found.std == pytest.approx(np.std([0, 0, 1]) * 1e200)


def test_a_norm_beyond_every_number_is_not_known():
    assert Moments.of(np.full(10, 1.7e308)).l2 is None
    assert l2_norm(np.full(10, 1.7e308)) == math.inf


@given(NUMBERS)
def test_corrected_moments_are_those_of_scipy(numbers):
    values = np.array(numbers)
    if values.std() < 1e-6:
        return
    found = Moments.of(values)

    skewness, kurtosis = stats.skew(values, bias=False), stats.kurtosis(values, bias=False)
    assert corrected_skewness(found.skewness, found.n) == pytest.approx(skewness, abs=1e-7)
    assert corrected_kurtosis(found.kurtosis, found.n) == pytest.approx(kurtosis, abs=1e-6)


def test_nothing_has_no_moments():
    assert (Moments().std, Moments().true_mean, Moments().skewness) == (None, None, None)
    assert Moments.of(np.ones(5)).skewness is None
    assert corrected_skewness(0.0, 2) is None
    assert corrected_kurtosis(0.0, 3) is None


@given(st.lists(st.floats(-1e100, 1e100), max_size=30))
def test_the_norm_is_that_of_numpy(numbers):
    assert l2_norm(numbers) == pytest.approx(float(np.linalg.norm(numbers)), rel=1e-12, abs=1e-150)


def test_gradients_above_1e19_keep_their_norm():
    """DB-04: a sum of squares in float32 overflows above about 1.8e19."""
    array = np.full(100, 1e30, np.float32)

    assert l2_norm(array) == pytest.approx(1e31, rel=1e-6)
    assert l2_norm(np.full(4, 1e200)) == pytest.approx(2e200)


def test_many_small_squares_are_not_lost_beside_a_large_one():
    """DB-04: float32 loses each of a million squares of 1e-4 next to one of 1."""
    array = np.full(1_000_001, 1e-4, np.float32)
    array[0] = 1.0

    assert l2_norm(array) == pytest.approx(math.sqrt(1 + 1e6 * 1e-8), rel=1e-6)


def test_what_is_not_finite_stays_what_it_is():
    assert l2_norm([1.0, math.inf]) == math.inf
    assert math.isnan(l2_norm([1.0, math.nan]))
    assert (l2_norm([]), l2_norm([0.0])) == (0.0, 0.0)
