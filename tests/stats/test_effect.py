import numpy as np
import pytest
from simulation import near, replicates
from stats.samples_of import SLEEP_FIRST, SLEEP_SECOND

from difflens.stats.effect import NOTHING, hedges_g, paired_effect, small_sample_correction


def test_students_sleep_data_give_the_published_effect():
    found = hedges_g(SLEEP_SECOND, SLEEP_FIRST)

    assert found.d == pytest.approx(-0.83218, abs=5e-6)
    assert found.correction == pytest.approx(0.957646, abs=5e-7)
    assert found.g == pytest.approx(-0.79694, abs=5e-6)
    assert (found.low, found.high) == pytest.approx((-1.7388, 0.0955), abs=5e-5)


def test_the_correction_comes_close_to_hedges_approximation():
    for df in (5, 18, 100):
        assert small_sample_correction(df) == pytest.approx(1 - 3 / (4 * df - 1), abs=2e-3)


def test_a_huge_effect_still_has_an_interval():
    draw = np.random.default_rng(0)
    found = hedges_g(draw.normal(0, 1, 500), draw.normal(1000, 1, 500))

    assert 900 < found.low < found.d < found.high < 1100


@pytest.mark.parametrize(
    ("left", "right"), [([1.0], [1.0, 2.0]), ([1.0, 1.0], [2.0, 2.0]), ([3.0], [4.0])]
)
def test_without_a_known_spread_there_is_no_effect(left, right):
    assert hedges_g(left, right) == NOTHING


@pytest.mark.parametrize(("left", "right"), [([1.0], [2.0]), ([1.0, 2.0], [2.0, 3.0])])
def test_pairs_without_a_known_spread_have_no_effect(left, right):
    assert paired_effect(left, right) == NOTHING


def test_two_pairs_have_an_effect_whose_correction_is_undefined():
    found = paired_effect([0.0, 0.0], [1.0, 3.0])

    assert found.d == pytest.approx(2 / 2**0.5)
    assert found.g is None
    assert found.low < found.d < found.high


def test_the_effect_of_pairs_is_their_t_over_the_root_of_n():
    found = paired_effect(SLEEP_SECOND, SLEEP_FIRST)

    assert found.d == pytest.approx(-4.06213 / 10**0.5, abs=1e-5)


@replicates
def test_the_interval_covers_the_true_effect_as_often_as_it_says(repeats):
    draw = np.random.default_rng(3)
    covered = 0
    for _ in range(repeats):
        found = hedges_g(draw.normal(0, 1, 12), draw.normal(0.8, 1, 20))
        covered += found.low <= 0.8 <= found.high

    assert near(covered / repeats, 0.95, repeats)
