import numpy as np
import pytest

from difflens.measure import ranks
from difflens.stats.spectrum import mp_median


@pytest.mark.parametrize("beta", [0.02, 0.25, 0.5, 1.0])
def test_the_median_of_the_bulk_is_that_of_the_statistics_room(beta):
    assert ranks.bulk_median(beta) == pytest.approx(mp_median(beta), rel=1e-6)


def test_the_deviation_of_noise_is_found_below_spikes():
    noise = np.random.default_rng(0).normal(0, 0.3, (300, 500))
    noise[0] += 40

    values = np.linalg.svd(noise, compute_uv=False)
    assert ranks.sigma_of_median(values, 300, 500) == pytest.approx(0.3, rel=0.02)


def test_nothing_has_no_rank():
    zeros = np.zeros(16)

    assert ranks.stable_rank(zeros, 0.0) is None
    assert ranks.effective_rank(zeros) is None
    assert ranks.participation_ratio(zeros) is None
    assert ranks.energy_at(zeros, 0.0, 4) is None
