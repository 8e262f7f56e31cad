"""The spectrum of noise is known, and what stands out of it is signal."""

import numpy as np
import pytest
from simulation import replicates

from difflens.stats.spectrum import (
    bulk_distance,
    bulk_sigma,
    mp_cdf,
    mp_median,
    tracy_widom_cdf,
    tracy_widom_quantile,
    tracy_widom_threshold,
)

SHAPES = [(60, 60), (40, 160), (160, 40)]


def singular_values(random: np.random.Generator, m: int, n: int) -> np.ndarray:
    return np.linalg.svd(random.standard_normal((m, n)), compute_uv=False)


@replicates
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_noise_passes_the_threshold_in_three_to_seven_of_a_hundred_matrices(m, n, repeats):
    random = np.random.default_rng(m + 2 * n)
    largest = np.array([singular_values(random, m, n)[0] ** 2 for _ in range(repeats)])
    slack = 0 if repeats >= 2000 else 0.02

    assert 0.03 - slack <= np.mean(largest > tracy_widom_threshold(m, n)) <= 0.07 + slack


@pytest.mark.parametrize(
    ("q", "value"), [(0.9, 0.4501), (0.95, 0.9793), (0.99, 2.0234), (0.999, 3.2724)]
)
def test_the_tracy_widom_law_has_its_published_quantiles(q, value):
    assert tracy_widom_quantile(q) == pytest.approx(value, abs=3e-4)


def test_the_tracy_widom_law_has_its_published_mean_and_variance():
    at = np.linspace(-8, 8, 161)
    cdf = np.array([tracy_widom_cdf(s) for s in at])
    density, middles = np.diff(cdf), (at[1:] + at[:-1]) / 2
    mean = float(density @ middles)

    assert mean == pytest.approx(-1.2065336, abs=1e-3)
    assert float(density @ (middles - mean) ** 2) == pytest.approx(1.6077810, abs=2e-3)


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_which_side_is_called_rows_does_not_matter(m, n):
    assert tracy_widom_threshold(m, n) == tracy_widom_threshold(n, m)
    assert tracy_widom_threshold(m, n, 0.01) > tracy_widom_threshold(m, n)


def test_the_median_of_a_square_matrix_of_noise_is_published():
    assert mp_median(1) == pytest.approx(0.6528, abs=5e-5)


@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0])
def test_the_law_is_that_of_simulated_noise(beta):
    n = 400
    values = singular_values(np.random.default_rng(1), round(beta * n), n) ** 2 / n

    assert np.median(values) == pytest.approx(mp_median(beta), rel=0.02)
    assert mp_cdf(values, beta).mean() == pytest.approx(0.5, abs=0.01)
    assert mp_cdf([-1, 9], beta).tolist() == [0, 1]


@pytest.mark.parametrize("beta", [0.0, 1.5, -1.0])
def test_an_aspect_is_the_short_side_over_the_long(beta):
    with pytest.raises(ValueError, match="aspect"):
        mp_median(beta)


def test_spikes_do_not_move_the_deviation_of_the_bulk():
    random = np.random.default_rng(2)
    matrix = 0.02 * random.standard_normal((200, 300))
    spiked = matrix + 5 * np.outer(*np.linalg.qr(random.standard_normal((300, 2)))[0].T)[:200]
    values = np.linalg.svd(spiked, compute_uv=False)

    assert bulk_sigma(values, 200, 300) == pytest.approx(0.02, rel=0.03)
    assert spiked.std() > 0.025
    outliers = (values / bulk_sigma(values, 200, 300)) ** 2 > tracy_widom_threshold(200, 300)
    assert outliers.sum() == 1


def test_the_distance_tells_noise_from_a_trained_looking_bulk():
    noise = singular_values(np.random.default_rng(3), 200, 200)
    decaying = 1 / np.arange(1, 201)

    assert bulk_distance(noise, 200, 200) < 0.05
    assert bulk_distance(decaying, 200, 200) > 0.1
    assert bulk_distance(8 * noise, 200, 200) == bulk_distance(noise, 200, 200)


def test_a_matrix_of_low_rank_has_no_bulk():
    values = [3.0, 2.0] + [0.0] * 14

    assert bulk_sigma(values, 16, 20) == 0
    assert bulk_distance(values, 16, 20) is None


def test_all_singular_values_are_needed():
    with pytest.raises(ValueError, match="3 singular values of a 4 x 5 matrix"):
        bulk_sigma([1.0, 2.0, 3.0], 4, 5)
