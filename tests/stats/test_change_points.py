"""Jumps in a history are found where they are, and noise has none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from scipy.signal import lfilter
from simulation import near, replicates

from difflens.stats.change_points import _statistics, change_points

# Both from the public tests of Apache Otava.
TWO_JUMPS = [0.3, 2.4, 1.5, -0.9, -0.5, 99.7, 98.3, 99.1, 149.0, 149.7, 149.5, 149.1, 148.8, 150.0]
HALVED = [
    1.02, 0.95, 0.99, 1.00, 1.12, 1.00, 1.01, 0.98, 1.01, 0.96,
    0.50, 0.51, 0.48, 0.48, 0.55, 0.50, 0.49, 0.51, 0.50, 0.49,
]  # fmt: skip


def indices(values, **options) -> list[int]:
    return [point.index for point in change_points(values, **options)]


def noise(seed: int, n: int = 40, phi: float = 0.0) -> np.ndarray:
    return lfilter([1], [1, -phi], np.random.default_rng(seed).standard_normal(n))


def throughput() -> np.ndarray:
    """A drop, a small step, a large rise, and one outlier: a benchmark as they are."""
    levels = np.repeat([26_700.0, 23_650.0, 24_450.0, 28_400.0], [15, 46, 10, 60])
    levels += 150 * noise(3, len(levels))
    levels[8] = 15_700
    return levels


def test_the_published_series_have_their_published_change_points():
    assert indices(TWO_JUMPS) == [5, 8]
    assert indices(HALVED) == [10]


def test_a_change_point_tells_the_means_beside_it():
    (point,) = change_points(HALVED)

    assert point.before == pytest.approx(np.mean(HALVED[:10]))
    assert point.after == pytest.approx(np.mean(HALVED[10:]))
    assert point.p == 0.001


@replicates
def test_noise_has_a_change_point_one_time_in_twenty(repeats):
    found = [
        len(change_points(noise(seed), permutations=199, seed=seed)) for seed in range(repeats)
    ]

    assert near(np.mean(np.array(found) > 0), 0.05, repeats, slack=0.015)


@replicates
def test_a_shift_of_one_and_a_half_deviations_is_found_where_it_is(repeats):
    shifted = [noise(seed) + np.repeat([0, 1.5], 20) for seed in range(repeats)]
    found = [indices(series, permutations=199) for series in shifted]

    assert np.mean([len(each) > 0 for each in found]) >= 0.93 - 3 * (0.93 * 0.07 / repeats) ** 0.5
    assert np.median([each[0] for each in found if each]) == 20


@replicates
def test_windows_find_no_more_in_noise(repeats):
    found = [
        len(change_points(noise(seed, 100), permutations=99, seed=seed, window=40))
        for seed in range(repeats // 2)
    ]

    assert np.mean(np.array(found) > 0) <= 0.08


def test_autocorrelated_noise_needs_surrogates_of_its_kind():
    every = [noise(seed, 60, phi=0.6) for seed in range(100)]
    shuffled = [len(change_points(each, permutations=99)) > 0 for each in every]
    surrogates = [len(change_points(each, permutations=99, phi=0.6)) > 0 for each in every]

    assert np.mean(shuffled) > 0.4
    assert np.mean(surrogates) <= 0.12


@pytest.mark.parametrize("window", [None, 30, 50])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_only_jumps_of_the_asked_magnitude_are_told(alpha, window):
    series = throughput()

    assert indices(series, alpha=alpha, window=window, least_magnitude=0.05) == [15, 71]
    assert 61 in indices(series, alpha=alpha, window=window)


def test_a_jump_there_and_back_is_found_twice():
    series = noise(1, 60) + np.repeat([0, 5, 0], 20)

    assert indices(series) == [20, 40]


@examples(20)
@given(st.integers(0, 999))
def test_the_statistic_is_the_energy_distance_of_both_sides(seed):
    series = noise(seed, 12)
    found = _statistics(series[:, None])[:, 0]

    for place, split in enumerate(range(2, 11)):
        left, right = series[:split], series[split:]
        between = 2 * np.abs(left[:, None] - right).mean()
        within = [
            np.abs(side[:, None] - side).sum() / (len(side) * (len(side) - 1))
            for side in (left, right)
        ]
        expected = split * (12 - split) / 12 * (between - sum(within))
        assert found[place] == pytest.approx(expected)


@examples(20)
@given(st.integers(0, 999), st.integers(-8, 8))
def test_the_unit_and_the_zero_of_a_metric_do_not_matter(seed, power):
    series = np.round(noise(seed) + np.repeat([0, 2], 20), 3)
    found = indices(series, permutations=49, seed=seed)

    assert indices(series * -(2.0**power), permutations=49, seed=seed) == found
    assert indices(series + 64, permutations=49, seed=seed) == found


@pytest.mark.parametrize("values", [[], [1.0, 2.0, 3.0], [5.0] * 40])
def test_a_short_or_constant_history_has_no_change_points(values):
    assert change_points(values) == ()
    assert change_points(values, window=4) == ()


def test_a_clean_step_in_a_constant_history_is_found():
    assert indices([1.0] * 10 + [2.0] * 10) == [10]


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        change_points([1.0, 2.0, float("nan"), 3.0])
