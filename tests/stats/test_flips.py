from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation import near, replicates

from difflens.stats.paired import flips

terms = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=8)


def enumerated(terms, mean):
    """Flip the residuals about a mean in every way, and count those that reach as far."""
    residuals = np.array(terms) - mean
    sums = [abs(np.dot(signs, residuals)) for signs in product([-1, 1], repeat=len(terms))]
    return float(np.mean([each >= abs(residuals.sum()) - 1e-9 for each in sums]))


@given(terms)
def test_few_terms_are_flipped_in_every_way(values):
    found = flips(np.array(values), np.ones(len(values)), 0.95, 9999, 0)

    assert found.exact
    assert found.p == pytest.approx(enumerated(values, 0.0))
    assert found.p_error == 0.0


@given(st.lists(st.integers(-20, 20).map(float), min_size=6, max_size=8))
def test_the_interval_holds_the_means_that_the_test_does_not_reject(values):
    found = flips(np.array(values), np.ones(len(values)), 0.9, 9999, 0)

    inside = np.linspace(found.low, found.high, 5)
    assert all(enumerated(values, mean) > 0.1 for mean in inside)
    assert enumerated(values, found.low - 0.01) <= 0.1
    assert enumerated(values, found.high + 0.01) <= 0.1


def test_too_few_terms_bound_nothing():
    found = flips(np.array([1.0, 2.0, 3.0]), np.ones(3), 0.95, 9999, 0)

    assert (found.p, found.low, found.high) == (0.25, None, None)


def test_too_few_resamples_bound_nothing():
    found = flips(np.arange(20.0), np.ones(20), 0.95, 9, 0)

    assert not found.exact
    assert (found.low, found.high) == (None, None)


def test_random_flips_come_close_to_all_of_them():
    values, ones = np.random.default_rng(5).normal(0.4, 1, 14), np.ones(14)
    every, some = flips(values, ones, 0.95, 2**14, 0), flips(values, ones, 0.95, 9999, 1)

    assert every.exact
    assert not some.exact
    assert abs(some.p - every.p) <= 4 * some.p_error
    assert (some.low, some.high) == pytest.approx((every.low, every.high), abs=0.05)


def test_many_terms_are_flipped_in_batches_that_change_nothing(monkeypatch):
    values, ones = np.random.default_rng(6).normal(size=50), np.ones(50)
    whole = flips(values, ones, 0.95, 999, 0)
    monkeypatch.setattr("difflens.stats.paired._AT_ONCE", 5000)

    assert flips(values, ones, 0.95, 999, 0) == whole


@replicates
def test_the_interval_covers_as_often_as_it_says(repeats):
    draw = np.random.default_rng(7)
    covered = 0
    for _ in range(repeats):
        found = flips(draw.normal(0, 1, 12), np.ones(12), 0.95, 4095, 0)
        covered += found.low <= 0 <= found.high

    assert near(covered / repeats, 0.95, repeats)
