"""A change of scatter is found where there is one."""

import numpy as np
import pytest
from scipy.signal import lfilter
from simulation import replicates

from difflens.stats.steadiness import FEWEST_SCATTERED, scatter_ratio


def noise(random, phi, n):
    return lfilter([1], [1, -phi], random.standard_normal(n + 300))[300:]


@replicates
@pytest.mark.parametrize("phi", [0.0, 0.7])
def test_an_even_scatter_is_called_changed_in_one_of_twenty(phi, repeats):
    random = np.random.default_rng(3)
    found = [scatter_ratio(noise(random, phi, 200), replicates=99) for _ in range(repeats)]
    changed = np.mean([each.low > 1 or each.high < 1 for each in found])

    assert changed <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5 + 0.01


@replicates
def test_a_scatter_that_doubles_is_found_with_its_size(repeats):
    random = np.random.default_rng(4)
    louder = np.repeat([1.0, 2.0], 200)
    found = [scatter_ratio(noise(random, 0.3, 400) * louder, replicates=99) for _ in range(repeats)]

    assert np.mean([each.low > 1 for each in found]) >= 0.9
    assert np.median([each.value for each in found]) == pytest.approx(2.0, rel=0.1)


def test_run_backwards_the_ratio_is_inverse():
    series = noise(np.random.default_rng(5), 0.3, 300) * np.repeat([1.0, 3.0], 150)

    assert scatter_ratio(series[::-1]).value == pytest.approx(1 / scatter_ratio(series).value)


def test_too_short_or_still_a_series_has_no_ratio():
    assert scatter_ratio(np.arange(FEWEST_SCATTERED - 1)) is None
    assert scatter_ratio(np.ones(100)) is None
