"""Early-warning signs are told from what overlapping windows do to noise."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import kendalltau
from simulation import near, replicates

from difflens.stats.steadiness import FEWEST_SLOWING, slowing


@replicates
@pytest.mark.parametrize("phi", [0.0, 0.6])
def test_noise_of_one_kind_throughout_warns_in_one_of_twenty(phi, repeats):
    random = np.random.default_rng(1)
    series = lfilter([1], [1, -phi], random.standard_normal((460, repeats)), axis=0)[300:]
    found = [slowing(column, 99, seed) for seed, column in enumerate(series.T)]

    for ps in ([each.autocorrelation_p for each in found], [each.variance_p for each in found]):
        assert near(float(np.mean(np.array(ps) <= 0.05)), 0.05, repeats, slack=0.02)


def test_the_plain_test_of_rolling_windows_would_warn_of_most_noise():
    random = np.random.default_rng(2)
    warned = 0
    for _ in range(60):
        noise = random.standard_normal(200)
        rolled = [noise[i : i + 100].var() for i in range(101)]
        warned += kendalltau(range(101), rolled).pvalue <= 0.05

    assert warned / 60 > 0.7


def test_a_system_that_slows_down_shows_it():
    random, n = np.random.default_rng(3), 400
    phis, series = np.linspace(0.0, 0.97, n), np.zeros(n)
    for i in range(1, n):
        series[i] = phis[i] * series[i - 1] + random.standard_normal()
    found = slowing(series)

    assert found.autocorrelation_tau > 0.5
    assert found.autocorrelation_p <= 0.05


def test_too_little_says_nothing():
    assert slowing(np.arange(FEWEST_SLOWING - 1)) is None
    assert slowing(np.ones(FEWEST_SLOWING)) is None
