"""Distributions are told apart by distances that mean something."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import jensenshannon
from simulation import replicates

from difflens.stats.divergence import (
    entropy_bits,
    histograms,
    jensen_shannon,
    jensen_shannon_rows,
    kl,
    kolmogorov,
    psi,
    quantile_histograms,
    wasserstein,
)

COUNTS = st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any)
SAMPLES = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=30)


def normal(n: int, mean: float = 0, deviation: float = 1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, deviation, n)


def test_the_divergence_of_two_normal_laws_is_near_its_closed_form():
    _, left, right = histograms(normal(400_000), normal(400_000, 0.5, 1.2, seed=1))
    closed_form = np.log(1.2) + (1 + 0.25) / (2 * 1.44) - 0.5

    assert closed_form == pytest.approx(0.11635, abs=5e-6)
    assert kl(left, right) == pytest.approx(closed_form, abs=2e-3)


@given(COUNTS, COUNTS)
def test_kl_is_that_of_scipy_on_counts_plus_a_half(left, right):
    halves = np.array(left) + 0.5, np.array(right) + 0.5

    assert kl(left, right) == pytest.approx(stats.entropy(*halves))
    assert kl(left, left) == 0.0


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


@replicates
def test_psi_without_a_change_is_its_null_mean_on_average(repeats):
    found = [
        psi(*quantile_histograms(normal(1000, seed=seed), normal(1000, seed=-seed - 1 + 2**32))[1:])
        for seed in range(repeats)
    ]

    assert found[0].null_mean == pytest.approx(0.018)
    assert np.mean([each.value for each in found]) == pytest.approx(0.0179, abs=0.0015)


def test_psi_of_a_small_shift_is_far_above_its_null_mean_and_below_all_folklore():
    found = psi(*quantile_histograms(normal(10**6), normal(10**6, 0.1, seed=1))[1:])

    assert found.value == pytest.approx(0.0095, abs=0.001)
    assert found.value > 100 * found.null_mean


@given(COUNTS, COUNTS)
def test_psi_knows_no_sides(left, right):
    assert psi(left, right) == pytest.approx(psi(right, left))


@given(SAMPLES, SAMPLES)
def test_kolmogorov_is_the_largest_gap_of_the_distribution_functions(left, right):
    gaps = [abs(np.mean(np.array(left) <= x) - np.mean(np.array(right) <= x)) for x in left + right]

    assert kolmogorov(left, right) == pytest.approx(max(gaps))


@given(SAMPLES, SAMPLES)
def test_wasserstein_is_that_of_scipy(left, right):
    expected = stats.wasserstein_distance(left, right)

    assert wasserstein(left, right) == pytest.approx(expected, abs=1e-12)


def test_a_shift_has_the_distances_the_theory_says():
    left = normal(100_000)

    assert kolmogorov(left, left + 0.5) == pytest.approx(2 * stats.norm.cdf(0.25) - 1, abs=0.005)
    assert wasserstein(left, left + 0.5) == pytest.approx(0.5)


@given(SAMPLES, SAMPLES)
def test_histograms_count_every_value_over_the_same_bins(left, right):
    for edges, *counts in (histograms(left, right, 8), quantile_histograms(left, right, 4)):
        assert [int(each.sum()) for each in counts] == [len(left), len(right)]
        assert len(counts[0]) == len(counts[1])
        assert (np.diff(edges) > 0).all()


def test_equal_levels_hold_eight_bits():
    assert entropy_bits([3] * 256) == pytest.approx(8)
    assert entropy_bits([5, 0, 0]) == 0.0


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
        kl(left, right)
