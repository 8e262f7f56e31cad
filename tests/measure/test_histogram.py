import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from measure.taken import BF16, noise, take
from scipy import stats
from scipy.spatial.distance import jensenshannon

from difflens.measure import histogram
from difflens.measure.histogram import QUANTILES, Histogram

VALUES = st.lists(st.floats(-100, 100, width=16), min_size=2, max_size=60)


@examples(25)
@given(VALUES, VALUES, st.sampled_from([np.float16, BF16, np.float32, np.float64]))
def test_quantiles_and_distances_are_those_of_numpy_and_scipy(left, right, dtype):
    before, after = (np.array(side, np.float32).astype(dtype) for side in (left, right))
    if len(before) == len(after) and before.tobytes() == after.tobytes():
        return

    found = take(Histogram, before, after)

    before, after = before.astype(np.float64), after.astype(np.float64)
    assert found.left_quantiles == pytest.approx(np.quantile(before, QUANTILES), abs=1e-12)
    assert found.right_quantiles == pytest.approx(np.quantile(after, QUANTILES), abs=1e-12)
    assert found.left_q9999 == pytest.approx(np.quantile(abs(before), 0.9999), abs=1e-12)
    distance = stats.wasserstein_distance(before, after)
    assert found.wasserstein == pytest.approx(distance, abs=1e-9)
    assert found.ks == pytest.approx(
        stats.ks_2samp(before, after, method="asymp").statistic, abs=1e-12
    )
    assert found.rank_error == 0


def test_a_shift_is_the_wasserstein_distance_and_a_known_ks():
    """Methods 3.2: W1 = δ; KS of N(0, 1) against N(δ, 1) is 2Φ(δ/2) - 1."""
    left = noise(400_000).astype(np.float64)

    found = take(Histogram, left, left + 0.5)

    assert found.wasserstein == pytest.approx(0.5)
    assert found.relative_wasserstein == pytest.approx(0.5, rel=0.01)
    assert found.ks == pytest.approx(2 * stats.norm.cdf(0.25) - 1, abs=0.005)


def test_the_divergence_of_two_gaussians_is_the_closed_form():
    """Methods 3.2: N(0, 1) against N(0.5, 1.2²) is 0.11635, by histograms 0.1169."""
    found = take(Histogram, noise(300_000), 0.5 + 1.2 * noise(300_000, seed=1))

    assert found.kl == pytest.approx(0.1169, abs=0.003)


def test_jensen_shannon_is_the_square_of_scipys_distance():
    left, right = (scale * noise(5000, seed=scale).astype(np.float64) for scale in (1, 2))
    edges = np.linspace(min(left.min(), right.min()), max(left.max(), right.max()), 257)

    found = take(Histogram, left, right)

    binned = [np.histogram(side, edges)[0] for side in (left, right)]
    assert found.jensen_shannon == pytest.approx(jensenshannon(*binned) ** 2, rel=1e-3)
    assert found.bin_width == pytest.approx(edges[1] - edges[0])


def test_tensors_without_a_common_value_are_ln_2_apart():
    found = take(Histogram, noise(1000), 1000 + noise(1000, seed=1))

    assert found.jensen_shannon == pytest.approx(math.log(2))
    assert found.ks == 1


def test_psi_of_two_draws_of_one_law_is_its_null_mean():
    """Methods 3.2: 0.018 at N = M = 1000 and ten bins."""
    found = [take(Histogram, noise(1000, seed=2 * i), noise(1000, seed=2 * i + 1)).psi
             for i in range(60)]  # fmt: skip

    assert take(Histogram, noise(1000), noise(1000, seed=1)).psi_null == pytest.approx(0.018)
    assert np.mean(found) == pytest.approx(0.018, abs=0.004)


def test_psi_of_a_small_shift_of_a_large_tensor_is_below_the_folklore():
    """Methods 3.2: a shift of a tenth of a deviation gives 0.0095 at a million."""
    found = take(Histogram, noise(1_000_000), noise(1_000_000, seed=1) + np.float32(0.1))

    assert found.psi == pytest.approx(0.0095, abs=0.001)


def test_entropy_of_256_equal_levels_is_8_bits():
    levels = np.tile(np.arange(256, dtype=np.float32), 4)

    assert take(Histogram, levels, levels[::-1].copy()).left_entropy == pytest.approx(8)


def test_a_shuffled_tensor_is_at_no_distance():
    left = noise(1000).astype(BF16)

    found = take(Histogram, left, left[::-1].copy())

    assert (found.wasserstein, found.ks, found.jensen_shannon, found.psi) == (0, 0, 0, 0)


def test_a_large_tensor_is_sampled_and_says_how_well(monkeypatch):
    monkeypatch.setattr(histogram, "SAMPLE", 5000)
    left, right = noise(300_000), noise(300_000, seed=1)

    found = take(Histogram, left, right)

    assert found.rank_error == pytest.approx(math.sqrt(math.log(40) / 2 / 5000), rel=0.02)
    ranks = [(left <= value).mean() for value in found.left_quantiles[3:-3]]
    assert ranks == pytest.approx(QUANTILES[3:-3], abs=found.rank_error)
    assert found == take(Histogram, left, right)


def test_what_is_not_finite_is_not_counted():
    left, right = noise(100), noise(100, seed=1)
    plain = take(Histogram, left, right)

    broken = take(Histogram, np.append(left, np.nan), np.append(right, np.inf).astype(np.float32))

    assert broken.left_quantiles == plain.left_quantiles
    assert broken.right_quantiles == plain.right_quantiles
    assert take(Histogram, np.full(3, np.nan), np.ones(3)) is None
