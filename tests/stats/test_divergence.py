"""Distributions are told apart by distances that mean something."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import jensenshannon

from difflens.stats.distributions import (
    histograms,
    jensen_shannon,
    jensen_shannon_rows,
    wasserstein,
)

COUNTS = st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any)
SAMPLES = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=30)


def normal(n: int, mean: float = 0, deviation: float = 1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, deviation, n)


@given(COUNTS, COUNTS)
def test_jensen_shannon_is_the_square_of_scipys_root(left, right):
    found = jensen_shannon(left, right)

    assert found == pytest.approx(jensenshannon(left, right) ** 2, abs=1e-12)
    assert found == pytest.approx(jensen_shannon(right, left), abs=1e-15)
    assert 0 <= found <= np.log(2)


def test_rows_of_distributions_are_compared_one_by_one():
    random = np.random.default_rng(0)
    left, right = random.dirichlet([1, 1, 1], (2, 4)), random.dirichlet([1, 1, 1], (2, 4))
    found = jensen_shannon_rows(left, right)

    assert found.shape == (2, 4)
    assert found[1, 2] == pytest.approx(jensen_shannon(left[1, 2], right[1, 2]))


@given(SAMPLES, SAMPLES)
def test_wasserstein_is_that_of_scipy(left, right):
    expected = stats.wasserstein_distance(left, right)

    assert wasserstein(left, right) == pytest.approx(expected, abs=1e-12)


def test_a_shift_is_its_own_distance():
    left = normal(100_000)

    assert wasserstein(left, left + 0.5) == pytest.approx(0.5)


@given(SAMPLES, SAMPLES)
def test_histograms_count_every_value_over_the_same_bins(left, right):
    edges, *counts = histograms(left, right, 8)

    assert [int(each.sum()) for each in counts] == [len(left), len(right)]
    assert len(counts[0]) == len(counts[1])
    assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        ([1, 2], [1, 2, 3], "2 bins against 3"),
        ([1, -2], [1, 2], "none negative"),
        ([0, 0], [1, 2], "not all of them zero"),
        ([1, float("nan")], [1, 2], "not finite"),
    ],
)
def test_what_is_no_histogram_is_refused(left, right, said):
    with pytest.raises(ValueError, match=said):
        jensen_shannon(left, right)
